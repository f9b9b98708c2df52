#include "model/weights.h"

#include <stdarg.h>
#include <stdio.h>

/* Where a load stands: the prefix of the block in hand, and what every step needs. */
typedef struct loader {
    pl__taker *t;
    const pl_config *config;
    const pl_checkpoint *checkpoint; /* NULL: counting */
    char prefix[32];                 /* "layers.12." or "mtp.0." or "" */
    pl_error *err;
} loader;

static pl_status find(loader *l, const char *name, char *full, size_t cap, pl_tensor *tensor)
{
    snprintf(full, cap, "%s%s", l->prefix, name);
    return pl_checkpoint_tensor(l->checkpoint, full, tensor, l->err);
}

/* A bf16 vector in backend memory. */
static pl_status vec_bf16(loader *l, pl_bf16 **out, size_t count, const char *name)
{
    PL_TAKE(l->t, *out, count, name, l->err);
    if (!l->checkpoint)
        return PL_OK;
    char full[128];
    pl_tensor tensor;
    PL_TRY(find(l, name, full, sizeof full, &tensor));
    if (tensor.dtype != PL_BF16 || tensor.bytes != count * 2)
        return pl_fail_param(l->err, PL_EFAULT, full, "%s: %zu bf16 values expected", full, count);
    l->t->kernels->upload(l->t->kernels, *out, tensor.data, tensor.bytes);
    return PL_OK;
}

/* A float32 vector in host memory. */
static pl_status vec_f32(loader *l, float **out, size_t count, const char *name)
{
    PL_TAKE_HOST(l->t, *out, count, name, l->err);
    if (!l->checkpoint)
        return PL_OK;
    char full[128];
    pl_tensor tensor;
    PL_TRY(find(l, name, full, sizeof full, &tensor));
    if (tensor.dtype != PL_F32 || tensor.bytes != count * 4)
        return pl_fail_param(l->err, PL_EFAULT, full, "%s: %zu float32 values expected", full, count);
    memcpy(*out, tensor.data, tensor.bytes);
    return PL_OK;
}

static pl_status mat(loader *l, pl_mat *out, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static pl_status mat(loader *l, pl_mat *out, const char *fmt, ...)
{
    if (!l->checkpoint)
        return PL_OK;
    char full[128];
    int n = snprintf(full, sizeof full, "%s", l->prefix);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(full + n, sizeof full - (size_t)n, fmt, ap);
    va_end(ap);
    pl_mat in;
    PL_TRY(pl_checkpoint_mat(l->checkpoint, full, &in, l->err));
    return l->t->kernels->weights(l->t->kernels, &in, out, l->err);
}

static pl_status load_hc(loader *l, pl__hc *hc, const char *which)
{
    char name[32];
    size_t s = (size_t)l->config->hc_mult;
    snprintf(name, sizeof name, "hc_%s_scale", which);
    PL_TRY(vec_f32(l, &hc->scale, 3, name));
    snprintf(name, sizeof name, "hc_%s_base", which);
    PL_TRY(vec_f32(l, &hc->base, (2 + s) * s, name));
    return mat(l, &hc->fn, "hc_%s_fn", which);
}

static pl_status load_attention(loader *l, pl__block *b)
{
    const pl_config *c = l->config;
    PL_TRY(vec_bf16(l, &b->attn_norm, (size_t)c->hidden, "attn_norm.weight"));
    PL_TRY(vec_bf16(l, &b->ffn_norm, (size_t)c->hidden, "ffn_norm.weight"));
    PL_TRY(vec_bf16(l, &b->q_norm, (size_t)c->q_lora, "attn.q_norm.weight"));
    PL_TRY(vec_bf16(l, &b->kv_norm, (size_t)c->head_dim, "attn.kv_norm.weight"));
    PL_TRY(vec_f32(l, &b->sink, (size_t)c->heads, "attn.attn_sink"));
    PL_TRY(mat(l, &b->wq_a, "attn.wq_a"));
    PL_TRY(mat(l, &b->wq_b, "attn.wq_b"));
    PL_TRY(mat(l, &b->wkv, "attn.wkv"));
    PL_TRY(mat(l, &b->wo_a, "attn.wo_a"));
    PL_TRY(mat(l, &b->wo_b, "attn.wo_b"));
    PL_TRY(load_hc(l, &b->hc_attn, "attn"));
    return load_hc(l, &b->hc_ffn, "ffn");
}

static pl_status load_ffn(loader *l, pl__block *b, int experts, int per_token)
{
    const pl_config *c = l->config;
    pl_mat *w;
    PL_TAKE_HOST(l->t, w, 3 * (size_t)experts, "expert matrices", l->err);
    b->experts = (pl_experts){.experts = experts,
                              .per_token = per_token,
                              .inter = c->moe_inter,
                              .w1 = w,
                              .w2 = w ? w + experts : NULL,
                              .w3 = w ? w + 2 * experts : NULL,
                              .limit = c->swiglu_limit};
    PL_TRY(mat(l, &b->gate, "ffn.gate"));
    PL_TRY(vec_f32(l, &b->gate_bias, (size_t)experts, "ffn.gate.bias"));
    for (int e = 0; e < experts && w; e++) {
        PL_TRY(mat(l, &w[e], "ffn.experts.%d.w1", e));
        PL_TRY(mat(l, &w[experts + e], "ffn.experts.%d.w2", e));
        PL_TRY(mat(l, &w[2 * experts + e], "ffn.experts.%d.w3", e));
    }
    PL_TRY(mat(l, &b->experts.shared_w1, "ffn.shared_experts.w1"));
    PL_TRY(mat(l, &b->experts.shared_w2, "ffn.shared_experts.w2"));
    return mat(l, &b->experts.shared_w3, "ffn.shared_experts.w3");
}

static pl_status load_owner(loader *l, pl__block *b, int layer)
{
    const pl_config *c = l->config;
    if (pl_config_owns_kv(c, layer)) {
        PL_TRY(mat(l, &b->comp_wkv, "attn.compressor.wkv"));
        if (c->ratio[layer] == 2)
            PL_TRY(mat(l, &b->comp_wgate, "attn.compressor.wgate"));
        PL_TRY(vec_bf16(l, &b->comp_norm, (size_t)c->head_dim, "attn.compressor.norm.weight"));
        PL_TRY(mat(l, &b->key, "attn.indexer.wk"));
        PL_TRY(vec_bf16(l, &b->key_norm, (size_t)c->index_dim, "attn.indexer.k_norm.weight"));
    }
    if (pl_config_owns_index(c, layer)) {
        PL_TRY(mat(l, &b->index_q, "attn.indexer.wq_b"));
        PL_TRY(mat(l, &b->index_weight, "attn.indexer.weights_proj"));
    }
    return PL_OK;
}

static pl_status load_engram(loader *l, pl__block *b)
{
    const pl_config *c = l->config;
    size_t sd = (size_t)c->hc_mult * (size_t)c->hidden;
    PL_TRY(vec_bf16(l, &b->engram_q, sd, "engram.q_weight"));
    PL_TRY(vec_bf16(l, &b->engram_k, sd, "engram.k_weight"));
    PL_TRY(mat(l, &b->engram_wkv, "engram.wkv"));
    if (!l->checkpoint)
        return PL_OK;
    char full[128];
    pl_tensor tensor;
    PL_TRY(find(l, "engram.embed.weight", full, sizeof full, &tensor));
    b->engram_codes = tensor.data;
    PL_TRY(find(l, "engram.embed.scale", full, sizeof full, &tensor));
    b->engram_scales = tensor.data;
    return PL_OK;
}

static pl_status load_drafter(loader *l, pl__weights *w)
{
    const pl_config *c = l->config;
    snprintf(l->prefix, sizeof l->prefix, "mtp.0.");
    PL_TRY(mat(l, &w->main_proj, "main_proj"));
    PL_TRY(vec_bf16(l, &w->main_norm, (size_t)c->hidden, "main_norm.weight"));
    snprintf(l->prefix, sizeof l->prefix, "mtp.%d.", c->stages - 1);
    PL_TRY(vec_bf16(l, &w->draft_norm, (size_t)c->hidden, "norm.weight"));
    PL_TRY(mat(l, &w->markov_embed, "markov_head.embed"));
    PL_TRY(mat(l, &w->markov_head, "markov_head.head"));
    PL_TRY(mat(l, &w->confidence_x, "confidence_head.proj"));
    /* Two sums, one a source: x (D columns), then the Markov embedding (rank columns). Row 0 is the only row, so
     * cutting its columns is moving the pointer. */
    w->confidence_e = w->confidence_x;
    w->confidence_x.in = c->hidden;
    w->confidence_e.in = c->markov_rank;
    if (w->confidence_e.data)
        w->confidence_e.data += (size_t)c->hidden * sizeof(pl_bf16);
    return PL_OK;
}

static pl_status load_block(loader *l, pl__block *b, int index)
{
    const pl_config *c = l->config;
    bool stage = index >= c->layers;
    if (stage)
        snprintf(l->prefix, sizeof l->prefix, "mtp.%d.", index - c->layers);
    else
        snprintf(l->prefix, sizeof l->prefix, "layers.%d.", index);
    PL_TRY(load_attention(l, b));
    PL_TRY(
        load_ffn(l, b, stage ? c->draft_experts : c->experts, stage ? c->draft_experts_per_tok : c->experts_per_tok));
    if (stage)
        return PL_OK;
    PL_TRY(load_owner(l, b, index));
    return pl_config_engram_at(c, index) >= 0 ? load_engram(l, b) : PL_OK;
}

pl_status pl__weights_load(pl__weights *w, pl__taker *t, const pl_config *config, const pl_checkpoint *checkpoint,
                           pl_error *err)
{
    loader l = {.t = t, .config = config, .checkpoint = checkpoint, .err = err};
    *w = (pl__weights){0};
    PL_TRY(mat(&l, &w->embed, "embed"));
    PL_TRY(mat(&l, &w->head, "head"));
    PL_TRY(vec_bf16(&l, &w->norm, (size_t)config->hidden, "norm.weight"));
    int blocks = config->layers + config->stages;
    PL_TAKE_HOST(t, w->block, blocks, "layer table", err);
    for (int i = 0; i < blocks; i++) {
        pl__block counted; /* stands in while counting */
        PL_TRY(load_block(&l, w->block ? &w->block[i] : &counted, i));
    }
    return config->stages ? load_drafter(&l, w) : PL_OK;
}
