/* The request reader: what it takes, what it refuses, and that where the input was cut cannot matter. */
#include "server/http_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Read input in pieces of `step` bytes; returns how many were used. */
static size_t feed(pl_http_reader *r, const char *input, size_t len, size_t step)
{
    size_t used = 0;
    while (used < len && r->state != PL_HTTP_READY && r->state != PL_HTTP_REFUSED) {
        size_t n = len - used < step ? len - used : step, took = pl_http_read(r, input + used, n);
        used += took;
        if (took < n)
            break;
    }
    return used;
}

typedef struct expectation {
    const char *input;
    int status;       /* 0: taken */
    const char *body; /* of one that is taken */
    const char *rest; /* what belongs to the next request */
    int keep_alive;   /* 1, 0 */
} expectation;

#define HOST "Host: x\r\n"

static const expectation taken[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", 0, "", "", 1},
    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\nGET /b", 0, "", "GET /b", 1},
    {"GET /a?b=c HTTP/1.0\r\n\r\n", 0, "", "", 0},
    {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 0, "", "", 1},
    {"GET / HTTP/1.1\r\n" HOST "Connection: foo , CLOSE\r\n\r\n", 0, "", "", 0},
    {"GET / HTTP/1.1\r\n" HOST "Connection: foo\r\nConnection: close\r\n\r\n", 0, "", "", 0},
    {"POST /x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloPOST", 0, "hello", "POST", 1},
    {"POST /x HTTP/1.1\r\n" HOST "content-LENGTH:0\r\n\r\nrest", 0, "", "rest", 1},
    {"POST /x HTTP/1.1\r\n" HOST "Content-Length: \t3 \r\n\r\nabc", 0, "abc", "", 1},
    {"POST /x HTTP/1.1\r\n" HOST "Content-Length: 000000000000000000000003\r\n\r\nabc", 0, "abc", "", 1},
    {"POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\nnext", 0, "hello", "next",
     1},
    {"POST /x HTTP/1.1\r\n" HOST
     "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nh\r\n004\r\nello\r\nA\r\n0123456789\r\n00\r\n"
     "X-Trailer: 1\r\n\r\n",
     0, "hello0123456789", "", 1},
    {"POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "", "", 1},
    {"M-SEARCH * HTTP/1.1\r\n" HOST "X:\r\nY: caf\xc3\xa9 \x80\r\n\r\n", 0, "", "", 1},
};

static const expectation refused[] = {
    /* line ends */
    {"GET / HTTP/1.1\nHost: x\n\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\nHost: x\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400, 0, 0, 0},
    {"\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"\nGET / HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    /* the request line */
    {"GET /\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400, 0, 0, 0},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET / x HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"G\x01T / HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET / http/1.1\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.10\r\n" HOST "\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", 505, 0, 0, 0},
    {"GET / HTTP/2.0\r\n" HOST "\r\n", 505, 0, 0, 0},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 0, 0, 0},
    {"\x16\x03\x01\x02\r\n\r\n", 400, 0, 0, 0},
    /* headers */
    {"GET / HTTP/1.1\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "nocolon\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n", 400, 0, 0, 0},
    {"GET / HTTP/1.1\r\n" HOST "Expect: the worst\r\n\r\n", 417, 0, 0, 0},
    /* body length */
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\nx", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\nx", 413, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\nx", 413, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 0, 0, 0},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, 0, 0, 0},
    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n", 501, 0, 0, 0},
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
    {CHUNKED "g\r\n", 400, 0, 0, 0},
    {CHUNKED "\r\n", 400, 0, 0, 0},
    {CHUNKED "-1\r\n", 400, 0, 0, 0},
    {CHUNKED "1 \r\nx\r\n", 400, 0, 0, 0},
    {CHUNKED "1\nx\r\n", 400, 0, 0, 0},
    {CHUNKED "1\r\nxy\r\n0\r\n\r\n", 400, 0, 0, 0},
    {CHUNKED "2\r\nxy\n0\r\n\r\n", 400, 0, 0, 0},
    {CHUNKED "ffffffffffffffffffff\r\n", 413, 0, 0, 0},
    {CHUNKED "3e9\r\n", 413, 0, 0, 0},
    {CHUNKED "0\r\nbad trailer\r\n\r\n", 400, 0, 0, 0},
    {CHUNKED "0\r\n\x01: x\r\n\r\n", 400, 0, 0, 0},
};

static void good_requests_are_taken_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const expectation *e = &taken[i];
        size_t len = strlen(e->input);
        for (size_t step = 1; step <= len; step++) {
            pl_http_reader r;
            pl_http_reader_init(&r, 1000);
            size_t used = feed(&r, e->input, len, step);
            if (r.state != PL_HTTP_READY)
                fail_msg("case %zu in steps of %zu: %s", i, step, r.state == PL_HTTP_REFUSED ? r.reason : "not ready");
            assert_int_equal(r.body.len, strlen(e->body));
            assert_memory_equal(r.body.data ? r.body.data : "", e->body, r.body.len);
            assert_string_equal(e->input + used, e->rest);
            assert_int_equal(r.keep_alive, e->keep_alive);
            /* The reader is as new afterwards. */
            pl_http_reader_next(&r);
            assert_true(pl_http_reader_idle(&r));
            assert_int_equal(feed(&r, taken[0].input, strlen(taken[0].input), step), strlen(taken[0].input));
            assert_int_equal(r.state, PL_HTTP_READY);
            pl_http_reader_free(&r);
        }
    }
}

static void bad_requests_are_refused_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const expectation *e = &refused[i];
        size_t len = strlen(e->input);
        for (size_t step = 1; step <= len; step++) {
            pl_http_reader r;
            pl_http_reader_init(&r, 1000);
            feed(&r, e->input, len, step);
            if (r.state != PL_HTTP_REFUSED || r.status != e->status)
                fail_msg("case %zu (%s) in steps of %zu: state %d, status %d", i, e->input, step, r.state, r.status);
            assert_true(strlen(r.reason) > 0);
            pl_http_reader_free(&r);
        }
    }
}

static void a_nul_is_refused_in_a_head_and_kept_in_a_body(void **state)
{
    (void)state;
    static const char head[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
    static const char value[] = "GET / HTTP/1.1\r\n" HOST "A: \0\r\n\r\n";
    static const char body[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\na\0b";
    pl_http_reader r;
    pl_http_reader_init(&r, 1000);
    pl_http_read(&r, head, sizeof head - 1);
    assert_int_equal(r.status, 400);
    pl_http_reader_next(&r);
    pl_http_read(&r, value, sizeof value - 1);
    assert_int_equal(r.status, 400);
    pl_http_reader_next(&r);
    assert_int_equal(pl_http_read(&r, body, sizeof body - 1), sizeof body - 1);
    assert_int_equal(r.state, PL_HTTP_READY);
    assert_memory_equal(r.body.data, "a\0b", 3);
    pl_http_reader_free(&r);
}

static void the_parts_of_a_request_are_found(void **state)
{
    (void)state;
    const char *input = "PATCH /v1/x?y HTTP/1.1\r\nhost: a\r\nX-One:  two words \t\r\nx-one: again\r\nEmpty:\r\n"
                        "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
    pl_http_reader r;
    size_t len;
    pl_http_reader_init(&r, 1000);
    assert_int_equal(pl_http_read(&r, input, strlen(input)), strlen(input));
    assert_int_equal(r.state, PL_HTTP_BODY);
    assert_true(r.expects_continue);
    assert_true(pl_http_method_is(&r, "PATCH"));
    assert_false(pl_http_method_is(&r, "PATC"));
    assert_int_equal(r.target_len, 7);
    assert_memory_equal(r.head.data + r.target, "/v1/x?y", 7);
    assert_memory_equal(pl_http_header_get(&r, "x-one", &len), "two words", 9);
    assert_int_equal(len, 9);
    assert_non_null(pl_http_header_get(&r, "empty", &len));
    assert_int_equal(len, 0);
    assert_null(pl_http_header_get(&r, "x-on", &len));
    pl_http_reader_free(&r);
}

/* Feed `lead`, then `unit` again and again; returns the status of the refusal, 0 when it went past max bytes. */
static int flood(const char *lead, const char *unit, size_t max)
{
    pl_http_reader r;
    pl_http_reader_init(&r, SIZE_MAX);
    assert_int_equal(r.body.cap, PL_HTTP_BODY_MAX);
    size_t n = strlen(unit), sent = strlen(lead);
    pl_http_read(&r, lead, sent);
    for (; sent < max && r.state != PL_HTTP_REFUSED; sent += n)
        pl_http_read(&r, unit, n);
    int status = r.state == PL_HTTP_REFUSED ? r.status : 0;
    assert_true(r.head.len <= PL_HTTP_HEAD_MAX);
    pl_http_reader_free(&r);
    return status;
}

static void nothing_grows_past_its_cap(void **state)
{
    (void)state;
    assert_int_equal(flood("GET / HTTP/1.1\r\n", "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 1 << 20),
                     431);
    assert_int_equal(flood("GET /", "aaaaaaaaaaaaaaaa", 1 << 20), 431);
    assert_int_equal(flood("", "G", 1 << 20), 431);
    assert_int_equal(flood(CHUNKED "1;", "eeeeeeeeeeee", 1 << 20), 400);
    assert_int_equal(flood(CHUNKED "0\r\n", "T: t\r\n", 1 << 20), 431);
    assert_int_equal(flood(CHUNKED "0\r\n", "tttttttttttttttt", 1 << 20), 431);

    char *lines = malloc(PL_HTTP_HEAD_MAX);
    size_t at = (size_t)snprintf(lines, 64, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < PL_HTTP_HEADERS_MAX; i++)
        at += (size_t)snprintf(lines + at, 64, "A%d: b\r\n", i);
    at += (size_t)snprintf(lines + at, 64, "\r\n");
    pl_http_reader r;
    pl_http_reader_init(&r, 1000);
    pl_http_read(&r, lines, at);
    assert_int_equal(r.status, 431);
    pl_http_reader_next(&r);
    at = (size_t)snprintf(lines, 64, "GET /");
    memset(lines + at, 'a', PL_HTTP_TARGET_MAX);
    at += PL_HTTP_TARGET_MAX;
    at += (size_t)snprintf(lines + at, 64, " HTTP/1.1\r\n" HOST "\r\n");
    pl_http_read(&r, lines, at);
    assert_int_equal(r.status, 414);
    pl_http_reader_free(&r);
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests_are_taken_however_they_are_cut),
        cmocka_unit_test(bad_requests_are_refused_however_they_are_cut),
        cmocka_unit_test(a_nul_is_refused_in_a_head_and_kept_in_a_body),
        cmocka_unit_test(the_parts_of_a_request_are_found),
        cmocka_unit_test(nothing_grows_past_its_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
