/* What is written about rounds for people who tune them: a line of JSON a round (accept log), and where the time of
 * rounds went (profile). Times are milliseconds. */
#ifndef PL_LANES_ROUND_LOG_H
#define PL_LANES_ROUND_LOG_H

#include "base/status.h"
#include "depth/depth.h"

#include <stdio.h>

typedef enum pl__part {
    PL__PART_HOST, /* what is none of the others */
    PL__PART_INGEST,
    PL__PART_PROPOSE,
    PL__PART_VERIFY,
    PL__PART_DRAW,
    PL__PART_CONCLUDE,
    PL__PARTS
} pl__part;

typedef struct pl__round_log {
    FILE *file; /* NULL: no log */
    bool profile;
    uint64_t rounds, rows, tokens; /* since the last report */
    int64_t part_ns[PL__PARTS];    /* likewise */
    int64_t began_ns, mark_ns;     /* of the round in the making */
    int64_t round_ns[PL__PARTS];
} pl__round_log;

/* path NULL: no accept log. It is appended to. PL_EIO. */
pl_status pl__round_log_open(pl__round_log *log, const char *path, bool profile, pl_error *err);
void pl__round_log_close(pl__round_log *log); /* says what was not said yet */

/* The clock of a round: begin, then after each part its name; end gives HOST the rest. */
void pl__round_begin(pl__round_log *log);
void pl__round_part(pl__round_log *log, pl__part part);
void pl__round_end(pl__round_log *log, uint64_t number, const pl_depth_outcome *outcome);

/* One line in the log: what happened, and why. */
void pl__round_warn(const char *what, const pl_error *why);

static inline double pl__round_ms(const pl__round_log *log, pl__part part)
{
    return (double)log->round_ns[part] * 1e-6;
}

#endif
