/* HTTP/1.1 over libevent: a listener, its connections, replies whole or streamed. One thread, the one that runs the
 * event base, calls everything here and receives every callback.
 *
 * evhttp is not used: docs/internals/server.md tells why. */
#ifndef PL_SERVER_HTTP_H
#define PL_SERVER_HTTP_H

#include "server/http_read.h"

struct event_base;

typedef struct pl_http pl_http;
typedef struct pl_http_conn pl_http_conn;

enum {
    PL_HTTP_CONNECTIONS_MAX = 1024, /* further ones are closed at once */
    PL_HTTP_BODIES_MAX = 256 << 20, /* bytes of all bodies received and not read yet -> 503 */
    PL_HTTP_INPUT_MAX =
        64 << 10,          /* bytes read ahead of what is wanted; a client that sends on waits in its own buffer */
    PL_HTTP_LOOK_MS = 500, /* how often such a client's socket is asked whether it left */
    PL_HTTP_EXTRA_MAX = 511,
    /* A stream that has this much unsent should pause: pl_http_unsent. No further request of the connection is read. */
    PL_HTTP_UNSENT_MAX = 256 << 10,
    PL_HTTP_UNSENT_LOW = 64 << 10 /* ... until `drained` is called, at or below this */
};

typedef struct pl_http_handler {
    void *arg;
    /* A whole request. It stays readable (pl_http_request) until the reply ends. Reply now or later, exactly once. */
    void (*request)(void *arg, pl_http_conn *conn);
    /* The bytes were no acceptable request: reply now, with this status. The connection closes afterwards. */
    void (*refused)(void *arg, pl_http_conn *conn, int status, const char *reason);
    /* The client left before its reply ended. conn is dead after the return; user is what pl_http_set_user gave. */
    void (*gone)(void *arg, pl_http_conn *conn, void *user);
    /* A streamed reply has sent what had piled up. */
    void (*drained)(void *arg, pl_http_conn *conn, void *user);
} pl_http_handler;

typedef struct pl_http_times {
    int idle_s;  /* a connection without a request is closed after this */
    int read_s;  /* a request must go on arriving within this, and its head be whole within twice this -> 408 */
    int whole_s; /* head and body must be there within this (and, when nothing more comes, read_s) -> 408 */
    int write_s; /* a client that takes no bytes for this long has left */
} pl_http_times;

/* 75, 30, 300 and 120 seconds. */
extern const pl_http_times pl_http_default_times;

/* Listen on host (an address or a name) and port (0: any free one). PL_EIO with the reason, PL_ENOMEM. base must
 * outlive it. body_max: the largest body, at most PL_HTTP_BODY_MAX. */
pl_status pl_http_open(pl_http **http, struct event_base *base, const char *host, int port, size_t body_max,
                       const pl_http_times *times, const pl_http_handler *handler, pl_error *err);
/* Close the listener and every connection, without callbacks. NULL is allowed. */
void pl_http_close(pl_http *http);
/* No new connections; those that are there go on, and close after their reply. */
void pl_http_stop_listening(pl_http *http);
int pl_http_port(const pl_http *http);
/* Connections that have a request without the end of its reply, or bytes on the way to the client. */
size_t pl_http_busy(const pl_http *http);

/* A connection whose bytes come from `fd`, as if it had been accepted; for tests and the fuzzer. fd is non-blocking. */
pl_status pl_http_adopt(pl_http *http, int fd, pl_error *err);

const pl_http_reader *pl_http_request(const pl_http_conn *conn);
/* Move the body out of the request; the caller frees it. It counts against PL_HTTP_BODIES_MAX until pl_http_body_done,
 * the end of the reply, or the connection's. */
void pl_http_take_body(pl_http_conn *conn, pl_buf *body);
void pl_http_body_done(pl_http_conn *conn);
void pl_http_set_user(pl_http_conn *conn, void *user);

/* Header lines, each "Name: value\r\n", for the reply to this request, whatever it will be; more than PL_HTTP_EXTRA_MAX
 * bytes are left out. */
void pl_http_set_headers(pl_http_conn *conn, const char *lines);

/* A whole reply. headers: further lines, each "Name: value\r\n", or NULL. HEAD gets no body, but its length. */
void pl_http_reply(pl_http_conn *conn, int status, const char *type, const char *headers, const char *body, size_t len);

/* A reply of unknown length: begin, write any number of times, end. Chunked for HTTP/1.1, else up to the close. */
void pl_http_stream_begin(pl_http_conn *conn, int status, const char *type, const char *headers);
void pl_http_stream_write(pl_http_conn *conn, const char *bytes, size_t len);
void pl_http_stream_end(pl_http_conn *conn);
/* Bytes that the client has not taken yet. */
size_t pl_http_unsent(const pl_http_conn *conn);

/* "Not Found"; "Status" for a number without a phrase here. */
const char *pl_http_phrase(int status);

#endif
