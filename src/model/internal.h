/* What a model is made of. Private to src/model. */
#ifndef PL_MODEL_INTERNAL_H
#define PL_MODEL_INTERNAL_H

#include "model/buffers.h"
#include "model/drafter.h"
#include "model/engram.h"
#include "model/state.h"
#include "model/weights.h"

struct pl_model {
    const pl_checkpoint *checkpoint;
    const pl_config *config;
    pl_model_settings settings;
    pl_pool *pool;
    pl_kernels kernels;
    pl_arena host;

    pl__weights weights;
    pl__engrams engrams;
    pl__state state;
    pl__buffers buffers;
    pl_rope rope_plain; /* ratio 0 layers and draft stages */
    pl_rope rope_long;  /* ratio > 0: compress_rope_theta, YaRN */

    int wanted; /* rows with logits in the latest forward */
};

/* Take everything that a model reserves, in one order: pl_model_plan counts with it, pl_model_open takes. */
pl_status pl__model_take(pl_model *model, pl__taker *backend_state, pl__taker *backend_rest, pl__taker *weights,
                         const uint32_t *token_map, pl_error *err);

/* What the backend's scratch must suffice for. */
pl_kernel_limits pl__model_limits(const pl_config *config, const pl_model_settings *settings);

#endif
