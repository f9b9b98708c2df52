/* The weights as the forward reads them: matrices where the backend has them, small vectors copied. Names follow the
 * tensors' (model spec section 2). */
#ifndef PL_MODEL_WEIGHTS_H
#define PL_MODEL_WEIGHTS_H

#include "checkpoint/checkpoint.h"
#include "model/take.h"

/* One hyper-connection: fn F32 [(2+S)*S][S*D], scale[3], base[(2+S)*S] (host). */
typedef struct pl__hc {
    pl_mat fn;
    float *scale, *base;
} pl__hc;

/* A target layer or a draft stage. */
typedef struct pl__block {
    pl__hc hc_attn, hc_ffn;
    pl_bf16 *attn_norm, *ffn_norm; /* [D] */

    pl_mat wq_a;      /* [q_lora][D] */
    pl_bf16 *q_norm;  /* [q_lora] */
    pl_mat wq_b;      /* [H*C][q_lora] */
    pl_mat wkv;       /* [C][D] */
    pl_bf16 *kv_norm; /* [C] */
    float *sink;      /* [H], host */
    pl_mat wo_a;      /* [G*o_lora][H*C/G], FP8 in the file, its input not rounded */
    pl_mat wo_b;      /* [D][G*o_lora] */

    pl_mat gate;      /* [E][D] */
    float *gate_bias; /* [E], host */
    pl_experts experts;

    /* KV owners */
    pl_mat comp_wkv;    /* [C][D] */
    pl_mat comp_wgate;  /* [C][D], ratio 2 only */
    pl_bf16 *comp_norm; /* [C] */
    pl_mat key;         /* indexer.wk [Ci][C] */
    pl_bf16 *key_norm;  /* [Ci] */
    /* index owners */
    pl_mat index_q;      /* indexer.wq_b [Hi*Ci][q_lora] */
    pl_mat index_weight; /* indexer.weights_proj [Hi][D] */

    /* engram layers */
    const unsigned char *engram_codes, *engram_scales; /* in the map: [rows][dim], [rows][dim/32] */
    pl_mat engram_wkv;                                 /* [(S+1)*D][cols*dim] */
    pl_bf16 *engram_q, *engram_k;                      /* [S][D] */
} pl__block;

typedef struct pl__weights {
    pl_mat embed, head; /* [V][D] */
    pl_bf16 *norm;      /* [D] */
    pl__block *block;   /* [layers + stages] */

    pl_mat main_proj;    /* mtp.0 [D][taps*D] */
    pl_bf16 *main_norm;  /* [D] */
    pl_bf16 *draft_norm; /* last stage's norm [D] */
    pl_mat markov_embed; /* [V][r] */
    pl_mat markov_head;  /* [V][r] */
    pl_mat confidence_x; /* [1][D]: the first D columns of confidence_head.proj */
    pl_mat confidence_e; /* [1][r]: the rest */
} pl__weights;

/* Take and fill the weights; with checkpoint NULL only count. Errors of the checkpoint and the taker. */
pl_status pl__weights_load(pl__weights *w, pl__taker *t, const pl_config *config, const pl_checkpoint *checkpoint,
                           pl_error *err);

#endif
