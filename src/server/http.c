/* Connections and replies. A connection is in one of four phases:
 *
 *   READING --request whole--> HANDLING --stream_begin--> STREAMING
 *      ^                          |  reply / end              |
 *      +------- keep-alive -------+---------------------------+--- close ---> LINGERING -> freed
 *
 * While a request is handled the next one stays in the input buffer, which is bounded, and reading goes on only to
 * learn that the client left; once the buffer is full, a timer asks the socket. LINGERING sends the rest, then its FIN,
 * and reads on for a moment, because closing a socket with unread bytes makes the peer's kernel throw away what we
 * sent. */
#include "server/http.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    LINGER_S = 2,      /* a client that is silent for so long after our FIN is left alone */
    LINGER_MAX_S = 10, /* ... and one that goes on sending after this */
    ACCEPT_PAUSE_MS = 200
};

typedef enum phase { READING, HANDLING, STREAMING, LINGERING } phase;

struct pl_http_conn {
    pl_http *http;
    pl_http_conn *prev, *next;
    struct bufferevent *bev;
    pl_http_reader reader;
    phase phase;
    bool keep_alive;                   /* after this reply */
    bool head_only;                    /* the request was HEAD */
    bool chunked;                      /* the streamed reply is chunked */
    bool deaf;                         /* the client is too far ahead: nothing is read until its turn comes */
    bool fin_sent, eof;                /* our side is closed, the client's side is */
    int64_t linger_ns;                 /* since when the connection is only drained */
    bool in_callback;                  /* a read callback is running: do not start the next request below it */
    size_t counted;                    /* bytes of this body in http->body_bytes */
    int64_t started_ns;                /* when the first byte of the request came */
    char extra[PL_HTTP_EXTRA_MAX + 1]; /* header lines of the reply */
    void *user;
};

struct pl_http {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *accept_again;
    struct event *look; /* pending while a connection may be deaf to its client's leaving */
    pl_http_handler handler;
    pl_http_times times;
    size_t body_max, body_bytes;
    int port;
    bool stopping;
    pl_http_conn *first;
    size_t conns;
};

const pl_http_times pl_http_default_times = {.idle_s = 75, .read_s = 30, .whole_s = 300, .write_s = 120};

static void read_cb(struct bufferevent *bev, void *arg);
static void write_cb(struct bufferevent *bev, void *arg);
static void event_cb(struct bufferevent *bev, short what, void *arg);

static void free_conn(pl_http_conn *c)
{
    pl_http *h = c->http;
    if (c->prev)
        c->prev->next = c->next;
    else
        h->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    h->conns--;
    h->body_bytes -= c->counted;
    pl_http_reader_free(&c->reader);
    bufferevent_free(c->bev); /* closes the socket */
    free(c);
}

static void set_timeouts(pl_http_conn *c, int read_s)
{
    struct timeval r = {.tv_sec = read_s}, w = {.tv_sec = c->http->times.write_s};
    bufferevent_set_timeouts(c->bev, read_s > 0 ? &r : NULL, &w);
}

/* A client that asks on and on and takes no reply would fill our memory with replies. */
static bool owes_reading(const pl_http_conn *c)
{
    return pl_http_unsent(c) > PL_HTTP_UNSENT_MAX;
}

static void look_later(pl_http *h)
{
    struct timeval after = {.tv_usec = PL_HTTP_LOOK_MS * 1000};
    if (!evtimer_pending(h->look, NULL))
        evtimer_add(h->look, &after);
}

/* A full input buffer with reading on would have libevent call us for ever (bufferevent_inbuf_wm_check). Its client's
 * end would then be seen only behind all that it sent: look_cb asks for it. */
static void stop_hearing(pl_http_conn *c)
{
    bool wait =
        c->phase == READING ? owes_reading(c) : evbuffer_get_length(bufferevent_get_input(c->bev)) >= PL_HTTP_INPUT_MAX;
    if (c->phase == LINGERING || !wait)
        return;
    c->deaf = true;
    bufferevent_disable(c->bev, EV_READ);
    look_later(c->http);
}

static void hear_again(pl_http_conn *c)
{
    if (c->deaf)
        bufferevent_enable(c->bev, EV_READ);
    c->deaf = false;
}

/* Our last byte is in the output: send it, then our FIN, then wait for the client's. */
static void linger(pl_http_conn *c)
{
    c->phase = LINGERING;
    if (evbuffer_get_length(bufferevent_get_input(c->bev)))
        evbuffer_drain(bufferevent_get_input(c->bev), SIZE_MAX);
    hear_again(c);
    if (evbuffer_get_length(bufferevent_get_output(c->bev)))
        return; /* write_cb comes back here */
    if (!c->fin_sent) {
        shutdown(bufferevent_getfd(c->bev), SHUT_WR);
        c->fin_sent = true;
        c->linger_ns = pl_now_ns();
        set_timeouts(c, LINGER_S);
    }
}

/* A request that came early is read in a turn of its own, so that a pipeline cannot grow the stack. */
static void read_what_came(pl_http_conn *c)
{
    hear_again(c);
    if (!c->in_callback && evbuffer_get_length(bufferevent_get_input(c->bev)))
        bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void await_request(pl_http_conn *c)
{
    pl_http_body_done(c);
    c->user = NULL;
    c->extra[0] = '\0';
    pl_http_reader_next(&c->reader);
    c->phase = READING;
    set_timeouts(c, c->http->times.idle_s);
    read_what_came(c);
}

static void end_reply(pl_http_conn *c)
{
    if (c->keep_alive && !c->http->stopping)
        await_request(c);
    else
        linger(c);
}

static void hand_over(pl_http_conn *c)
{
    pl_http *h = c->http;
    c->phase = HANDLING;
    set_timeouts(c, 0);
    c->head_only = false;
    if (c->reader.state == PL_HTTP_REFUSED) {
        c->keep_alive = false;
        pl_buf_free(
            &c->reader.body); /* it counts no longer: else one that is too much has the others refused as well */
        pl_http_body_done(c);
        h->handler.refused(h->handler.arg, c, c->reader.status, c->reader.reason);
        return;
    }
    c->keep_alive = c->reader.keep_alive;
    c->head_only = pl_http_method_is(&c->reader, "HEAD");
    h->handler.request(h->handler.arg, c);
}

static void refuse(pl_http_conn *c, int status, const char *reason)
{
    c->reader.state = PL_HTTP_REFUSED;
    c->reader.status = status;
    c->reader.reason = reason;
}

/* Curl and others wait for this before they send a large body. */
static void send_continue(pl_http_conn *c)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!c->reader.expects_continue || c->reader.state == PL_HTTP_HEAD || c->reader.state == PL_HTTP_READY ||
        c->reader.state == PL_HTTP_REFUSED)
        return;
    c->reader.expects_continue = false;
    if (c->reader.body.len == 0)
        evbuffer_add(bufferevent_get_output(c->bev), line, sizeof line - 1);
}

static void count_body(pl_http_conn *c)
{
    pl_http *h = c->http;
    h->body_bytes += c->reader.body.len - c->counted;
    c->counted = c->reader.body.len;
    if (h->body_bytes > PL_HTTP_BODIES_MAX && c->reader.state != PL_HTTP_REFUSED)
        refuse(c, 503, "too many large requests at once");
}

/* Bytes that go on coming hold off the read timeout, so they are counted against the clock as a whole. */
static void check_pace(pl_http_conn *c)
{
    const pl_http_times *t = &c->http->times;
    int64_t took = pl_now_ns() - c->started_ns;
    if (c->reader.state == PL_HTTP_READY || c->reader.state == PL_HTTP_REFUSED)
        return;
    if (c->reader.state == PL_HTTP_HEAD && took > (int64_t)2 * t->read_s * 1000000000)
        refuse(c, 408, "the request head took too long");
    else if (took > (int64_t)t->whole_s * 1000000000)
        refuse(c, 408, "the request took too long");
}

/* Feed the reader with what is there. */
static void read_some(pl_http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    if (pl_http_reader_idle(&c->reader)) {
        c->started_ns = pl_now_ns();
        set_timeouts(c, c->http->times.read_s);
    }
    while (c->reader.state != PL_HTTP_READY && c->reader.state != PL_HTTP_REFUSED) {
        struct evbuffer_iovec piece;
        if (evbuffer_peek(in, -1, NULL, &piece, 1) < 1 || piece.iov_len == 0)
            break;
        size_t used = pl_http_read(&c->reader, piece.iov_base, piece.iov_len);
        evbuffer_drain(in, used);
    }
    count_body(c);
    check_pace(c);
    send_continue(c);
}

static void read_cb(struct bufferevent *bev, void *arg)
{
    pl_http_conn *c = arg;
    if (c->phase == LINGERING) {
        evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
        if (c->fin_sent && pl_now_ns() - c->linger_ns > (int64_t)LINGER_MAX_S * 1000000000)
            free_conn(c);
        return;
    }
    c->in_callback = true;
    while (c->phase == READING && !owes_reading(c) && evbuffer_get_length(bufferevent_get_input(bev))) {
        read_some(c);
        if (c->reader.state == PL_HTTP_READY || c->reader.state == PL_HTTP_REFUSED)
            hand_over(c);
        else
            break;
    }
    c->in_callback = false;
    stop_hearing(c);
}

static void write_cb(struct bufferevent *bev, void *arg)
{
    (void)bev;
    pl_http_conn *c = arg;
    if (c->phase == LINGERING) {
        linger(c);
        if (c->fin_sent && c->eof)
            free_conn(c);
    } else if (c->phase == STREAMING) {
        c->http->handler.drained(c->http->handler.arg, c, c->user);
    } else if (c->phase == READING && c->deaf) {
        read_what_came(c);
    }
}

/* The client left, or its connection broke. */
static void lost(pl_http_conn *c)
{
    if (c->phase == HANDLING || c->phase == STREAMING)
        c->http->handler.gone(c->http->handler.arg, c, c->user);
    free_conn(c);
}

/* Clients that sent far ahead and then left: their sockets know, though nothing is read from them. */
static void look_cb(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl_http *h = arg;
    bool again = false;
    for (pl_http_conn *c = h->first, *next; c; c = next) {
        next = c->next;
        if (!c->deaf || (c->phase != HANDLING && c->phase != STREAMING))
            continue;
        struct pollfd p = {.fd = bufferevent_getfd(c->bev), .events = POLLRDHUP};
        if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
            lost(c);
        else
            again = true;
    }
    if (again)
        look_later(h);
}

static void event_cb(struct bufferevent *bev, short what, void *arg)
{
    pl_http_conn *c = arg;
    if ((what & BEV_EVENT_TIMEOUT) && (what & BEV_EVENT_READING) && c->phase == READING) {
        bufferevent_enable(bev, EV_READ); /* a timeout switches reading off */
        if (!pl_http_reader_idle(&c->reader)) {
            refuse(c, 408, "the request stopped arriving");
            hand_over(c);
            return;
        }
        if (pl_http_unsent(c)) /* not idle: it still takes its last reply, at its own pace */
            return;
    }
    /* A client that sends its requests and closes its half at once still gets the replies that are on their way. */
    if ((what & BEV_EVENT_EOF) && !c->fin_sent && (c->phase == READING || c->phase == LINGERING) &&
        evbuffer_get_length(bufferevent_get_output(bev))) {
        c->eof = true;
        linger(c);
        return;
    }
    if (c->phase == LINGERING && !c->fin_sent && !(what & (BEV_EVENT_ERROR | BEV_EVENT_WRITING)))
        return;
    lost(c);
}

pl_status pl_http_adopt(pl_http *h, int fd, pl_error *err)
{
    pl_http_conn *c = calloc(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        free(c);
        close(fd);
        return pl_fail(err, PL_ENOMEM, "no memory for a connection");
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails for a socket pair, which has no delay either */
    c->http = h;
    c->bev = bev;
    c->next = h->first;
    if (h->first)
        h->first->prev = c;
    h->first = c;
    h->conns++;
    pl_http_reader_init(&c->reader, h->body_max);
    bufferevent_setcb(bev, read_cb, write_cb, event_cb, c);
    bufferevent_setwatermark(bev, EV_READ, 0, PL_HTTP_INPUT_MAX);
    bufferevent_setwatermark(bev, EV_WRITE, PL_HTTP_UNSENT_LOW, 0);
    set_timeouts(c, h->times.idle_s);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    return PL_OK;
}

static void accept_cb(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int from_len,
                      void *arg)
{
    (void)listener, (void)from, (void)from_len;
    pl_http *h = arg;
    pl_error err;
    if (h->conns >= PL_HTTP_CONNECTIONS_MAX)
        close(fd);
    else if (pl_http_adopt(h, fd, &err) != PL_OK)
        pl_log(PL_LOG_WARNING, "%s", err.message);
}

static void accept_again_cb(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl_http *h = arg;
    if (h->listener)
        evconnlistener_enable(h->listener);
}

/* Out of descriptors, most likely: the pending connection would make the loop spin. */
static void accept_error_cb(struct evconnlistener *listener, void *arg)
{
    pl_http *h = arg;
    pl_log(PL_LOG_WARNING, "accept: %s", strerror(errno));
    evconnlistener_disable(listener);
    struct timeval pause = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
    evtimer_add(h->accept_again, &pause);
}

static int bound_port(int fd)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if (at.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&at)->sin6_port);
    return ntohs(((struct sockaddr_in *)&at)->sin_port);
}

static pl_status listen_on(pl_http *h, const char *host, int port, pl_error *err)
{
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(host, service, &hints, &found);
    if (rc)
        return pl_fail_param(err, PL_EIO, "host", "host \"%s\": %s", host, gai_strerror(rc));
    int error = 0;
    for (struct addrinfo *a = found; a && !h->listener; a = a->ai_next) {
        h->listener = evconnlistener_new_bind(h->base, accept_cb, h,
                                              LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC, -1,
                                              a->ai_addr, (int)a->ai_addrlen);
        error = errno;
    }
    freeaddrinfo(found);
    if (!h->listener)
        return pl_fail_param(err, PL_EIO, "port", "cannot listen on %s port %d: %s", host, port, strerror(error));
    evconnlistener_set_error_cb(h->listener, accept_error_cb);
    h->port = bound_port(evconnlistener_get_fd(h->listener));
    return PL_OK;
}

pl_status pl_http_open(pl_http **out, struct event_base *base, const char *host, int port, size_t body_max,
                       const pl_http_times *times, const pl_http_handler *handler, pl_error *err)
{
    *out = NULL;
    pl_http *h = calloc(1, sizeof *h);
    if (!h)
        return pl_fail(err, PL_ENOMEM, "no memory for the server");
    h->base = base;
    h->handler = *handler;
    h->times = *times;
    h->body_max = body_max;
    h->accept_again = evtimer_new(base, accept_again_cb, h);
    h->look = evtimer_new(base, look_cb, h);
    pl_status status = h->accept_again && h->look ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the server");
    if (status == PL_OK && host)
        status = listen_on(h, host, port, err);
    if (status != PL_OK) {
        pl_http_close(h);
        return status;
    }
    *out = h;
    return PL_OK;
}

void pl_http_stop_listening(pl_http *h)
{
    h->stopping = true;
    if (h->listener)
        evconnlistener_free(h->listener);
    h->listener = NULL;
    for (pl_http_conn *c = h->first, *next; c; c = next) {
        next = c->next;
        if (c->phase == READING && pl_http_reader_idle(&c->reader))
            linger(c);
    }
}

void pl_http_close(pl_http *h)
{
    if (!h)
        return;
    if (h->listener)
        evconnlistener_free(h->listener);
    while (h->first)
        free_conn(h->first);
    if (h->accept_again)
        event_free(h->accept_again);
    if (h->look)
        event_free(h->look);
    free(h);
}

int pl_http_port(const pl_http *h)
{
    return h->port;
}

size_t pl_http_busy(const pl_http *h)
{
    size_t busy = 0;
    for (const pl_http_conn *c = h->first; c; c = c->next)
        busy += c->phase == HANDLING || c->phase == STREAMING || pl_http_unsent(c) > 0;
    return busy;
}

const pl_http_reader *pl_http_request(const pl_http_conn *c)
{
    return &c->reader;
}

void pl_http_take_body(pl_http_conn *c, pl_buf *body)
{
    *body = c->reader.body;
    pl_buf_init(&c->reader.body, body->cap, body->name);
}

void pl_http_body_done(pl_http_conn *c)
{
    c->http->body_bytes -= c->counted;
    c->counted = 0;
}

void pl_http_set_user(pl_http_conn *c, void *user)
{
    c->user = user;
}

size_t pl_http_unsent(const pl_http_conn *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

void pl_http_set_headers(pl_http_conn *c, const char *lines)
{
    size_t len = strlen(lines);
    if (len <= PL_HTTP_EXTRA_MAX)
        memcpy(c->extra, lines, len + 1);
}

/* Status line and headers. length < 0: none is told. */
static void put_head(pl_http_conn *c, int status, const char *type, const char *headers, int64_t length)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, pl_http_phrase(status), date);
    if (type)
        evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
    if (length >= 0 && status != 204)
        evbuffer_add_printf(out, "Content-Length: %lld\r\n", (long long)length);
    if (c->chunked)
        evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
    if (c->http->stopping)
        c->keep_alive = false;
    evbuffer_add_printf(out, "Connection: %s\r\n%s%s\r\n", c->keep_alive ? "keep-alive" : "close", c->extra,
                        headers ? headers : "");
}

void pl_http_reply(pl_http_conn *c, int status, const char *type, const char *headers, const char *body, size_t len)
{
    c->chunked = false;
    put_head(c, status, type, headers, (int64_t)len);
    if (!c->head_only && len)
        evbuffer_add(bufferevent_get_output(c->bev), body, len);
    end_reply(c);
}

void pl_http_stream_begin(pl_http_conn *c, int status, const char *type, const char *headers)
{
    c->phase = STREAMING;
    c->chunked = c->reader.minor == 1;
    if (!c->chunked)
        c->keep_alive = false;
    put_head(c, status, type, headers, -1);
}

void pl_http_stream_write(pl_http_conn *c, const char *bytes, size_t len)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (len == 0 || c->head_only)
        return;
    if (c->chunked)
        evbuffer_add_printf(out, "%zx\r\n", len);
    evbuffer_add(out, bytes, len);
    if (c->chunked)
        evbuffer_add(out, "\r\n", 2);
}

void pl_http_stream_end(pl_http_conn *c)
{
    if (c->chunked && !c->head_only)
        evbuffer_add(bufferevent_get_output(c->bev), "0\r\n\r\n", 5);
    end_reply(c);
}
