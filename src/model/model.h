/* A model that runs: weights, the state of its slots, and the forward pass.
 *
 * Everything here belongs to one thread, the engine's. Arrays are planned and reserved by pl_model_open (plan.h says
 * how much); running never allocates. The arithmetic of a row depends on its slot's tokens alone, so that a prompt run
 * whole, in pieces, one token at a time, or in windows whose later rows are thrown away leaves the same bits. */
#ifndef PL_MODEL_MODEL_H
#define PL_MODEL_MODEL_H

#include "checkpoint/checkpoint.h"
#include "model/plan.h"

#include <stdatomic.h>

typedef struct pl_model pl_model;

/* Open the weights of a checkpoint for running. The checkpoint must outlive the model. token_map[vocab_size] gives each
 * token's Engram class (all < engram_classes) and is copied; it may be NULL when the config has no Engram layer.
 * PL_EINVAL for settings that contradict the config, PL_ENOMEM, PL_ENOTFOUND (a tensor). */
pl_status pl_model_open(pl_model **model, const pl_checkpoint *checkpoint, const uint32_t *token_map,
                        const pl_model_settings *settings, pl_error *err);
void pl_model_close(pl_model *model);

const pl_config *pl_model_config(const pl_model *model);
const pl_model_settings *pl_model_settings_of(const pl_model *model); /* as resolved: no zeros left */
const char *pl_model_backend(const pl_model *model);                  /* "cpu avx512" */
int pl_model_threads(const pl_model *model);

/* Which rows of a run get logits. */
typedef enum pl_want { PL_WANT_NONE, PL_WANT_LAST, PL_WANT_ALL } pl_want;

/* Consecutive tokens of one slot: a prefill piece, a window to verify, or one pending token. */
typedef struct pl_run {
    int slot;
    int pos; /* position of token[0]; at most pl_model_len: a smaller one rewinds the slot to it first */
    int rows;
    const int32_t *token; /* [rows], each in 0..vocab_size-1; read during the call only */
    pl_want want;
} pl_run;

/* Sees the stream as it leaves each layer; for trace only. h bf16 [rows][S][D], pre float32 [rows][S]: host memory. */
typedef struct pl_tracer {
    pl_status (*layer)(void *arg, int layer, const uint16_t *h, const float *pre, int rows, pl_error *err);
    void *arg;
} pl_tracer;

/* Run one launch of one or more slots (no slot twice) through all layers. Rows in all: at most settings.rows, or one
 * run of at most settings.piece. Afterwards pl_model_len(slot) is pos + rows for each run. A rewind reaches back at
 * most as far as the rings do: into the slot's latest launch always; further is PL_EINVAL (keep a snapshot for that).
 * Logits of the wanted rows, at most settings.rows of them, are ready in pl_model_logits.
 * `cancel` (may be NULL) is read between the parts of every layer: when it is true the launch is given up with
 * PL_ECANCELED and every slot holds `pos` tokens, as before the call but for the rewind. Tokens out of range, overfull
 * slots: PL_EINVAL. */
pl_status pl_model_forward(pl_model *model, const pl_run *run, int runs, const atomic_bool *cancel,
                           const pl_tracer *tracer, pl_error *err);

/* Logits of the i-th wanted row of the latest forward, in row order: float32 [vocab_size], host memory, valid until the
 * next forward or propose. */
const float *pl_model_logits(const pl_model *model, int i);

/* Tokens that a slot holds: the next free position. */
int pl_model_len(const pl_model *model, int slot);
/* Their ids, [len]. */
const int32_t *pl_model_tokens(const pl_model *model, int slot);
/* Forget a slot's tokens; it is as new. */
void pl_model_reset(pl_model *model, int slot);

/* One layer alone over a whole sequence, from given streams (paceline trace --layer): slot 0 must be new, rows at most
 * settings.context. h [layers][rows][S][D] bf16 and pre [layers][rows][S] float32 are the outputs of all layers; what
 * layer L reads of an earlier owner (entries, keys, list, candidates) is made from that owner's own given input. Writes
 * the layer's h [rows][S][D] and pre [rows][S]. */
pl_status pl_model_layer(pl_model *model, int layer, const int32_t *token, int rows, const uint16_t *h,
                         const float *pre, uint16_t *h_out, float *pre_out, pl_error *err);

#endif
