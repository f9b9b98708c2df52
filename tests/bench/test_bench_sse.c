/* Event streams in pieces of every size. */
#include "base/check.h"
#include "bench/sse.h"

static pl_status keep(void *arg, const char *data, size_t n, pl_error *err)
{
    PL_TRY(pl_buf_add(arg, data, n, err));
    return pl_buf_addc(arg, '|', err);
}

static void streams(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events;
    } cases[] = {
        {"data: a\n\ndata: b\n\n", "a|b|"},
        {"data: a\r\n\r\ndata:b\r\n\r\n", "a|b|"},
        {"data: a\r\rdata:  b\r\r", "a| b|"},
        {"data: a\ndata: b\ndata\n\n", "a\nb\n|"},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         "a|"},
        {": comment\n\nevent: x\nid: 7\ndata: a\nretry: 5\n\n", "a|"},
        {"event: x\n\n\n\n", ""},
        {"data\n\n", "|"},
        {"database: a\n\ndata: b\n\n", "b|"},
        {"data: a\n\ndata: cut", "a|"},
        {"data: a\n\ndata: cut\n", "a|"},
        {"data: a\r\n", ""},
        {"data: \xc3\xa9\n\n", "\xc3\xa9|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step <= strlen(cases[i].text); step++) {
            size_t n = strlen(cases[i].text);
            pl_bench_sse sse;
            pl_buf events;
            pl_error err;
            pl_bench_sse_init(&sse);
            pl_buf_init(&events, 4096, "events");
            for (size_t at = 0; at < n; at += step)
                assert_int_equal(
                    pl_bench_sse_read(&sse, cases[i].text + at, n - at < step ? n - at : step, keep, &events, &err),
                    PL_OK);
            assert_string_equal(events.data ? events.data : "", cases[i].events);
            pl_buf_free(&events);
            pl_bench_sse_free(&sse);
        }
}

static void caps(void **state)
{
    (void)state;
    char *line = malloc(1 << 20);
    memset(line, 'x', 1 << 20);
    pl_bench_sse sse;
    pl_buf events;
    pl_error err;
    pl_buf_init(&events, 4096, "events");
    for (int lines = 0; lines < 2; lines++) { /* one long line, then many */
        pl_status status = PL_OK;
        pl_bench_sse_init(&sse);
        for (int i = 0; i < 6 && status == PL_OK; i++) {
            status = pl_bench_sse_read(&sse, "data: ", lines ? 6 : 0, keep, &events, &err);
            if (status == PL_OK)
                status = pl_bench_sse_read(&sse, line, 1 << 20, keep, &events, &err);
            if (status == PL_OK)
                status = pl_bench_sse_read(&sse, "\n", (size_t)lines, keep, &events, &err);
        }
        assert_int_equal(status, PL_ELIMIT);
        pl_bench_sse_free(&sse);
    }
    assert_int_equal(events.len, 0);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams), cmocka_unit_test(caps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
