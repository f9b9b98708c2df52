/* Which tokens a stream has seen, for the penalties: counted once on commit, read by every row. Owned by one stream;
 * one thread at a time. */
#ifndef PL_MODEL_HISTORY_H
#define PL_MODEL_HISTORY_H

#include "base/status.h"

typedef struct pl_history {
    int vocab;
    int distinct;   /* tokens with a note */
    int32_t *token; /* [distinct] of [vocab]: those tokens, in order of first appearance */
    uint32_t *note; /* [vocab] 0: never seen; else 1 + the times it is in the reply */
} pl_history;

/* Bytes that a history of this vocabulary takes. */
size_t pl_history_bytes(int vocab);
/* Reserve it, empty. PL_ENOMEM. A zeroed struct may be closed. */
pl_status pl_history_open(pl_history *history, int vocab, pl_error *err);
void pl_history_close(pl_history *history);
/* Forget all: costs as much as there are distinct tokens. */
void pl_history_reset(pl_history *history);

/* Tokens of the prompt: seen, not counted as the reply's. Ids outside the vocabulary are left out. */
void pl_history_prompt(pl_history *history, const int32_t *ids, size_t count);
/* One committed token of the reply. Constant time. */
void pl_history_commit(pl_history *history, int32_t id);

#endif
