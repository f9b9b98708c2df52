/* Responses in pieces of every size, and what is refused. */
#include "base/buf.h"
#include "base/check.h"
#include "bench/response.h"

static pl_status keep(void *arg, const char *bytes, size_t n, pl_error *err)
{
    return pl_buf_add(arg, bytes, n, err);
}

/* Read text in pieces of `step`, then the end of the connection. */
static pl_status read_all(pl_bench_response *r, pl_buf *body, const char *text, size_t n, size_t step, pl_error *err)
{
    pl_bench_response_init(r);
    pl_buf_clear(body);
    for (size_t at = 0; at < n; at += step)
        PL_TRY(pl_bench_response_read(r, text + at, n - at < step ? n - at : step, keep, body, err));
    return pl_bench_response_end(r, err);
}

static void good(const char *text, int status, const char *expected)
{
    pl_bench_response *r = malloc(sizeof *r);
    pl_error err;
    pl_buf body;
    pl_buf_init(&body, 1 << 20, "body");
    for (size_t step = 1; step <= strlen(text); step++) {
        assert_int_equal(read_all(r, &body, text, strlen(text), step, &err), PL_OK);
        assert_int_equal(r->status, status);
        assert_int_equal(r->state, PL_BENCH_DONE);
        assert_int_equal(body.len, strlen(expected));
        assert_memory_equal(body.len ? body.data : "", expected, body.len);
    }
    pl_buf_free(&body);
    free(r);
}

static void bad(const char *text, pl_status status, const char *says)
{
    pl_bench_response *r = malloc(sizeof *r);
    pl_error err;
    pl_buf body;
    pl_buf_init(&body, 1 << 20, "body");
    for (size_t step = 1; step <= strlen(text); step++) {
        assert_fails(status, &err, read_all(r, &body, text, strlen(text), step, &err));
        assert_non_null(strstr(err.message, says));
    }
    pl_buf_free(&body);
    free(r);
}

static void bodies(void **state)
{
    (void)state;
    good("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    good("HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello", 200, "hello");
    good("HTTP/1.0 404 Not Found\r\n\r\nuntil the end", 404, "until the end");
    good("HTTP/1.1 200 OK\nX: y\n\nbare", 200, "bare");
    good("HTTP/1.1 204\r\n\r\n", 204, "");
    good("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "");
    good("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4\r\nhell\r\n1 ; x=\"y\"\r\no\r\n0\r\nA: b\r\n\r\n", 200,
         "hello");
    good("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: "
         "2\r\n\r\nno",
         500, "no");
}

static void what_is_broken(void **state)
{
    (void)state;
    bad("HTTP/2 200\r\n\r\n", PL_EFORMAT, "status line");
    bad("<html>\r\n\r\n", PL_EFORMAT, "status line");
    bad("HTTP/1.1 999 X\r\n\r\n", PL_EFORMAT, "status line");
    bad("HTTP/1.1 101 X\r\n\r\n", PL_EFORMAT, "another protocol");
    bad("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", PL_EFORMAT, "header");
    bad("HTTP/1.1 200 OK\r\nSpace : x\r\n\r\n", PL_EFORMAT, "header");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello", PL_EFORMAT, "5x");
    bad("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", PL_EFORMAT, "-5");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", PL_EFORMAT, "differ");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", PL_EFORMAT, "both");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", PL_EFORMAT, "gzip");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", PL_EFORMAT, "chunk");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", PL_EFORMAT, "longer");
}

static void what_is_cut(void **state)
{
    (void)state;
    const char *whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1\r\no\r\n0\r\n\r\n";
    pl_bench_response *r = malloc(sizeof *r);
    pl_error err;
    pl_buf body;
    pl_buf_init(&body, 1 << 20, "body");
    for (size_t n = 0; n < strlen(whole); n++)
        assert_fails(PL_EFORMAT, &err, read_all(r, &body, whole, n, 7, &err));
    assert_int_equal(read_all(r, &body, whole, strlen(whole), 7, &err), PL_OK);
    bad("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", PL_EFORMAT, "in the middle");
    pl_buf_free(&body);
    free(r);
}

static void caps(void **state)
{
    (void)state;
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff0\r\n", PL_ELIMIT, "chunk");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1fffffffffffffffff\r\n", PL_EFORMAT, "chunk");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", PL_ELIMIT, "MiB");
    pl_bench_response *r = malloc(sizeof *r);
    pl_error err;
    pl_buf body;
    pl_buf_init(&body, 1 << 20, "body");
    char *text = malloc(1 << 20);
    memset(text, 'a', 1 << 20);
    assert_fails(PL_ELIMIT, &err, read_all(r, &body, text, 1 << 20, 4096, &err));
    size_t n = (size_t)sprintf(text, "HTTP/1.1 200 OK\r\n");
    while (n + 64 < 1 << 20)
        n += (size_t)sprintf(text + n, "Header: value\r\n");
    assert_fails(PL_ELIMIT, &err, read_all(r, &body, text, n, 4096, &err));
    n = 0;
    for (int i = 0; i <= PL_BENCH_INTERIM_MAX; i++)
        n += (size_t)sprintf(text + n, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_fails(PL_ELIMIT, &err, read_all(r, &body, text, n, 4096, &err));
    free(text);
    pl_buf_free(&body);
    free(r);
}

static pl_status refuse(void *arg, const char *bytes, size_t n, pl_error *err)
{
    (void)arg, (void)bytes, (void)n;
    return pl_fail(err, PL_ECANCELED, "no more");
}

static void the_readers_failure_is_passed_on(void **state)
{
    (void)state;
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    pl_bench_response *r = malloc(sizeof *r);
    pl_error err;
    pl_bench_response_init(r);
    assert_fails(PL_ECANCELED, &err, pl_bench_response_read(r, text, strlen(text), refuse, NULL, &err));
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies),
        cmocka_unit_test(what_is_broken),
        cmocka_unit_test(what_is_cut),
        cmocka_unit_test(caps),
        cmocka_unit_test(the_readers_failure_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
