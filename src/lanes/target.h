/* The model as lanes see it: two small tables of functions. The engine thread calls them and nothing else does, so a
 * test drives the engine with tables of its own (tests/lanes/fake_target.h), and no model code is needed to read lanes.
 *
 * A slot holds the tokens of one stream. Its kept length is how many of them are committed: admit sets it to 0, a
 * prefill piece moves it on by its rows, keep sets it after a window. A window always starts at the kept length, so
 * that rows of an earlier window that were not kept are overwritten and need no undoing. */
#ifndef PL_LANES_TARGET_H
#define PL_LANES_TARGET_H

#include "base/status.h"

#include <stdatomic.h>

/* Rows of one stream in a shared launch: row 0 is the pending token, drawn but not yet run; drafts to verify follow. */
typedef struct pl_window {
    int slot;
    int rows;             /* at least 1 */
    const int32_t *token; /* [rows] */
} pl_window;

typedef struct pl_target {
    void *arg;
    int slots;       /* streams held at once */
    int context;     /* most tokens of a slot */
    int piece;       /* most rows of a prefill piece */
    int rows;        /* most rows of a launch of windows, all together */
    int window_rows; /* most rows of one window */
    int vocab;       /* width of a row of logits; token ids are below it */

    /* The slot is as new. */
    pl_status (*admit)(void *arg, int slot, pl_error *err);
    /* Run the prompt's next rows (1..piece), all of which are kept. last: make logits of the last row (row 0 of
     * logits).
     * *cancel is read while it runs; PL_ECANCELED leaves the slot as before the call. */
    pl_status (*prefill)(void *arg, int slot, const int32_t *token, int rows, bool last, const atomic_bool *cancel,
                         pl_error *err);
    /* Run windows of different slots in one launch and make logits of every row, in order. cancel as above; it may be
     * NULL. The kept lengths stay as they are. */
    pl_status (*window)(void *arg, const pl_window *window, int windows, const atomic_bool *cancel, pl_error *err);
    /* Logits of row i of the latest prefill (last) or window: [vocab], valid until the next call of this table or of
     * the drafter's. */
    const float *(*logits)(void *arg, int i);
    /* The first count tokens of the slot are committed: at least the kept length, at most that plus the last window. */
    pl_status (*keep)(void *arg, int slot, int count, pl_error *err);
    /* The stream has left: the slot may be admitted again. */
    void (*release)(void *arg, int slot);
} pl_target;

/* What the drafter is asked: a block of tokens behind the anchor, the slot's pending token. */
typedef struct pl_draft_ask {
    int slot;
    int32_t anchor;
} pl_draft_ask;

/* Choose one draft from its row of logits [vocab]; row r stands for the position r + 1 behind the anchor's. */
typedef int32_t pl_draft_choose(void *arg, int ask, int row, const float *logits);

typedef struct pl_draft_table {
    void *arg;
    int block; /* drafts of one proposal; 0: the checkpoint has no drafter, and nothing below may be called */
    int asks;  /* most asks of one pass; at least 1 with a drafter */

    /* Catch up with the kept lengths of these slots, from the taps that the target kept in its last launches. */
    pl_status (*ingest)(void *arg, const int *slot, int slots, pl_error *err);
    /* One pass for all asks. draft, confidence (raw logit) and margin (best minus second logit) are [asks][block].
     * choose NULL: the most likely token, the lower id of equals. */
    pl_status (*propose)(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose, void *choose_arg,
                         int32_t *draft, float *confidence, float *margin, pl_error *err);
    /* Forget a slot. admit does so as well. */
    void (*reset)(void *arg, int slot);
} pl_draft_table;

#endif
