/* What a model will need, from its config and settings alone: the figures `inspect` prints and pl_model_open
 * reserves. */
#ifndef PL_MODEL_PLAN_H
#define PL_MODEL_PLAN_H

#include "checkpoint/config.h"

/* Zero means the default given here. */
typedef struct pl_model_settings {
    int threads;     /* threads that compute; default: the hardware threads of this process */
    const char *isa; /* "auto" (default), "scalar", "avx2", "avx512", "neon" */
    int slots;       /* sequences held at once; default 1 */
    int context;     /* most tokens of a slot, prompt and reply; default min(max_positions, 32768) */
    int piece;       /* most rows of a prefill piece; default 256 (docs/ledger.md) */
    int rows;        /* most rows of a launch of several slots, and most rows with logits; default 64 */
} pl_model_settings;

enum { PL_WINDOW_ROWS = 16 /* most rows of one slot in a launch that is not a prefill piece */ };

/* Bytes. Every figure is what is reserved, not an estimate. */
typedef struct pl_plan {
    uint64_t state_slot;  /* rings and pages of one slot */
    uint64_t state;       /* of all slots */
    uint64_t token_bytes; /* growth of a slot a token (entries and index keys): 890 at release shapes */
    uint64_t activations; /* streams, queries, lists, ... of the largest launch */
    uint64_t logits;
    uint64_t weights_copied; /* small vectors (norm gains, biases, ...) held beside the map */
    uint64_t scratch;        /* the backend's own */
    uint64_t resident;       /* sum: memory beyond the mapped weights */
} pl_plan;

/* Fill in defaults and check. PL_EINVAL names the setting. */
pl_status pl_model_settings_resolve(pl_model_settings *settings, const pl_config *config, pl_error *err);

/* The plan for resolved settings. PL_ELIMIT when a size overflows. */
pl_status pl_model_plan(pl_plan *plan, const pl_config *config, const pl_model_settings *settings, pl_error *err);

#endif
