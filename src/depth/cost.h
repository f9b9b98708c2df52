/* What a round costs, in milliseconds: a verify launch by its rows, a drafter pass by its asks.
 *
 * The table starts as a guess about the machine (pl_cost_init) and learns from real rounds: a measured entry replaces
 * its guess. One that was never measured lies on the line between its measured neighbours; outside of all, its guess is
 * scaled as the nearest measured one was. Prices only decide how far to draft; no token depends on them. */
#ifndef PL_DEPTH_COST_H
#define PL_DEPTH_COST_H

#include <stdbool.h>

enum { PL_COST_ROWS = 64 /* rows with an entry of their own; a straight line goes on behind them */, PL_COST_ASKS = 8 };

typedef struct pl_cost_entry {
    double ms; /* measured: the mean of late, of the first few the least; 0 while never measured */
    int seen;  /* measurements so far, counted up to a cap */
} pl_cost_entry;

typedef struct pl_cost {
    double first, row;                      /* the guess: first + row * (rows - 1) */
    double pass, ask;                       /* the guess: pass + ask * (asks - 1) */
    pl_cost_entry verify[PL_COST_ROWS + 1]; /* [rows], from 1 */
    pl_cost_entry draft[PL_COST_ASKS + 1];  /* [asks], from 1; more asks count as the most */
} pl_cost;

/* The guess for a launch whose first row takes first_ms, each further one row_ms; a pass likewise. */
void pl_cost_init(pl_cost *cost, double first_ms, double row_ms, double pass_ms, double ask_ms);

/* A launch of so many rows, a pass of so many asks (0: free), in ms; never falling with rows or asks. rows >= 1. */
double pl_cost_verify(const pl_cost *cost, int rows);
double pl_cost_pass(const pl_cost *cost, int asks);

/* One real launch or pass took this long. Times that are not positive and finite are passed over. */
void pl_cost_saw_verify(pl_cost *cost, int rows, double ms);
void pl_cost_saw_pass(pl_cost *cost, int asks, double ms);

#endif
