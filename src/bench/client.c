/* See client.h. */
#include "bench/client.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_HEAD_MAX = 4096, READ_PIECE = 16384, CONNECT_S = 30 };

/* ---- the address ------------------------------------------------------------------------------------------------ */

static pl_status not_a_url(const char *text, const char *what, pl_error *err)
{
    return pl_fail_param(err, PL_EINVAL, "URL", "%s: expected http://HOST:PORT, found \"%.100s\"", what, text);
}

/* Copy [from, to), every byte of which must be visible ASCII: it goes into a request line. */
static bool copy_part(char *out, size_t room, const char *from, const char *to)
{
    size_t n = (size_t)(to - from);
    if (n == 0 || n >= room)
        return false;
    for (const char *c = from; c < to; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

pl_status pl_bench_url_read(pl_bench_url *url, const char *text, pl_error *err)
{
    memset(url, 0, sizeof *url);
    if (strncmp(text, "https://", 8) == 0)
        return not_a_url(text, "the bench clients speak http only; put a local proxy before a server with TLS", err);
    if (strncmp(text, "http://", 7) != 0)
        return not_a_url(text, "not an address", err);
    const char *host = text + 7, *end = host + strcspn(host, "/"), *port = NULL;
    if (strpbrk(text, "?#"))
        return not_a_url(text, "an address without a query", err);
    bool fine;
    if (*host == '[') {
        const char *close = memchr(host, ']', (size_t)(end - host));
        fine =
            close && copy_part(url->host, sizeof url->host, host + 1, close) && (close[1] == ':' || close + 1 == end);
        port = close && close[1] == ':' ? close + 2 : NULL;
    } else {
        const char *colon = memchr(host, ':', (size_t)(end - host));
        fine = copy_part(url->host, sizeof url->host, host, colon ? colon : end);
        port = colon ? colon + 1 : NULL;
    }
    (void)snprintf(url->port, sizeof url->port, "80");
    if (port)
        fine = fine && copy_part(url->port, sizeof url->port, port, end) &&
               strspn(url->port, "0123456789") == strlen(url->port) && strtol(url->port, NULL, 10) <= 65535;
    const char *stop = end + strlen(end);
    while (stop > end && stop[-1] == '/')
        stop--;
    if (stop > end)
        fine = fine && copy_part(url->path, sizeof url->path, end, stop);
    else
        (void)snprintf(url->path, sizeof url->path, "/v1");
    return fine ? PL_OK : not_a_url(text, "not an address", err);
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

typedef struct batch batch;

typedef struct connection {
    batch *all;
    const pl_bench_request *request;
    pl_bench_reply *reply;
    struct bufferevent *socket; /* NULL once it is over */
    struct event *start;
} connection;

struct batch {
    const pl_bench_url *url;
    const pl_bench_pace *pace;
    struct event_base *base;
    struct event *limit;
    connection *connection; /* [n] */
    int n, live;
};

static void over(connection *c)
{
    if (!c->socket)
        return;
    bufferevent_free(c->socket);
    c->socket = NULL;
    if (--c->all->live == 0)
        event_base_loopbreak(c->all->base);
}

/* What a server says instead of a stream: its own message, in OpenAI's form or as it is. */
static void refused(pl_bench_reply *r)
{
    const char *text = r->plain.data ? r->plain.data : "";
    json_t *json = json_loadb(text, r->plain.len, 0, NULL);
    const json_t *error = json_object_get(json, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    message = message ? message : json_string_value(error);
    if (r->status == 200)
        pl_bench_reply_fail(r, "the answer to a streaming request is no event stream: \"%.120s\"", text);
    else
        pl_bench_reply_fail(r, "HTTP %d: %.300s", r->status, message ? message : text);
    json_decref(json);
}

static void check_end(connection *c, bool ended)
{
    pl_bench_reply *r = c->reply;
    if (!ended)
        return;
    bool stream = r->status == 200 && r->response.event_stream;
    if (!r->failed && c->request->body && !stream)
        refused(r);
    if (!r->failed && c->request->body && !r->done)
        pl_bench_reply_fail(r, "the stream ends without [DONE]");
    over(c);
}

static void on_read(struct bufferevent *socket, void *arg)
{
    connection *c = arg;
    int64_t now = pl_now_ns();
    char bytes[READ_PIECE];
    bool ended = c->reply->ended;
    while (!ended) {
        size_t n = bufferevent_read(socket, bytes, sizeof bytes);
        if (n == 0)
            return;
        ended = pl_bench_reply_bytes(c->reply, bytes, n, now);
    }
    check_end(c, true);
}

static void on_event(struct bufferevent *socket, short what, void *arg)
{
    connection *c = arg;
    (void)socket;
    if (what & BEV_EVENT_EOF) {
        check_end(c, pl_bench_reply_closed(c->reply, pl_now_ns()));
    } else if (what & BEV_EVENT_ERROR) {
        pl_bench_reply_fail(c->reply, "the connection broke: %s", evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
        over(c);
    }
}

static void on_start(evutil_socket_t fd, short what, void *arg)
{
    connection *c = arg;
    const pl_bench_url *url = c->all->url;
    (void)fd, (void)what;
    if (!c->socket)
        return;
    char head[REQUEST_HEAD_MAX];
    bool six = strchr(url->host, ':') != NULL, elsewhere = c->request->path[1] == '/';
    size_t body = c->request->body ? strlen(c->request->body) : 0;
    int n =
        snprintf(head, sizeof head,
                 "%s %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\nAccept: %s\r\nUser-Agent: paceline\r\n"
                 "%s%s%s%s",
                 c->request->method, elsewhere ? "" : url->path, c->request->path + elsewhere, six ? "[" : "",
                 url->host, six ? "]" : "", url->port, body ? "text/event-stream" : "application/json",
                 url->key && *url->key ? "Authorization: Bearer " : "", url->key && *url->key ? url->key : "",
                 url->key && *url->key ? "\r\n" : "", body ? "Content-Type: application/json\r\n" : "");
    struct evbuffer *out = bufferevent_get_output(c->socket);
    c->reply->sent = pl_now_ns();
    bool fine = n > 0 && (size_t)n < sizeof head && evbuffer_add(out, head, (size_t)n) == 0;
    if (body)
        fine = fine && evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", body) > 0 &&
               evbuffer_add(out, c->request->body, body) == 0;
    else
        fine = fine && evbuffer_add_printf(out, "\r\n") > 0;
    if (!fine) {
        pl_bench_reply_fail(c->reply, "the request does not fit");
        over(c);
    }
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    batch *b = arg;
    (void)fd, (void)what;
    for (int i = 0; i < b->n; i++)
        if (b->connection[i].socket) {
            pl_bench_reply_fail(b->connection[i].reply, "no end within %.3g s", (double)b->pace->limit_ns * 1e-9);
            over(&b->connection[i]);
        }
}

/* A socket connected to the first address that answers, or -1 with errno. Blocking: it is not what is measured. */
static int connect_to(const struct addrinfo *addresses, int64_t limit_ns)
{
    int64_t seconds = limit_ns / 1000000000;
    struct timeval wait = {.tv_sec = seconds > CONNECT_S ? CONNECT_S : seconds ? seconds : 1};
    int yes = 1, reason = EADDRNOTAVAIL;
    for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            reason = errno;
            continue;
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* Linux: bounds connect, too */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 && evutil_make_socket_nonblocking(fd) == 0)
            return fd;
        reason = errno == EINPROGRESS ? ETIMEDOUT : errno;
        close(fd);
    }
    errno = reason;
    return -1;
}

static pl_status open_connection(batch *b, connection *c, const struct addrinfo *addresses, pl_error *err)
{
    int fd = connect_to(addresses, b->pace->limit_ns);
    if (fd < 0) {
        pl_bench_reply_fail(c->reply, "%s:%s: %s", b->url->host, b->url->port, strerror(errno));
        return PL_OK;
    }
    c->start = evtimer_new(b->base, on_start, c);
    c->socket = bufferevent_socket_new(b->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!c->socket)
        close(fd);
    if (!c->start || !c->socket)
        return pl_fail(err, PL_ENOMEM, "no memory for the connections");
    b->live++;
    bufferevent_setcb(c->socket, on_read, NULL, on_event, c);
    return bufferevent_enable(c->socket, EV_READ | EV_WRITE) == 0
               ? PL_OK
               : pl_fail(err, PL_EIO, "a connection cannot be watched: %s", strerror(errno));
}

static pl_status begin(batch *b, pl_error *err)
{
    struct timeval limit = {.tv_sec = b->pace->limit_ns / 1000000000, .tv_usec = b->pace->limit_ns / 1000 % 1000000};
    b->limit = evtimer_new(b->base, on_limit, b);
    if (!b->limit || evtimer_add(b->limit, &limit) != 0)
        return pl_fail(err, PL_ENOMEM, "no memory for a timer");
    for (int i = 0; i < b->n; i++) {
        int64_t wait_us = b->pace->stagger_ns / 1000 * i;
        struct timeval wait = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};
        if (!b->connection[i].socket)
            continue;
        if (wait_us == 0)
            event_active(b->connection[i].start, EV_TIMEOUT, 1);
        else if (evtimer_add(b->connection[i].start, &wait) != 0)
            return pl_fail(err, PL_ENOMEM, "no memory for a timer");
    }
    return PL_OK;
}

static pl_status open_batch(batch *b, pl_error *err)
{
    b->connection = calloc((size_t)b->n, sizeof *b->connection);
    b->base = event_base_new();
    if (!b->connection || !b->base)
        return pl_fail(err, PL_ENOMEM, "no memory for the connections");
    return PL_OK;
}

static void close_batch(batch *b)
{
    for (int i = 0; b->connection && i < b->n; i++) {
        if (b->connection[i].socket)
            bufferevent_free(b->connection[i].socket);
        if (b->connection[i].start)
            event_free(b->connection[i].start);
    }
    if (b->limit)
        event_free(b->limit);
    if (b->base)
        event_base_free(b->base);
    free(b->connection);
}

pl_status pl_bench_client_run(const pl_bench_url *url, const pl_bench_request *request, pl_bench_reply *reply, int n,
                              const pl_bench_pace *pace, pl_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *addresses = NULL;
    batch b = {.url = url, .pace = pace, .n = n};
    for (int i = 0; i < n; i++)
        pl_bench_reply_init(&reply[i]);
    if (n < 1 || n > PL_BENCH_STREAMS_MAX)
        return pl_fail(err, PL_EINVAL, "1 to %d requests at once, not %d", PL_BENCH_STREAMS_MAX, n);
    int looked = getaddrinfo(url->host, url->port, &hints, &addresses);
    if (looked != 0)
        return pl_fail(err, PL_EIO, "%s: %s", url->host, gai_strerror(looked));
    pl_status status = open_batch(&b, err);
    for (int i = 0; i < n && status == PL_OK; i++) {
        b.connection[i] = (connection){.all = &b, .request = &request[i], .reply = &reply[i]};
        status = open_connection(&b, &b.connection[i], addresses, err);
    }
    freeaddrinfo(addresses);
    if (status == PL_OK && b.live > 0) {
        status = begin(&b, err);
        if (status == PL_OK && event_base_dispatch(b.base) != 0)
            status = pl_fail(err, PL_EIO, "the event loop ended early");
    }
    close_batch(&b);
    return status;
}

pl_status pl_bench_client_get(const pl_bench_url *url, const char *path, int64_t limit_ns, int *status, json_t **body,
                              pl_error *err)
{
    pl_bench_request request = {.method = "GET", .path = path};
    pl_bench_pace pace = {.limit_ns = limit_ns};
    pl_bench_reply reply;
    *body = NULL;
    *status = 0;
    pl_status result = pl_bench_client_run(url, &request, &reply, 1, &pace, err);
    if (result == PL_OK && reply.failed)
        result = pl_fail(err, PL_EIO, "GET %s: %s", path, reply.error);
    if (result == PL_OK) {
        *status = reply.status;
        if (reply.status == 200 &&
            !(*body = json_loadb(reply.plain.data ? reply.plain.data : "", reply.plain.len, 0, NULL)))
            result = pl_fail(err, PL_EIO, "GET %s: the answer is no JSON", path);
    }
    pl_bench_reply_free(&reply);
    return result;
}
