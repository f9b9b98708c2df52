/* Addresses of servers, and those that a server announces. */
#include "base/check.h"
#include "bench/server.h"

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port, *path;
    } good[] = {
        {"http://localhost", "localhost", "80", "/v1"},
        {"http://127.0.0.1:8080", "127.0.0.1", "8080", "/v1"},
        {"http://127.0.0.1:8080/", "127.0.0.1", "8080", "/v1"},
        {"http://127.0.0.1:8080/v1", "127.0.0.1", "8080", "/v1"},
        {"http://127.0.0.1:8080/v1/", "127.0.0.1", "8080", "/v1"},
        {"http://a.b:1/openai/v2//", "a.b", "1", "/openai/v2"},
        {"http://[::1]:8080", "::1", "8080", "/v1"},
        {"http://[::1]", "::1", "80", "/v1"},
    };
    static const char *const bad[] = {
        "",           "localhost:8080", "https://localhost", "ftp://x",     "http://",       "http://:80",
        "http://x:",  "http://x:99999", "http://x:8a",       "http://[::1", "http://[::1]x", "http://x/v1?a=b",
        "http://x y", "http://x/a b",   "http://x/a\r\nb",   "http://x\x01"};
    pl_bench_url url;
    pl_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(pl_bench_url_read(&url, good[i].text, &err), PL_OK);
        assert_string_equal(url.host, good[i].host);
        assert_string_equal(url.port, good[i].port);
        assert_string_equal(url.path, good[i].path);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(PL_EINVAL, &err, pl_bench_url_read(&url, bad[i], &err));
    char *text = malloc(2000);
    memset(text, 'x', 1999);
    memcpy(text, "http://", 7);
    text[1999] = '\0';
    assert_fails(PL_EINVAL, &err, pl_bench_url_read(&url, text, &err));
    free(text);
}

static void announcements(void **state)
{
    (void)state;
    char url[300];
    static const char *const good[] = {"listening on http://127.0.0.1:8080\n",
                                       "loading\nlistening on http://127.0.0.1:8080 now\n",
                                       "listening on nothing\nlistening on http://127.0.0.1:8080\nmore\n"};
    static const char *const none[] = {"", "listening on ",
                                       "listening on http://127.0.0.1:80", /* still being written */
                                       "not listening on http://127.0.0.1:8080\n", "listening on https://x:1\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(pl_bench_server_announced(good[i], strlen(good[i]), url));
        assert_string_equal(url, "http://127.0.0.1:8080");
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(pl_bench_server_announced(none[i], strlen(none[i]), url));
}

static void a_server_that_does_not_start(void **state)
{
    (void)state;
    pl_bench_server server;
    pl_error err;
    assert_fails(PL_EIO, &err, pl_bench_server_start(&server, "echo no memory; exit 3", "", 10, &err));
    assert_non_null(strstr(err.message, "no memory"));
    assert_non_null(strstr(err.message, "ended before it was ready"));
    assert_int_equal(server.group, 0);
    assert_fails(PL_EIO, &err, pl_bench_server_start(&server, "echo here; sleep 60 & sleep 60", "", 0.2, &err));
    assert_non_null(strstr(err.message, "did not say where"));
    assert_fails(PL_EIO, &err,
                 pl_bench_server_start(&server, "trap '' TERM; while :; do sleep 1; done # {port}", "", 0.2, &err));
    assert_non_null(strstr(err.message, "not ready in time"));
    char *command = malloc(PL_BENCH_COMMAND_MAX + 1);
    memset(command, ' ', PL_BENCH_COMMAND_MAX);
    command[PL_BENCH_COMMAND_MAX] = '\0';
    assert_fails(PL_EINVAL, &err, pl_bench_server_start(&server, command, "", 0.2, &err));
    free(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(announcements),
        cmocka_unit_test(a_server_that_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
