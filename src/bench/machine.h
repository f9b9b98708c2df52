/* The state of the machine around a cell: what else ran, how hot it was, whether its clock was throttled. Read from
 * /proc and /sys; what cannot be read there is unknown, and said to be. */
#ifndef PL_BENCH_MACHINE_H
#define PL_BENCH_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pl_bench_machine {
    double load1;         /* NAN: unknown, as for all of these */
    double mhz;           /* mean over the processors */
    double celsius;       /* the hottest zone */
    double available_mib; /* memory */
    double throttles;     /* how often a processor was slowed for heat, all of them together */
    bool has_ticks;
    double busy, steal, total; /* clock ticks since the start, over all processors; steal is not in busy */
} pl_bench_machine;

/* Read it below `root`: "" for this machine, a folder with proc/ and sys/ for a test. */
void pl_bench_machine_read(pl_bench_machine *m, const char *root);

/* Clock ticks that the processes of a group, and those they waited for, have used; 0 when there are none. */
double pl_bench_group_ticks(const char *root, int64_t group);
/* Those of this process. */
double pl_bench_own_ticks(void);

/* The share of all processors' time between two readings; NAN when it cannot be told. `known` ticks were used by those
 * who are measured. */
double pl_bench_other_share(const pl_bench_machine *from, const pl_bench_machine *to, double known);
double pl_bench_steal_share(const pl_bench_machine *from, const pl_bench_machine *to);

/* The readings around one cell: a quiet time before the server starts, the cell, a quiet time after it ended. */
typedef struct pl_bench_around {
    pl_bench_machine before[2], during[2], after[2];
    double known; /* ticks of the server and of the client during the cell */
} pl_bench_around;

typedef struct pl_bench_limits {
    double busy;    /* share of the processors that others may have, and share that may be stolen */
    double celsius; /* the hottest a zone may be */
} pl_bench_limits;

/* Whether the cell must be thrown away; why[] says what was wrong. What is unknown disturbs nothing. */
bool pl_bench_disturbed(const pl_bench_around *a, const pl_bench_limits *limits, char why[200]);

/* {"start": {...}, "end": {...}, "during": {...}, "unknown": [...]}. A new reference, NULL without memory. */
json_t *pl_bench_around_json(const pl_bench_around *a);

#endif
