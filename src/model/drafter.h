/* The DSpark drafter: proposes a block of tokens behind an anchor. Model spec section 4. Engine thread only.
 *
 * Its own state is a ring a stage and slot, fed on commit only, from the taps that every forward keeps for the last
 * `window` positions. */
#ifndef PL_MODEL_DRAFTER_H
#define PL_MODEL_DRAFTER_H

#include "model/model.h"

/* Does the checkpoint have a drafter (stages > 0)? */
bool pl_drafter_present(const pl_model *model);

/* Positions 0 .. count-1 of each slot are committed (count at most pl_model_len): ingest the taps of those not yet in
 * the rings. However many rounds a slot sat out, one call catches up, since nothing older than the window is ever read.
 * PL_EINVAL when a tap that is needed is no longer kept. */
pl_status pl_drafter_ingest(pl_model *model, const int *slot, const int *count, int slots, pl_error *err);

/* Choose a token from one row of draft logits: host float32 [vocab_size]; row r of the block proposes position
 * anchor position + 1 + r. */
typedef int32_t pl_draft_pick(void *arg, int ask, int row, const float *logits);

typedef struct pl_ask {
    int slot;
    int32_t anchor; /* token chosen for position pl_drafter_count(slot), not yet run through the target */
} pl_ask;

typedef struct pl_proposal {
    int32_t draft[PL_MAX_BLOCK];    /* tokens for the positions behind the anchor */
    float confidence[PL_MAX_BLOCK]; /* raw logit: sigmoid = chance that the draft is kept if all before it were */
    float margin[PL_MAX_BLOCK];     /* best minus second best draft logit */
} pl_proposal;

/* One pass for all asks (no slot twice, each ingested, at most settings.rows / block of them). pick == NULL: arg-max,
 * lower id on ties. out[asks]. */
pl_status pl_drafter_propose(pl_model *model, const pl_ask *ask, int asks, pl_draft_pick *pick, void *arg,
                             pl_proposal *out, pl_error *err);

/* Positions ingested so far. */
int pl_drafter_count(const pl_model *model, int slot);

#endif
