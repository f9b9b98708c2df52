/* The figures of requests that ran together. Tokens of a stream count from its second on: the first one's time is the
 * prompt's. */
#ifndef PL_BENCH_FIGURES_H
#define PL_BENCH_FIGURES_H

#include "bench/reply.h"

typedef struct pl_bench_figures {
    int failed;     /* broken off, refused, incomplete */
    int unmeasured; /* complete, with too few pieces to have a rate */
    int unverified; /* not complete, or without a hash of its tokens */
    /* Tokens a second; NAN where there is none. Totals need every stream to be measured. */
    double aggregate;           /* all streams' tokens, from the first piece of any to the last of any */
    double per_stream;          /* mean over the measured streams of (tokens - 1) / (last piece - first piece) */
    double steady;              /* while every stream runs; a piece counts for its stream's mean of tokens a piece */
    double ttft_mean, ttft_max; /* seconds to the first piece, over the streams that had one */
} pl_bench_figures;

void pl_bench_figures_of(pl_bench_figures *f, const pl_bench_reply *reply, int n);

/* Of the n values that are numbers; NAN without any. `median` sorts them. */
double pl_bench_mean(const double *value, int n);
double pl_bench_median(double *value, int n);

#endif
