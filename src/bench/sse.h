/* Reading text/event-stream (the HTML standard, "server-sent events"), in pieces of any size: the data of each event,
 * other fields and comments left out. An event that the end of the stream cuts is none. */
#ifndef PL_BENCH_SSE_H
#define PL_BENCH_SSE_H

#include "base/buf.h"

enum { PL_BENCH_EVENT_MAX = 4 << 20 }; /* bytes of one event's data, and of one line */

typedef struct pl_bench_sse {
    pl_buf line, data;
    bool after_cr; /* a line feed that comes now belongs to the last line's end */
    bool begun;    /* the first line, which may begin with a byte order mark, is read */
} pl_bench_sse;

/* The data of one event, its lines joined by line feeds; not NUL-terminated. */
typedef pl_status pl_bench_event_fn(void *arg, const char *data, size_t n, pl_error *err);

void pl_bench_sse_init(pl_bench_sse *sse);
void pl_bench_sse_free(pl_bench_sse *sse);
/* PL_ELIMIT past PL_BENCH_EVENT_MAX, PL_ENOMEM, else what fn returned; not used again after a failure. */
pl_status pl_bench_sse_read(pl_bench_sse *sse, const char *bytes, size_t n, pl_bench_event_fn *fn, void *arg,
                            pl_error *err);

#endif
