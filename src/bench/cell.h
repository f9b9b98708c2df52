/* A cell: one set of prompts at one temperature with a number of streams, run some times. Its hashes are compared run
 * against run, and on demand against the same requests alone and against these without drafts. */
#ifndef PL_BENCH_CELL_H
#define PL_BENCH_CELL_H

#include "bench/client.h"
#include "bench/figures.h"
#include "bench/prompts.h"

enum { PL_BENCH_REPS_MAX = 100, PL_BENCH_WARM_TOKENS = 16 };

/* What every cell of a bench has in common. Borrowed pointers. */
typedef struct pl_bench_plan {
    const pl_bench_url *url;
    const char *model, *label; /* label "": none */
    int tokens, reps;
    int64_t seed; /* request i of a cell has seed + i */
    bool seeded;  /* else no seed is sent, and the server takes its own */
    bool alone;   /* run each request by itself first */
    bool serial;  /* and by itself with "draft": false */
    double stagger_s, limit_s;
} pl_bench_plan;

typedef struct pl_bench_cell {
    const pl_bench_set *set; /* [sets] request i takes set i % sets and its prompt (i / sets) % n */
    int sets;                /* above 1: mixed, and request i has seed + i / sets */
    const char *name;        /* of the set, or "mixed" */
    double temperature;      /* 0: greedy; else top_k 20 and top_p 0.95 go with it */
    int streams;
} pl_bench_cell;

/* Requests compared by token_sha. Incomplete or without a hash on either side, or hashes of different kinds (lengths):
 * unverified, which is never a pass. */
typedef struct pl_bench_tally {
    int equal, unequal, unverified;
} pl_bench_tally;

typedef enum pl_bench_verdict {
    PL_BENCH_EQUAL,      /* something was compared, and all was equal */
    PL_BENCH_UNCOMPARED, /* every reply is verified; there was nothing to compare it with */
    PL_BENCH_UNVERIFIED, /* a hash is missing */
    PL_BENCH_FAILED,     /* a request failed or its reply is incomplete */
    PL_BENCH_UNEQUAL     /* tokens differ where they must not */
} pl_bench_verdict;
const char *pl_bench_verdict_name(pl_bench_verdict verdict);

typedef struct pl_bench_result {
    json_t *line; /* the cell in short: one JSON object, see docs/bench.md */
    json_t *runs; /* list: one object a run with the evidence of every request; then "alone" and "serial" */
    pl_bench_verdict verdict;
    int failed, unmeasured, unverified;     /* requests of the runs */
    double aggregate, per_stream, ttft_max; /* mean of the runs; ttft_max their worst; NAN where there is none */
    char digest[65]; /* SHA-256 over the token hashes of all runs in order; "" when one is unverified */
    size_t hash_len; /* of the hashes in it; 0 with other ones */
} pl_bench_result;

/* Run a cell. Requests that fail are part of the result; PL_ENOMEM, PL_EIO and PL_EINVAL (no prompt) end it. */
pl_status pl_bench_cell_run(const pl_bench_plan *plan, const pl_bench_cell *cell, pl_bench_result *result,
                            pl_error *err);
void pl_bench_result_free(pl_bench_result *result);

/* The body of request i: fresh memory (free with free), NULL without memory. */
char *pl_bench_body(const pl_bench_plan *plan, const pl_bench_cell *cell, int i, int tokens, bool draft);

#endif
