/* Depths by expected gain. E(k) = 1 + q1 + q1 q2 + ... tokens for k + 1 rows; the price of the rows is taken at the
 * rate that the tokens are being made at, so that a draft is verified when it gives more than its time would
 * otherwise. */
#include "depth/depth_int.h"

#include <math.h>

static const double TIE = 1e-12;
static const double SHARE_POWER = 0.5, HOST_MS = 3; /* joint mode 2, as the predecessor has them */

double pl__slot_rate(const pl_depth *d, int slot)
{
    const pl__recent *r = &d->slot[slot].recent;
    double tokens = 0, ms = 0;
    for (int i = 0; i < r->count; i++) {
        tokens += r->tokens[i];
        ms += r->ms[i];
    }
    if (!r->count)
        return 2 / (pl_cost_verify(&d->cost, 2) + pl_cost_pass(&d->cost, 1));
    return ms > 0 ? tokens / ms : 0;
}

void pl__choose_alone(const pl_depth *d, const pl__offer *offer, pl_depth_round *round)
{
    int spare = round->rows - round->lanes;
    for (int i = 0; i < round->lanes; i++) {
        double rate = pl__slot_rate(d, round->lane[i].slot), chain = 1, expected = 1;
        double best = expected - rate * pl_cost_verify(&d->cost, 1);
        int depth = 0, most = offer[i].drafts < spare ? offer[i].drafts : spare;
        for (int k = 1; k <= most; k++) {
            chain *= offer[i].chance[k - 1];
            expected += chain;
            double gain = expected - rate * pl_cost_verify(&d->cost, k + 1);
            if (gain > best + TIE) {
                best = gain;
                depth = k;
            }
        }
        round->lane[i].depth = depth;
        round->lane[i].copy = depth && offer[i].copy;
        spare -= depth;
    }
}

/* Mode 2 favours who has had fewer tokens a round: (mean / own)^power, scaled to a mean of 1. */
static void weigh(const pl_depth *d, const pl_depth_round *round, double *weight)
{
    double mean = 0, sum = 0;
    for (int i = 0; i < round->lanes; i++) {
        const pl__recent *r = &d->slot[round->lane[i].slot].recent;
        double tokens = 0;
        for (int j = 0; j < r->count; j++)
            tokens += r->tokens[j];
        weight[i] = r->count ? fmax(tokens / r->count, 1) : 1;
        mean += weight[i] / round->lanes;
    }
    for (int i = 0; i < round->lanes; i++)
        sum += weight[i] = pow(mean / weight[i], SHARE_POWER);
    for (int i = 0; i < round->lanes; i++)
        weight[i] *= round->lanes / sum;
}

/* Take the largest marginal gain of all lanes again and again, note the total that is worth most: exact whatever the
 * shape of the prices, since a lane's marginal gains only fall. */
void pl__choose_joint(const pl_depth *d, const pl__offer *offer, pl_depth_round *round)
{
    bool even = d->settings.joint == 2;
    double weight[PL__DEPTH_LANES], next[PL__DEPTH_LANES], rate = 0, extra = even ? HOST_MS : 0;
    int taken[PL__DEPTH_LANES] = {0}, best_taken[PL__DEPTH_LANES] = {0};
    for (int i = 0; i < round->lanes; i++) {
        weight[i] = 1;
        rate += pl__slot_rate(d, round->lane[i].slot);
    }
    if (even)
        weigh(d, round, weight);
    int rows = round->lanes;
    double sum = 0;
    for (int i = 0; i < round->lanes; i++) {
        next[i] = offer[i].drafts ? weight[i] * offer[i].chance[0] : -1;
        if (even || !offer[i].drafts || rows >= round->rows)
            continue;
        taken[i] = best_taken[i] = 1; /* who asked verifies at least one draft */
        sum += next[i];
        rows++;
        next[i] = offer[i].drafts > 1 ? next[i] * offer[i].chance[1] : -1;
    }
    double best = sum - rate * (pl_cost_verify(&d->cost, rows) + extra);
    while (rows < round->rows) {
        int top = 0;
        for (int i = 1; i < round->lanes; i++)
            if (next[i] > next[top])
                top = i;
        if (next[top] < 0)
            break;
        sum += next[top];
        rows++;
        int k = ++taken[top];
        next[top] = k < offer[top].drafts ? next[top] * offer[top].chance[k] : -1;
        double gain = sum - rate * (pl_cost_verify(&d->cost, rows) + extra);
        if (gain > best + TIE) {
            best = gain;
            for (int i = 0; i < round->lanes; i++)
                best_taken[i] = taken[i];
        }
    }
    for (int i = 0; i < round->lanes; i++) {
        round->lane[i].depth = best_taken[i];
        round->lane[i].copy = best_taken[i] && offer[i].copy;
    }
}
