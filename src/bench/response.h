/* Reading one HTTP/1.1 response, in pieces of any size. No sockets: the fuzz seam of the bench clients.
 *
 * Everything is capped, since a server under test may be anything. What breaks the protocol is an error and never
 * repaired: a response that was cut must not pass for a whole one. */
#ifndef PL_BENCH_RESPONSE_H
#define PL_BENCH_RESPONSE_H

#include "base/status.h"

enum {
    PL_BENCH_LINE_MAX = 8192,  /* bytes of a line of the head, of a chunk's size or a trailer */
    PL_BENCH_HEAD_MAX = 65536, /* bytes of head, interim responses and trailers together */
    PL_BENCH_INTERIM_MAX = 8   /* responses 1xx before the one that counts */
};
#define PL_BENCH_BODY_MAX ((uint64_t)256 << 20)

typedef enum pl_bench_response_state {
    PL_BENCH_STATUS_LINE,
    PL_BENCH_HEADERS,
    PL_BENCH_FIXED,      /* body of Content-Length bytes */
    PL_BENCH_CHUNK_SIZE, /* chunked: the line of a size, then data, then an empty line */
    PL_BENCH_CHUNK_DATA,
    PL_BENCH_CHUNK_END,
    PL_BENCH_TRAILERS,
    PL_BENCH_UNTIL_CLOSE, /* body without a length */
    PL_BENCH_DONE
} pl_bench_response_state;

typedef struct pl_bench_response {
    pl_bench_response_state state;
    int status;        /* 0 until the status line is read */
    bool event_stream; /* Content-Type: text/event-stream */
    /* private */
    char line[PL_BENCH_LINE_MAX];
    size_t line_len, head_len;
    int interim;
    bool has_length, chunked;
    uint64_t left; /* of the fixed body or of the chunk */
    uint64_t body; /* bytes of body so far */
} pl_bench_response;

/* Bytes of the body, in order; not NUL-terminated. A failure ends the reading with that failure. */
typedef pl_status pl_bench_body_fn(void *arg, const char *bytes, size_t n, pl_error *err);

void pl_bench_response_init(pl_bench_response *r);
/* Take n bytes of the connection; those behind the response's end are not looked at. PL_EFORMAT for what is no HTTP/1.x
 * response, PL_ELIMIT past a cap, else what fn returned. After a failure the reader is not used again. */
pl_status pl_bench_response_read(pl_bench_response *r, const char *bytes, size_t n, pl_bench_body_fn *fn, void *arg,
                                 pl_error *err);
/* The server closed the connection. PL_OK when the response was whole (state DONE from then on), else PL_EFORMAT. */
pl_status pl_bench_response_end(pl_bench_response *r, pl_error *err);

#endif
