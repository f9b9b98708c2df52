#include "depth/cost.h"

#include <math.h>
#include <stddef.h>

/* A measurement weighs 1/n up to this n, then 1/CAP: the mean of about the last CAP. One stall (a page fault, another
 * process) must not reprice a round, so what is far above the mean is cut before it is taken in. */
enum { CAP = 40 };
static const double CLIP = 2.0;

void pl_cost_init(pl_cost *cost, double first_ms, double row_ms, double pass_ms, double ask_ms)
{
    *cost = (pl_cost){.first = first_ms, .row = row_ms, .pass = pass_ms, .ask = ask_ms};
}

static void saw(pl_cost_entry *entry, double ms)
{
    if (!(ms > 0) || !isfinite(ms))
        return;
    if (entry->seen >= 4 && ms > CLIP * entry->ms)
        ms = CLIP * entry->ms;
    if (entry->seen < CAP)
        entry->seen++;
    entry->ms += (ms - entry->ms) / entry->seen;
}

/* The nearest measured entry to `at`, the smaller one of two as near; 0 when there is none. */
static int nearest(const pl_cost_entry *entry, int most, int at)
{
    for (int far = 0; far <= most; far++) {
        if (at - far >= 1 && entry[at - far].seen)
            return at - far;
        if (at + far <= most && entry[at + far].seen)
            return at + far;
    }
    return 0;
}

/* Measured here, else the guess times what the nearest measured entry is of its own guess. */
static double price(const pl_cost_entry *entry, int most, int at, double first, double step)
{
    double guess = first + step * (at - 1);
    int table = at <= most ? at : most;
    int near = nearest(entry, most, table);
    if (!near)
        return guess;
    if (near == at)
        return entry[near].ms;
    return guess * entry[near].ms / (first + step * (near - 1));
}

double pl_cost_verify(const pl_cost *cost, int rows)
{
    double ms = price(cost->verify, PL_COST_ROWS, rows, cost->first, cost->row);
    /* Never below what fewer rows were measured at. */
    for (int r = rows < PL_COST_ROWS ? rows : PL_COST_ROWS; r >= 1; r--)
        if (cost->verify[r].seen && cost->verify[r].ms > ms)
            ms = cost->verify[r].ms;
    return ms;
}

double pl_cost_pass(const pl_cost *cost, int asks)
{
    return asks < 1 ? 0 : price(cost->draft, PL_COST_ASKS, asks, cost->pass, cost->ask);
}

void pl_cost_saw_verify(pl_cost *cost, int rows, double ms)
{
    if (rows >= 1 && rows <= PL_COST_ROWS)
        saw(&cost->verify[rows], ms);
}

void pl_cost_saw_pass(pl_cost *cost, int asks, double ms)
{
    if (asks >= 1)
        saw(&cost->draft[asks < PL_COST_ASKS ? asks : PL_COST_ASKS], ms);
}
