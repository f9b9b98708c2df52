/* How far to draft: who asks the drafter, and how many drafts each stream verifies.
 *
 * Two functions. decide is called twice a round: before the drafter's pass it sets who asks, after the pass how deep
 * each goes. observe tells it how the round went. Neither reads a clock or does anything else: times come in as
 * numbers, so a test or a simulator calls what the server calls. Whatever they say, the tokens of a reply stay the
 * same.
 *
 * The rule is the predecessor's, by counting streams: plain rounds from `plain_streams` decoding streams up; below
 * that everyone asks, and a depth is chosen for the expected gain over the price of its rows. Beyond it, ours:
 * drafting that has cost more than it gave rests for a while (pause), and comes back to try again. */
#ifndef PL_DEPTH_DEPTH_H
#define PL_DEPTH_DEPTH_H

#include "base/status.h"
#include "depth/cost.h"
#include "depth/keep_rate.h"

#include <stddef.h>

enum { PL_DEPTH_MOST = 15 /* drafts of one window: 16 rows less the pending one */, PL_DEPTH_RECENT = 16 };

typedef struct pl_depth_settings {
    int slots;         /* slots are 0..slots-1 */
    int plain_streams; /* rounds of so many decoding streams or more are plain; 0: none are */
    int joint;         /* two streams and more: 0 each alone, 1 all together, 2 together with shares evened out */
    int fixed;         /* -1: by the rule; else everyone asks and verifies so many drafts, as far as they are there */
    pl_cost cost;      /* the prices to start with */
} pl_depth_settings;

/* One decoding stream of a round. */
typedef struct pl_depth_lane {
    int slot;
    bool drafts;             /* it may draft: the request and the server say so */
    bool sampled;            /* temperature above 0 */
    int most;                /* drafts that its window has room for; 0: none, whatever is offered */
    int copies;              /* tokens offered from its own context; 0: none */
    int match;               /* tokens before them that were found again */
    int heads;               /* after the pass: drafts proposed; 0 for who did not ask */
    const float *confidence; /* after the pass: [heads] raw logits */

    /* decided */
    bool ask;  /* before the pass */
    bool copy; /* after: the drafts are the copied ones */
    int depth; /* after: how many drafts to verify, 0..most */
} pl_depth_lane;

typedef struct pl_depth_round {
    pl_depth_lane *lane;
    int lanes;
    int rows;    /* most rows of the launch, all together: at least `lanes` */
    bool passed; /* the pass is over: depths are wanted */
} pl_depth_round;

/* What became of one stream's window. */
typedef struct pl_depth_result {
    int slot;
    bool sampled, copy;
    int match;
    int depth;               /* drafts verified */
    int accepted;            /* of them, kept: one less than the tokens that came of the window */
    bool missed;             /* the draft behind them was wrong; else all were kept, or the reply ended first */
    int heads;               /* drafts proposed by the pass, and */
    const float *confidence; /* [heads] */
    int agreed; /* how many of the proposed drafts, from the first, are what was drawn: at least accepted of heads; one
                     more than the verified ones can be known (the round's bonus token) */
    bool known_miss; /* the proposed draft behind the agreed ones is known to be wrong, not just unknown */
} pl_depth_result;

typedef struct pl_depth_outcome {
    const pl_depth_result *result;
    int lanes, rows, asks;     /* of the launch and the pass */
    double verify_ms, pass_ms; /* as measured; pass_ms 0 without asks */
} pl_depth_outcome;

typedef struct pl_depth pl_depth;

/* Bytes that pl_depth_open reserves. */
size_t pl_depth_bytes(int slots);
/* PL_EINVAL, PL_ENOMEM. One thread at a time. */
pl_status pl_depth_open(pl_depth **depth, const pl_depth_settings *settings, pl_error *err);
void pl_depth_close(pl_depth *depth); /* NULL is allowed */

/* A new stream took the slot: forget what was learned about the one before. */
void pl_depth_admit(pl_depth *depth, int slot);
/* May a round of so many streams draft at all? If not it is plain, and neither function needs to be called. */
bool pl_depth_drafts(const pl_depth *depth, int lanes);
/* Set `ask` of every lane (before the pass), or `copy` and `depth` (after it). */
void pl_depth_decide(pl_depth *depth, pl_depth_round *round);
void pl_depth_observe(pl_depth *depth, const pl_depth_outcome *outcome);

#endif
