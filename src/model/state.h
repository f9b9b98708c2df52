/* What a slot remembers: window rings, compressed entries and index keys in pages, (kv, gate) pairs, taps, draft rings,
 * tokens. Everything is addressed by position or entry number, so a rewind restores nothing (docs/architecture.md). */
#ifndef PL_MODEL_STATE_H
#define PL_MODEL_STATE_H

#include "model/plan.h"
#include "model/take.h"

enum { PL_PAGE_TOKENS = 256 };

typedef struct pl__slot {
    int len;      /* tokens held */
    int high;     /* most tokens ever held since reset: rings keep positions from high - length on */
    int ingested; /* positions in the draft rings */
} pl__slot;

typedef struct pl__state {
    pl_ring *window;      /* [layers] */
    pl_ring *draft;       /* [stages] */
    pl_ring *pairs;       /* [layers], ratio-2 owners only */
    pl_ring taps;         /* rows of taps * D bf16 */
    pl_entries *entries;  /* [layers], KV owners only */
    unsigned char **page; /* [slots][pages] */
    unsigned char *pool;  /* slots * pages pages */
    size_t page_bytes;
    int pages;      /* a slot */
    int32_t *token; /* [slots][context] */
    pl__slot *slot; /* [slots] */
} pl__state;

/* Take the arrays for all slots. Also adds up: bytes of all slots in the taker. */
pl_status pl__state_take(pl__state *s, pl__taker *t, const pl_config *config, const pl_model_settings *settings,
                         pl_error *err);

/* Bytes that a slot grows by a token (entries and keys of all owners), times 2 to stay whole. */
uint64_t pl__state_token_bytes2(const pl_config *config);

#endif
