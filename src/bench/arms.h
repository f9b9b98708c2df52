/* Several servers against each other: `paceline bench arms`.
 *
 * For every cell the arms run in order and then in reverse (A B C C B A), so that a machine that warms up or slows down
 * does so for all of them alike; each run has a server of its own, started for it and ended after it. The machine is
 * read around each run. A disturbed run is thrown away, written down and run again, a bounded number of times. An arm's
 * figure is the mean of its runs, each of which is a mean. */
#ifndef PL_BENCH_ARMS_H
#define PL_BENCH_ARMS_H

#include "bench/cell.h"
#include "bench/machine.h"
#include "bench/server.h"

enum { PL_BENCH_ARMS_MAX = 16, PL_BENCH_ROUNDS_MAX = 16 };

typedef struct pl_bench_arm {
    char name[PL_BENCH_NAME_MAX + 1];
    const char *command; /* borrowed */
} pl_bench_arm;

typedef struct pl_bench_arms {
    const pl_bench_arm *arm;
    int arms;
    int rounds;                       /* each forth and back: an arm has 2 * rounds runs of a cell */
    int reruns;                       /* of one run that was disturbed, at most */
    double ready_s, grace_s, quiet_s; /* to start, to end, to listen to the machine before and after */
    pl_bench_limits limits;
    bool compare;                   /* tokens must be equal across arms */
    const char *root, *key, *model; /* of pl_bench_machine_read; of the servers; "" model: what a server lists */
    pl_bench_plan plan;             /* url and model are put in here for each server */
    const pl_bench_cell *cell;      /* [cells] */
    int cells;
    /* Called after every run with the report so far; may be NULL. A failure ends the bench. */
    pl_status (*saved)(void *arg, const json_t *report, const char *what, pl_error *err);
    void *saved_arg;
} pl_bench_arms;

/* "NAME=COMMAND". PL_EINVAL. */
pl_status pl_bench_arm_read(pl_bench_arm *arm, const char *text, pl_error *err);

/* Which arm run `i` of the 2 * rounds * arms runs of a cell belongs to. */
int pl_bench_arm_of(int arms, int i);

/* *report is the whole of it (docs/bench.md), *verdict the worst of its cells. A server that does not start and
 * requests that fail are part of the report. PL_ENOMEM, PL_EINVAL, what `saved` returned. */
pl_status pl_bench_arms_run(const pl_bench_arms *a, json_t **report, pl_bench_verdict *verdict, pl_error *err);

/* The report as a Markdown table. */
pl_status pl_bench_arms_table(const json_t *report, pl_buf *out, pl_error *err);

#endif
