#include "depth/cost.h"

#include <math.h>

/* The least of the first FIRST, since a program's first launches wait for pages; from then on a measurement weighs
 * 1/n, at least 1/CAP: the mean of about the last CAP. One stall (a page fault, another process) must not reprice a
 * round, so what is far above the mean is cut before it is taken in. */
enum { FIRST = 4, CAP = 40 };
static const double CLIP = 2.0;

void pl_cost_init(pl_cost *cost, double first_ms, double row_ms, double pass_ms, double ask_ms)
{
    *cost = (pl_cost){.first = first_ms, .row = row_ms, .pass = pass_ms, .ask = ask_ms};
}

static void saw(pl_cost_entry *entry, double ms)
{
    if (!(ms > 0) || !isfinite(ms))
        return;
    if (entry->seen < FIRST) {
        entry->ms = entry->seen++ ? fmin(entry->ms, ms) : ms;
        return;
    }
    if (entry->seen < CAP)
        entry->seen++;
    entry->ms += (fmin(ms, CLIP * entry->ms) - entry->ms) / entry->seen;
}

/* Measured here, else on the line between the measured neighbours; outside of all, the guess times what the nearest
 * measured entry is of its own guess. Never below what less was measured at, so no price falls as more is asked for. */
static double price(const pl_cost_entry *entry, int most, int at, double first, double step)
{
    int below = 0, above = 0;
    double low = 0, guess = first + step * (at - 1);
    for (int i = 1; i <= most; i++) {
        if (!entry[i].seen)
            continue;
        if (i > at) {
            above = i;
            break;
        }
        below = i;
        low = fmax(low, entry[i].ms);
    }
    if (!below && !above)
        return guess;
    if (below && below == at)
        return low;
    if (!above)
        return guess * low / (first + step * (below - 1));
    if (!below)
        return guess * entry[above].ms / (first + step * (above - 1));
    return low + (fmax(low, entry[above].ms) - low) * (at - below) / (above - below);
}

double pl_cost_verify(const pl_cost *cost, int rows)
{
    return price(cost->verify, PL_COST_ROWS, rows, cost->first, cost->row);
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
