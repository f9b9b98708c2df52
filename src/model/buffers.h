/* The arrays one launch works in, and the launch itself. Shapes: R rows, S streams, D hidden, H heads, C head_dim. */
#ifndef PL_MODEL_BUFFERS_H
#define PL_MODEL_BUFFERS_H

#include "model/plan.h"
#include "model/take.h"

#include <stdatomic.h>

typedef struct pl__buffers {
    int rows; /* most rows of a launch */

    pl_bf16 *h;       /* [R][S][D] residual streams */
    float *pre0;      /* [R][S] the first layer's collapse weights: 1, 0, .. */
    float *coef_attn; /* [R][S+S+S*S] */
    float *coef_ffn;  /* [R][S+S+S*S]; its A is the next layer's pre */
    pl_bf16 *x, *xq;  /* [R][D] collapsed and normed; the same rounded (quant8) */
    pl_bf16 *y;       /* [R][D] sublayer output */

    pl_bf16 *qr, *qrq; /* [R][q_lora] */
    pl_bf16 *q, *o;    /* [R][H][C] */
    pl_bf16 *kv;       /* [R][C] */
    pl_bf16 *u, *uq;   /* [R][G*o_lora] */

    float *comp_kv, *comp_gate; /* [R][C] */
    pl_bf16 *lat;               /* [R][C] latents of the groups completed */
    pl_bf16 *key;               /* [R][Ci] */
    pl_bf16 *index_q;           /* [R][Hi][Ci] */
    pl_bf16 *index_w;           /* [R][Hi] */
    pl_lists lists;             /* [R][topk], of the latest index owner */
    pl_candidates candidates;   /* [R][words], of the candidate layer */

    float *gate;     /* [R][E] router logits */
    int32_t *expert; /* [R][k] */
    float *expert_w; /* [R][k] */

    int64_t *engram_id;  /* [engrams][R][cols], host */
    unsigned char *skip; /* [R] image positions, host */
    pl_bf16 *engram_x;   /* [R][cols*dim] */
    pl_bf16 *engram_xq;  /* the same rounded */
    pl_bf16 *engram_kv;  /* [R][(S+1)*D] */

    pl_bf16 *taps;      /* [R][taps*D] */
    pl_bf16 *z;         /* [settings.rows][D] final rows that get logits */
    float *logits;      /* [settings.rows][V] backend */
    float *logits_host; /* the same in host memory */

    /* drafter */
    pl_bf16 *main_q;        /* [R][taps*D] taps rounded */
    float *draft_base;      /* [settings.rows][V] head logits before the Markov part */
    float *draft_row;       /* [settings.rows][V] with it */
    pl_bf16 *draft_x;       /* [settings.rows][D] collapsed, before the norm */
    pl_bf16 *markov;        /* [settings.rows][rank] */
    float *conf_x, *conf_e; /* [settings.rows] */
    float *conf_host;       /* the same in host memory */

    /* the launch, host */
    pl_span *span;
    int32_t *slot, *pos, *token;             /* [R] */
    int32_t *group_slot[3], *group_index[3]; /* [R], by ratio */
} pl__buffers;

/* One launch in the making. */
typedef struct pl__pass {
    pl_launch launch;
    pl_groups groups[3];       /* by ratio: the groups that this launch completes */
    const atomic_bool *cancel; /* give the launch up when it is true; may be NULL */
} pl__pass;

pl_status pl__buffers_take(pl__buffers *b, pl__taker *t, const pl_config *config, const pl_model_settings *settings,
                           pl_error *err);

/* Number the rows of b->span[0..spans) and list the groups that they complete. */
void pl__pass_build(pl__pass *pass, pl__buffers *b, int spans);

#endif
