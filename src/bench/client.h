/* Requests to one server, started together: an HTTP/1.1 connection each, on one libevent loop of the calling thread.
 *
 * All connections are made first; only then the first byte of a request is sent, so that what is measured begins at one
 * moment (or at steps of `stagger`). */
#ifndef PL_BENCH_CLIENT_H
#define PL_BENCH_CLIENT_H

#include "bench/reply.h"

enum { PL_BENCH_STREAMS_MAX = 512 };

typedef struct pl_bench_url {
    char host[256]; /* a name or an address, without brackets */
    char port[8];
    char path[512];  /* "/v1", without a slash at its end */
    const char *key; /* sent as Authorization: Bearer; "" or NULL: none. Borrowed */
} pl_bench_url;

/* "http://HOST[:PORT][/PATH]"; without a path /v1. PL_EINVAL, and by name for https, which is not spoken. */
pl_status pl_bench_url_read(pl_bench_url *url, const char *text, pl_error *err);

typedef struct pl_bench_request {
    const char *method; /* "GET" or "POST" */
    const char *path;   /* "/models": behind the URL's path; one that begins with "//" replaces it: "//health" */
    const char *body;   /* NUL-terminated JSON, NULL for none */
} pl_bench_request;

typedef struct pl_bench_pace {
    int64_t stagger_ns; /* request i begins i of these after the first */
    int64_t limit_ns;   /* a request that has not ended this long after the beginning of all has failed */
} pl_bench_pace;

/* Send `n` (at most PL_BENCH_STREAMS_MAX) requests; reply[i] (fresh memory of the caller, initialised here) is request
 * i's, failed ones included. A POST is answered by an event stream or has failed. Fails only when nothing could be
 * tried at all: PL_ENOMEM, PL_EIO. */
pl_status pl_bench_client_run(const pl_bench_url *url, const pl_bench_request *request, pl_bench_reply *reply, int n,
                              const pl_bench_pace *pace, pl_error *err);

/* GET path. *body is the JSON of a 200 (owned by the caller) or NULL; *status the HTTP status, 0 without an answer.
 * PL_EIO when there was no answer or no JSON in a 200. */
pl_status pl_bench_client_get(const pl_bench_url *url, const char *path, int64_t limit_ns, int *status, json_t **body,
                              pl_error *err);

#endif
