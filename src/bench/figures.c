/* See figures.h. */
#include "bench/figures.h"

#include <math.h>
#include <stdlib.h>

double pl_bench_mean(const double *value, int n)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(value[i]))
            sum += value[i], count++;
    return count ? sum / count : NAN;
}

static int ascending(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;
    return (a > b) - (a < b);
}

double pl_bench_median(double *value, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(value[i]))
            value[count++] = value[i];
    if (!count)
        return NAN;
    qsort(value, (size_t)count, sizeof *value, ascending);
    return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

/* Tokens behind the first a second while every stream runs: from the latest first piece to the earliest last one. */
static double steady_rate(const pl_bench_reply *reply, int n)
{
    int64_t from = INT64_MIN, to = INT64_MAX;
    double tokens = 0;
    for (int i = 0; i < n; i++) {
        const pl_bench_reply *r = &reply[i];
        from = r->piece[0] > from ? r->piece[0] : from;
        to = r->piece[r->pieces - 1] < to ? r->piece[r->pieces - 1] : to;
    }
    if (n < 2 || to <= from)
        return NAN;
    for (int i = 0; i < n; i++) {
        size_t inside = 0;
        for (size_t p = 0; p < reply[i].pieces; p++)
            inside += reply[i].piece[p] > from && reply[i].piece[p] <= to;
        tokens += (double)inside * ((double)reply[i].tokens / (double)reply[i].pieces);
    }
    return tokens / ((double)(to - from) * 1e-9);
}

void pl_bench_figures_of(pl_bench_figures *f, const pl_bench_reply *reply, int n)
{
    *f = (pl_bench_figures){.aggregate = NAN, .per_stream = NAN, .steady = NAN, .ttft_mean = NAN, .ttft_max = NAN};
    int64_t from = INT64_MAX, to = INT64_MIN;
    double rates = 0, tokens = 0, waits = 0;
    int measured = 0, begun = 0;
    for (int i = 0; i < n; i++) {
        const pl_bench_reply *r = &reply[i];
        f->failed += !pl_bench_reply_complete(r);
        f->unverified += !pl_bench_reply_verified(r);
        f->unmeasured += pl_bench_reply_complete(r) && !pl_bench_reply_measured(r);
        if (r->pieces) {
            double wait = (double)(r->piece[0] - r->sent) * 1e-9;
            f->ttft_max = begun && f->ttft_max > wait ? f->ttft_max : wait;
            waits += wait, begun++;
        }
        if (!pl_bench_reply_measured(r))
            continue;
        int64_t first = r->piece[0], last = r->piece[r->pieces - 1];
        from = first < from ? first : from;
        to = last > to ? last : to;
        rates += (double)(r->tokens - 1) / ((double)(last - first) * 1e-9);
        tokens += (double)(r->tokens - 1);
        measured++;
    }
    if (begun)
        f->ttft_mean = waits / begun;
    if (measured)
        f->per_stream = rates / measured;
    if (measured == n && n > 0) {
        f->aggregate = tokens / ((double)(to - from) * 1e-9);
        f->steady = steady_rate(reply, n);
    }
}
