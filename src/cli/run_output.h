/* What `paceline run` shows: the reply as it comes and a line about it, or one JSON object. */
#ifndef PL_CLI_RUN_OUTPUT_H
#define PL_CLI_RUN_OUTPUT_H

#include "base/buf.h"

typedef struct run_output {
    bool json;
    bool terminal;       /* standard error is one: progress may be drawn over itself */
    bool drawn;          /* a progress line is on the screen */
    int64_t began, said; /* nanoseconds: when it started, when progress was last told */
    double load_ms;      /* set by the command */
    size_t prompt_tokens;
    bool ends_in_newline;
    /* for JSON */
    pl_buf tokens, text, reasoning;
} run_output;

void run_output_init(run_output *out, bool json);
void run_output_free(run_output *out);

/* Progress of opening, for pl_options; arg is the run_output. */
void run_loading(void *arg, const char *what, uint64_t done, uint64_t total);

/* One event of the reply. PL_EIO when standard output cannot be written; PL_ELIMIT, PL_ENOMEM. */
pl_status run_event(run_output *out, const pl_event *event, pl_error *err);

/* After the last event, whose reason is not an error: the line about the reply, or the object. */
pl_status run_end(run_output *out, const pl_event *last, pl_error *err);

#endif
