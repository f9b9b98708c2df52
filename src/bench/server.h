/* A server under test: started by a shell command in a process group of its own, asked until it is ready, ended. One
 * at a time in a process. */
#ifndef PL_BENCH_SERVER_H
#define PL_BENCH_SERVER_H

#include "bench/client.h"

#include <sys/types.h>

enum { PL_BENCH_COMMAND_MAX = 8192, PL_BENCH_MODEL_MAX = 256 };

typedef struct pl_bench_server {
    pid_t group; /* its leader is our child; 0: none runs */
    int log;     /* its standard output and error: a file without a name, -1 without */
    pl_bench_url url;
} pl_bench_server;

/* Run `command` with /bin/sh and wait until GET /models answers 200 (and /health, if there is one, no longer 503).
 * Where it holds "{port}" a free port is put there and the server expected at 127.0.0.1; else its output must say
 * "listening on http://HOST:PORT" at the beginning of a line. PL_EINVAL (too long), PL_EIO with the end of the server's
 * output when it ends or is not ready within ready_s. After a failure nothing runs. */
pl_status pl_bench_server_start(pl_bench_server *s, const char *command, const char *key, double ready_s,
                                pl_error *err);
/* SIGTERM to the group, SIGKILL after grace_s. False when it had ended by itself before. */
bool pl_bench_server_stop(pl_bench_server *s, double grace_s);
/* End whatever server runs. For the handler of a signal that ends the program: it calls nothing but kill. */
void pl_bench_server_kill_all(void);

/* The first address that `text` (n bytes of output) announces, into url[300]; false while there is none. */
bool pl_bench_server_announced(const char *text, size_t n, char url[300]);

/* The first name that GET /models lists. PL_EIO, PL_EFORMAT. */
pl_status pl_bench_model_name(const pl_bench_url *url, int64_t limit_ns, char name[PL_BENCH_MODEL_MAX], pl_error *err);

#endif
