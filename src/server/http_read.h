/* A strict reader of HTTP/1.1 requests: bytes in, whole requests out. No sockets, no clock: this is what the fuzzer
 * drives.
 *
 * Two programs that read one byte stream differently can be made to disagree about where a request ends. So everything
 * that RFC 9112 lets a reader repair is refused here instead: a bare LF or CR, a folded header, white space before the
 * colon, two Content-Length (even equal ones), Content-Length beside Transfer-Encoding, a coding other than chunked, a
 * control character, a missing or doubled Host. */
#ifndef PL_SERVER_HTTP_READ_H
#define PL_SERVER_HTTP_READ_H

#include "base/buf.h"

enum {
    PL_HTTP_HEAD_MAX = 64 << 10,  /* request line and headers, bytes -> 431 */
    PL_HTTP_TARGET_MAX = 8 << 10, /* -> 414 */
    PL_HTTP_HEADERS_MAX = 100,    /* header lines -> 431 */
    PL_HTTP_BODY_MAX = 64 << 20,  /* body, decoded bytes -> 413 */
    PL_HTTP_CHUNK_LINE_MAX = 256  /* size and extensions of one chunk -> 400 */
};

typedef struct pl_http_header {
    size_t name, name_len; /* offsets into the head */
    size_t value, value_len;
} pl_http_header;

typedef enum pl_http_state {
    PL_HTTP_HEAD,     /* collecting the request line and headers */
    PL_HTTP_BODY,     /* collecting a body of known length */
    PL_HTTP_CHUNK,    /* collecting a chunk's size line */
    PL_HTTP_DATA,     /* a chunk's bytes */
    PL_HTTP_DATA_END, /* the CR LF behind them */
    PL_HTTP_TRAILER,  /* header lines after the last chunk: checked, counted, dropped */
    PL_HTTP_READY,    /* the request is whole */
    PL_HTTP_REFUSED   /* see status and reason */
} pl_http_state;

typedef struct pl_http_reader {
    pl_http_state state;
    int status;         /* REFUSED: the status to answer with */
    const char *reason; /* REFUSED: what was wrong; static storage */

    /* from the head on */
    pl_buf head;       /* as received, up to and including the empty line */
    pl_buf body;       /* decoded */
    size_t method_len; /* the method is head.data[0 .. method_len) */
    size_t target, target_len;
    int minor; /* HTTP/1.minor: 0 or 1 */
    pl_http_header header[PL_HTTP_HEADERS_MAX];
    int headers;
    bool keep_alive;
    bool expects_continue; /* Expect: 100-continue: answer it when state is past HEAD and no body byte has come */

    /* private */
    pl_buf line;
    size_t left; /* bytes of the body or the chunk still to come */
    bool chunked;
    int empty_lines; /* before the request line */
    size_t trailer_bytes;
} pl_http_reader;

/* An empty reader whose body may grow to body_max (at most PL_HTTP_BODY_MAX) bytes. */
void pl_http_reader_init(pl_http_reader *reader, size_t body_max);
void pl_http_reader_free(pl_http_reader *reader);
/* Ready for the next request of the connection: everything forgotten, the small buffers kept. */
void pl_http_reader_next(pl_http_reader *reader);

/* Take bytes in and return how many were used: all of them, unless the request became READY (the rest belongs to the
 * next one) or REFUSED (the rest means nothing). Any way of cutting the input gives the same result. */
size_t pl_http_read(pl_http_reader *reader, const char *bytes, size_t n);

/* Nothing of a request has been read yet? */
bool pl_http_reader_idle(const pl_http_reader *reader);

/* The value of a header by its lower-case name; NULL without it. *len bytes, no NUL behind them. The first of
 * several. */
const char *pl_http_header_get(const pl_http_reader *reader, const char *name, size_t *len);
bool pl_http_method_is(const pl_http_reader *reader, const char *method);

#endif
