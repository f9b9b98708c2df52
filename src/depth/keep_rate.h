/* How likely a draft is to be kept, learned from the drafts that were checked.
 *
 * A proposal's confidence p_j is trained for another event than ours (spec of the drafter: the overlap of two
 * distributions), so it is scaled position by position to what was seen: q_j = min(p_j * f_j, 0.995) with
 * f_j = (kept_j + 2) / (sum of p_j + 2), within 0.2 and 3; older sightings fade by 0.97 each time a round reaches
 * position j, which it does when every draft before j was kept. Greedy and sampled replies are told apart. */
#ifndef PL_DEPTH_KEEP_RATE_H
#define PL_DEPTH_KEEP_RATE_H

#include <stdbool.h>

enum { PL_KEEP_POSITIONS = 15, PL_KEEP_CLASSES = 2 };

typedef struct pl_keep_rate {
    double kept[PL_KEEP_CLASSES][PL_KEEP_POSITIONS];
    double said[PL_KEEP_CLASSES][PL_KEEP_POSITIONS]; /* sum of what was promised */
} pl_keep_rate;

/* The chance that the draft at position (from 0) is kept if all before it were. confidence is the raw logit; NaN counts
 * as no chance. */
double pl_keep_chance(const pl_keep_rate *rate, bool sampled, int position, float confidence);
/* A round reached the position: was its draft kept? */
void pl_keep_saw(pl_keep_rate *rate, bool sampled, int position, float confidence, bool kept);

#endif
