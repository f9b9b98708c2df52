/* Connections over socket pairs: time limits, clients that leave or do not read, what is read ahead. */
#include "server/http.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct bench {
    struct event_base *base;
    pl_http *http;
    int client;         /* non-blocking */
    pl_http_conn *conn; /* of the last request */
    int requests, refused, gone, drained;
    int status;  /* of the last refusal */
    bool answer; /* answer requests at once, with "ok" or this */
    const char *body;
    size_t body_len;
} bench;

static const char get[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

static void on_request(void *arg, pl_http_conn *conn)
{
    bench *b = arg;
    b->requests++;
    b->conn = conn;
    pl_http_set_user(conn, b);
    if (b->answer)
        pl_http_reply(conn, 200, "text/plain", NULL, b->body ? b->body : "ok", b->body ? b->body_len : 2);
}

static void on_refused(void *arg, pl_http_conn *conn, int status, const char *reason)
{
    bench *b = arg;
    b->refused++;
    b->status = status;
    pl_http_reply(conn, status, "text/plain", NULL, reason, strlen(reason));
}

static void on_gone(void *arg, pl_http_conn *conn, void *user)
{
    bench *b = arg;
    assert_ptr_equal(user, b);
    assert_ptr_equal(conn, b->conn);
    b->gone++;
    b->conn = NULL;
}

static void on_drained(void *arg, pl_http_conn *conn, void *user)
{
    bench *b = arg;
    assert_ptr_equal(user, b);
    assert_true(pl_http_unsent(conn) <= PL_HTTP_UNSENT_LOW);
    b->drained++;
}

static void connect_client(bench *b)
{
    int pair[2];
    pl_error err;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(pl_http_adopt(b->http, pair[1], &err), PL_OK);
    b->client = pair[0];
}

static void open_bench(bench *b)
{
    pl_error err;
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    b->answer = true;
    pl_http_times times = {.idle_s = 1, .read_s = 1, .whole_s = 3, .write_s = 1};
    pl_http_handler handler = {
        .arg = b, .request = on_request, .refused = on_refused, .gone = on_gone, .drained = on_drained};
    assert_int_equal(pl_http_open(&b->http, b->base, NULL, 0, 1000, &times, &handler, &err), PL_OK);
    connect_client(b);
}

static void close_bench(bench *b)
{
    pl_http_close(b->http);
    event_base_free(b->base);
    if (b->client >= 0)
        close(b->client);
}

static void turn(bench *b)
{
    event_base_loop(b->base, EVLOOP_NONBLOCK);
    usleep(2000);
}

/* Turn for so long, or until *stop is not 0. */
static void run(bench *b, int ms, const int *stop)
{
    for (int64_t until = pl_now_ns() + (int64_t)ms * 1000000; pl_now_ns() < until && !(stop && *stop);)
        turn(b);
}

/* Send a request that is not answered yet. */
static void ask(bench *b)
{
    int before = b->requests;
    b->answer = false;
    assert_int_equal(send(b->client, get, sizeof get - 1, MSG_NOSIGNAL), sizeof get - 1);
    for (int64_t until = pl_now_ns() + 5000000000; pl_now_ns() < until && b->requests == before;)
        turn(b);
    assert_non_null(b->conn);
}

static void put(bench *b, const char *text)
{
    assert_int_equal(send(b->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Read for at most `ms`, until the text holds `mark` or the server closes; returns whether it closed. */
static bool take(bench *b, char *text, size_t cap, const char *mark, int ms)
{
    size_t len = 0;
    for (int64_t until = pl_now_ns() + (int64_t)ms * 1000000; pl_now_ns() < until;) {
        turn(b);
        text[len] = '\0';
        if (mark && strstr(text, mark))
            return false;
        ssize_t n = recv(b->client, text + len, cap - 1 - len, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return true;
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = '\0';
    return false;
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
    (void)state;
    bench b;
    char text[1000] = "";
    open_bench(&b);
    put(&b, get);
    assert_false(take(&b, text, sizeof text, "ok", 2000));
    assert_non_null(strstr(text, "ok"));
    int64_t began = pl_now_ns();
    assert_true(take(&b, text, sizeof text, NULL, 5000));
    assert_string_equal(text, "");
    assert_true(pl_now_ns() - began > 700000000);
    close_bench(&b);
}

static void a_request_that_stops_arriving_is_408(void **state)
{
    (void)state;
    static const char *const parts[] = {"GET /x HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"};
    for (int i = 0; i < 2; i++) {
        bench b;
        char text[1000] = "";
        open_bench(&b);
        put(&b, parts[i]);
        assert_true(take(&b, text, sizeof text, NULL, 5000)); /* answered, then closed */
        assert_int_equal(b.status, 408);
        assert_int_equal(b.requests, 0);
        assert_non_null(strstr(text, "408 Request Timeout"));
        close_bench(&b);
    }
}

static void a_head_that_trickles_is_408(void **state)
{
    (void)state;
    bench b;
    char text[1000] = "";
    open_bench(&b);
    int64_t began = pl_now_ns();
    while (!b.refused && pl_now_ns() - began < 10000000000) {
        if (send(b.client, "a", 1, MSG_NOSIGNAL) < 0)
            break;
        run(&b, 100, NULL);
    }
    assert_int_equal(b.status, 408);
    assert_true(pl_now_ns() - began > 1900000000);
    take(&b, text, sizeof text, "408", 1000);
    assert_non_null(strstr(text, "408"));
    close_bench(&b);
}

/* Each byte holds off the limit on silence; the request as a whole has one too. */
static void a_body_that_trickles_is_408(void **state)
{
    (void)state;
    static const char *const heads[] = {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n",
                                        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n384\r\n"};
    for (int i = 0; i < 2; i++) {
        bench b;
        char text[1000] = "";
        open_bench(&b);
        put(&b, heads[i]);
        int64_t began = pl_now_ns();
        while (!b.refused && pl_now_ns() - began < 10000000000) {
            if (send(b.client, "a", 1, MSG_NOSIGNAL) < 0)
                break;
            run(&b, 100, NULL);
        }
        assert_int_equal(b.status, 408);
        assert_int_equal(b.requests, 0);
        assert_true(pl_now_ns() - began > 2900000000);
        assert_true(pl_now_ns() - began < 9000000000);
        take(&b, text, sizeof text, "408", 1000);
        assert_non_null(strstr(text, "408"));
        close_bench(&b);
    }
}

static void a_client_that_takes_nothing_has_left(void **state)
{
    (void)state;
    bench b;
    static char block[1 << 20];
    open_bench(&b);
    ask(&b);
    pl_http_stream_begin(b.conn, 200, "text/plain", NULL);
    pl_http_stream_write(b.conn, block, sizeof block);
    assert_true(pl_http_unsent(b.conn) > PL_HTTP_UNSENT_MAX);
    run(&b, 8000, &b.gone);
    assert_int_equal(b.gone, 1);
    assert_int_equal(b.drained, 0);
    close_bench(&b);
}

static void a_stream_is_told_when_it_may_go_on(void **state)
{
    (void)state;
    bench b;
    static char block[1 << 20], sink[1 << 21];
    memset(block, 'x', sizeof block);
    open_bench(&b);
    ask(&b);
    pl_http_stream_begin(b.conn, 200, "text/plain", NULL);
    pl_http_stream_write(b.conn, block, sizeof block);
    take(&b, sink, sizeof sink, NULL, 1000);
    assert_true(b.drained >= 1);
    assert_int_equal(pl_http_unsent(b.conn), 0);
    pl_http_stream_write(b.conn, "end", 3);
    pl_http_stream_end(b.conn);
    assert_false(take(&b, sink, sizeof sink, "0\r\n\r\n", 2000));
    assert_string_equal(sink, "3\r\nend\r\n0\r\n\r\n");
    /* The connection is good for the next request. */
    b.answer = true;
    put(&b, get);
    assert_false(take(&b, sink, sizeof sink, "ok", 2000));
    assert_non_null(strstr(sink, "ok"));
    close_bench(&b);
}

static void leaving_is_noticed_while_nothing_is_sent(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    ask(&b);
    run(&b, 1500, NULL); /* longer than every time limit: none of them holds while we work */
    assert_int_equal(b.gone, 0);
    assert_non_null(b.conn);
    close(b.client);
    b.client = -1;
    run(&b, 2000, &b.gone);
    assert_int_equal(b.gone, 1);
    assert_int_equal(pl_http_busy(b.http), 0);
    close_bench(&b);
}

/* What it sent ahead fills the buffer, so that nothing is read any more and its end lies behind unread bytes. */
static void leaving_is_noticed_behind_a_full_buffer(void **state)
{
    (void)state;
    for (int streaming = 0; streaming < 2; streaming++) {
        bench b;
        open_bench(&b);
        ask(&b);
        if (streaming)
            pl_http_stream_begin(b.conn, 200, "text/plain", NULL);
        static char block[1 << 16];
        memset(block, 'G', sizeof block);
        size_t sent = 0;
        for (int64_t until = pl_now_ns() + 300000000; pl_now_ns() < until;) {
            ssize_t n = send(b.client, block, sizeof block, MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            turn(&b);
        }
        assert_true(sent > PL_HTTP_INPUT_MAX);
        run(&b, 1500, NULL); /* it is looked at, and stays */
        assert_int_equal(b.gone, 0);
        close(b.client);
        b.client = -1;
        run(&b, 4 * PL_HTTP_LOOK_MS, &b.gone);
        assert_int_equal(b.gone, 1);
        assert_int_equal(pl_http_busy(b.http), 0);
        close_bench(&b);
    }
}

static void what_is_read_ahead_is_bounded(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    ask(&b);
    static char block[1 << 16];
    memset(block, 'G', sizeof block);
    size_t sent = 0;
    for (int64_t until = pl_now_ns() + 1000000000; pl_now_ns() < until;) {
        ssize_t n = send(b.client, block, sizeof block, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn(&b);
    }
    assert_true(sent < PL_HTTP_INPUT_MAX + (4 << 20)); /* the input buffer and the kernel's own, not a second's worth */
    assert_int_equal(b.requests, 1);
    /* Its turn comes after the reply, and reading goes on where it stopped. */
    pl_http_reply(b.conn, 200, "text/plain", NULL, "ok", 2);
    run(&b, 3000, &b.refused);
    assert_int_equal(b.status, 431);
    close_bench(&b);
}

/* Asking is cheap and replies are long: who reads none of them is heard no further. */
static void replies_that_nobody_takes_are_bounded(void **state)
{
    (void)state;
    bench b;
    enum { MANY = 1000, EACH = sizeof get - 1 };
    static char reply[16 << 10], sink[1 << 20], asked[MANY * EACH];
    memset(reply, 'r', sizeof reply);
    open_bench(&b);
    b.body = reply;
    b.body_len = sizeof reply;
    for (size_t i = 0; i < MANY; i++)
        memcpy(asked + i * EACH, get, EACH);
    assert_int_equal(send(b.client, asked, sizeof asked, MSG_NOSIGNAL), sizeof asked);
    run(&b, 500, NULL);
    assert_true(b.requests < MANY);
    assert_true(pl_http_unsent(b.conn) < PL_HTTP_UNSENT_MAX + 2 * sizeof reply);
    /* Who begins to read gets every reply. */
    for (int64_t until = pl_now_ns() + 20000000000; pl_now_ns() < until && b.requests < MANY;) {
        while (recv(b.client, sink, sizeof sink, 0) > 0)
            ;
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(b.requests, MANY);
    assert_int_equal(b.gone + b.refused, 0);
    close_bench(&b);
}

static void a_reply_may_be_taken_for_longer_than_an_idle_connection_lasts(void **state)
{
    (void)state;
    bench b;
    static char reply[2 << 20], sink[8192];
    memset(reply, 'r', sizeof reply);
    open_bench(&b);
    ask(&b);
    pl_http_reply(b.conn, 200, "text/plain", NULL, reply, sizeof reply);
    size_t taken = 0;
    for (int i = 0; i < 25; i++) { /* a little every 100 ms: 2.5 seconds, and no write limit is reached */
        for (int k = 0; k < 8; k++) {
            ssize_t n = recv(b.client, sink, sizeof sink, 0);
            assert_int_not_equal(n, 0);
            taken += n > 0 ? (size_t)n : 0;
        }
        run(&b, 100, NULL);
    }
    for (int64_t until = pl_now_ns() + 5000000000; pl_now_ns() < until && taken < sizeof reply;) {
        ssize_t n = recv(b.client, sink, sizeof sink, 0);
        assert_int_not_equal(n, 0);
        taken += n > 0 ? (size_t)n : 0;
        event_base_loop(b.base, EVLOOP_NONBLOCK);
    }
    assert_true(taken >= sizeof reply);
    close_bench(&b);
}

static void requests_of_a_pipeline_wait_for_their_turn(void **state)
{
    (void)state;
    bench b;
    char text[4000] = "";
    open_bench(&b);
    ask(&b);
    put(&b, get);
    put(&b, "nonsense\r\n\r\n");
    run(&b, 50, NULL);
    assert_int_equal(b.requests, 1);
    b.answer = true;
    pl_http_reply(b.conn, 200, "text/plain", NULL, "first", 5);
    assert_true(take(&b, text, sizeof text, NULL, 4000));
    assert_int_equal(b.requests, 2);
    assert_int_equal(b.status, 400);
    const char *first = strstr(text, "first"), *second = first ? strstr(first, "ok") : NULL;
    assert_non_null(second);
    assert_non_null(strstr(second, "HTTP/1.1 400"));
    close_bench(&b);
}

static void a_server_that_stops_closes_idle_connections_and_lets_replies_end(void **state)
{
    (void)state;
    bench b;
    char text[1000] = "";
    open_bench(&b);
    ask(&b);
    int busy = b.client;
    connect_client(&b);
    int idle = b.client;
    pl_http_stop_listening(b.http);
    assert_true(take(&b, text, sizeof text, NULL, 2000));
    assert_int_equal(pl_http_busy(b.http), 1);
    pl_http_reply(b.conn, 200, "text/plain", NULL, "done", 4);
    b.client = busy;
    assert_true(take(&b, text, sizeof text, NULL, 2000));
    assert_non_null(strstr(text, "Connection: close"));
    assert_non_null(strstr(text, "done"));
    close(idle);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_is_closed_without_a_word),
        cmocka_unit_test(a_request_that_stops_arriving_is_408),
        cmocka_unit_test(a_head_that_trickles_is_408),
        cmocka_unit_test(a_body_that_trickles_is_408),
        cmocka_unit_test(a_client_that_takes_nothing_has_left),
        cmocka_unit_test(a_stream_is_told_when_it_may_go_on),
        cmocka_unit_test(leaving_is_noticed_while_nothing_is_sent),
        cmocka_unit_test(leaving_is_noticed_behind_a_full_buffer),
        cmocka_unit_test(what_is_read_ahead_is_bounded),
        cmocka_unit_test(replies_that_nobody_takes_are_bounded),
        cmocka_unit_test(a_reply_may_be_taken_for_longer_than_an_idle_connection_lasts),
        cmocka_unit_test(requests_of_a_pipeline_wait_for_their_turn),
        cmocka_unit_test(a_server_that_stops_closes_idle_connections_and_lets_replies_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
