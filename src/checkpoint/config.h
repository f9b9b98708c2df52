/* The shapes of a model, read from config.json (root + text_config). Model spec section 1;
 * docs/internals/checkpoint.md. */
#ifndef PL_CHECKPOINT_CONFIG_H
#define PL_CHECKPOINT_CONFIG_H

#include "base/status.h"

/* Caps on what a config may ask for; a larger number is an error that names the field. */
enum {
    PL_MAX_LAYERS = 512, /* layers plus draft stages */
    PL_MAX_STREAMS = 8,  /* hc_mult */
    PL_MAX_ENGRAMS = 8,
    PL_MAX_NGRAM = 8,
    PL_MAX_BLOCK = 16, /* dspark_block_size */
    PL_MAX_TAPS = 8,
    PL_MAX_ENGRAM_HEADS = 64,
    PL_MAX_HIDDEN = 65536,
    PL_MAX_TENSORS = 1 << 20,         /* tensors of one checkpoint */
    PL_MAX_CONFIG_BYTES = 1024 * 1024 /* config.json */
};

typedef struct pl_config {
    int vocab_size;
    int hidden;   /* D */
    int layers;   /* target layers, without the draft stages */
    int heads;    /* H */
    int head_dim; /* C */
    int rope_dim; /* R, the last R of head_dim; also of index_head_dim */
    int q_lora;
    int o_groups;
    int o_lora; /* per group */
    int window; /* sliding_window */
    int max_positions;
    float norm_eps; /* rms_norm_eps */

    int moe_inter;
    int experts, experts_per_tok;
    int shared_experts; /* must be 1 */
    bool norm_topk;
    float route_scale;
    float gate_temp; /* "gate_temp", 1 when absent */
    float swiglu_limit;

    int hc_mult; /* S residual streams */
    int hc_iters;
    float hc_eps;

    double rope_theta, compress_rope_theta;
    bool yarn; /* rope_scaling present with type yarn */
    double yarn_factor, yarn_beta_fast, yarn_beta_slow;
    int yarn_original;

    int ratio[PL_MAX_LAYERS];       /* compress_ratios, layers then stages: 0, 1 or 2 */
    int kv_owner[PL_MAX_LAYERS];    /* derived: the layer whose entries layer L reads; -1 for ratio 0 */
    int index_owner[PL_MAX_LAYERS]; /* derived: the layer whose list layer L reads; -1 for ratio 0 */
    int index_heads, index_dim, index_topk;
    int candidate_layer;  /* -1 when absent */
    int candidate_blocks; /* candidate_topk_blocks */
    int candidate_block;  /* candidate_block_size */

    int engrams;                      /* how many engram layers */
    int engram_layer[PL_MAX_ENGRAMS]; /* ascending */
    int64_t engram_rows[PL_MAX_ENGRAMS];
    int engram_ngram;     /* engram_max_ngram_size: n-grams of 2..this */
    int engram_heads;     /* per n */
    int engram_dim;       /* columns of a row */
    int64_t engram_vocab; /* primes are sought from here up */
    int engram_pad;       /* raw id of the pad token */
    int engram_classes;   /* engram_compressed_vocab_size */

    int stages; /* num_nextn_predict_layers */
    int block;  /* dspark_block_size */
    int noise_token;
    int taps; /* how many target layers are tapped */
    int tap_layer[PL_MAX_TAPS];
    int markov_rank;
    int draft_experts, draft_experts_per_tok;

    int bos, eos, pad, image_token; /* -1 when the config names none */

    bool has_vision; /* vision_config present: its tensors are counted, never read */
    int vision_layers, vision_hidden, vision_inter, vision_patch, vision_downsample;
} pl_config;

/* Parse and check config.json text. Every contradiction (dims that do not divide, lists of the wrong length, an owner
 * before its layer, ids past the vocabulary, an unknown model_type, ...) is PL_EFORMAT naming the field, what was
 * expected and what was found. `where` names the source in messages. */
pl_status pl_config_parse(pl_config *config, const char *json, size_t len, const char *where, pl_error *err);
pl_status pl_config_load(pl_config *config, const char *path, pl_error *err);

/* Is layer L (target layers only) a KV owner / an index owner / an engram layer? Engram: its index, or -1. */
bool pl_config_owns_kv(const pl_config *config, int layer);
bool pl_config_owns_index(const pl_config *config, int layer);
int pl_config_engram_at(const pl_config *config, int layer);

/* The bucket sizes of engram `index` (0 = the first engram layer): (engram_ngram - 1) * engram_heads primes in column
 * order (n = 2 heads, n = 3 heads, ...). Their sum is engram_rows[index]. Model spec 3.6. */
void pl_config_engram_primes(const pl_config *config, int index, uint32_t *prime);

#endif
