/* The parts of a block, shared by the target's layers and the drafter's stages. Model spec sections 3.2-3.7.
 * All work on model->buffers and on the rows of one pass; names are the spec's. */
#ifndef PL_MODEL_LAYER_H
#define PL_MODEL_LAYER_H

#include "model/internal.h"

/* Collapse weights that a block hands to the next: `stride` floats from row to row. */
typedef struct pl__pre {
    const float *a;
    int stride;
} pl__pre;

/* x = rmsnorm(collapse(h, pre), norm) */
void pl__collapse_norm(pl_model *m, pl__pre pre, const pl_bf16 *norm, int rows);

/* From x: xq, qr and its rounding, q rotated, kv normed and rotated (not yet rounded). */
void pl__project(pl_model *m, const pl__block *b, const pl_rope *rope, const pl__pass *pass);

/* A KV owner's entries and index keys for the groups that this pass completes, from x. */
void pl__compress(pl_model *m, int layer, const pl__pass *pass);

/* An index owner's list of selected entries for each row, from x and qr; the candidate layer also publishes its
 * blocks. */
void pl__index(pl_model *m, int layer, const pl__pass *pass);

/* y = wo_b(wo_a(inverse rope(o))) */
void pl__attention_out(pl_model *m, const pl__block *b, const pl_rope *rope, const pl__pass *pass);

/* From h and the attention's A: x, then y = mixture of experts(x). */
void pl__ffn(pl_model *m, const pl__block *b, int rows);

/* The hyper-connection coefficients of h. */
void pl__coef(pl_model *m, float *coef, const pl__hc *hc, int rows);
/* h = expand(y, h, coef) */
void pl__expand(pl_model *m, const float *coef, int rows);

/* The engram of a layer, if it has one: h += gate * value. The ids of all engram layers must be in the buffers. */
void pl__engram_apply(pl_model *m, int layer, int rows);
/* Look the rows of every engram layer up (ids only) for a pass. */
void pl__engram_ids(pl_model *m, const pl__pass *pass);

/* One target layer: h and *pre in, h and *pre out; taps noted on the way when `taps`. False: pass->cancel was true
 * before one of its parts, and the rest was left undone. What it wrote then lies at the launch's positions, which the
 * next launch at them writes again. */
bool pl__layer(pl_model *m, int layer, const pl__pass *pass, pl__pre *pre, bool taps);

/* h = copies of the tokens' embeddings, pre = 1, 0, ..: the input of layer 0. */
pl__pre pl__embed(pl_model *m, int rows);

/* softmax scale of attention: head_dim^-0.5 */
float pl__attention_scale(const pl_config *config);

#endif
