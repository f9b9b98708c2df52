#include "model/layer.h"

#include <math.h>

float pl__attention_scale(const pl_config *config)
{
    return (float)(1.0 / sqrt((double)config->head_dim));
}

pl__pre pl__embed(pl_model *m, int rows)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *b = &m->buffers;
    k->embed(k, b->h, b->pre0, &m->weights.embed, b->token, rows, m->config->hc_mult);
    return (pl__pre){b->pre0, m->config->hc_mult};
}

void pl__collapse_norm(pl_model *m, pl__pre pre, const pl_bf16 *norm, int rows)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *b = &m->buffers;
    const pl_config *c = m->config;
    k->collapse(k, b->x, b->h, pre.a, pre.stride, rows, c->hc_mult, c->hidden);
    k->rmsnorm(k, b->x, b->x, norm, rows, c->hidden, c->norm_eps);
}

void pl__coef(pl_model *m, float *coef, const pl__hc *hc, int rows)
{
    pl_kernels *k = &m->kernels;
    const pl_config *c = m->config;
    k->hc_coef(k, coef, m->buffers.h, &hc->fn, hc->scale, hc->base, rows, c->hc_mult, c->hidden, c->hc_iters, c->hc_eps,
               c->norm_eps);
}

void pl__expand(pl_model *m, const float *coef, int rows)
{
    pl_kernels *k = &m->kernels;
    k->expand(k, m->buffers.h, m->buffers.y, coef, rows, m->config->hc_mult, m->config->hidden);
}

/* y = w x for rows that lie one behind the other. */
static void lin(pl_model *m, void *y, pl_out out, const pl_bf16 *x, const pl_mat *w, int rows)
{
    pl_kernels *k = &m->kernels;
    k->lin(k, y, (size_t)w->out, out, x, (size_t)w->in, w, rows);
}

void pl__project(pl_model *m, const pl__block *b, const pl_rope *rope, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    int n = pass->launch.rows;
    k->quant8(k, f->xq, f->x, n, c->hidden);

    lin(m, f->qr, PL_OUT_BF16, f->xq, &b->wq_a, n);
    k->rmsnorm(k, f->qr, f->qr, b->q_norm, n, c->q_lora, c->norm_eps);
    k->quant8(k, f->qrq, f->qr, n, c->q_lora);
    lin(m, f->q, PL_OUT_BF16, f->qrq, &b->wq_b, n);
    k->rope(k, f->q, pass->launch.pos, n, c->heads, c->head_dim, rope, false);

    lin(m, f->kv, PL_OUT_BF16, f->xq, &b->wkv, n);
    k->rmsnorm(k, f->kv, f->kv, b->kv_norm, n, c->head_dim, c->norm_eps);
    k->rope(k, f->kv, pass->launch.pos, n, 1, c->head_dim, rope, false);
}

void pl__compress(pl_model *m, int layer, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__block *b = &m->weights.block[layer];
    const pl_groups *groups = &pass->groups[c->ratio[layer]];
    int n = pass->launch.rows;
    if (c->ratio[layer] == 2) {
        lin(m, f->comp_kv, PL_OUT_F32, f->x, &b->comp_wkv, n);
        lin(m, f->comp_gate, PL_OUT_F32, f->x, &b->comp_wgate, n);
        k->pair_put(k, &m->state.pairs[layer], f->comp_kv, f->comp_gate, c->head_dim, &pass->launch);
        if (!groups->count)
            return; /* an odd remainder waits in the pair ring */
        k->pair_latent(k, f->lat, &m->state.pairs[layer], c->head_dim, groups);
    } else {
        lin(m, f->lat, PL_OUT_BF16, f->x, &b->comp_wkv, n);
    }
    k->rmsnorm(k, f->lat, f->lat, b->comp_norm, groups->count, c->head_dim, c->norm_eps);

    /* The index key is made from the latent before it is rotated. */
    lin(m, f->key, PL_OUT_BF16, f->lat, &b->key, groups->count);
    k->rmsnorm(k, f->key, f->key, b->key_norm, groups->count, c->index_dim, c->norm_eps);
    k->key_put(k, &m->state.entries[layer], f->key, c->index_dim, &m->rope_long, groups);
    k->entry_put(k, &m->state.entries[layer], f->lat, c->head_dim, &m->rope_long, groups);
}

void pl__index(pl_model *m, int layer, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__block *b = &m->weights.block[layer];
    int n = pass->launch.rows, cand = c->candidate_layer;
    lin(m, f->index_q, PL_OUT_BF16, f->qrq, &b->index_q, n);
    k->rope(k, f->index_q, pass->launch.pos, n, c->index_heads, c->index_dim, &m->rope_long, false);
    k->quant4(k, f->index_q, f->index_q, n, c->index_heads * c->index_dim);
    lin(m, f->index_w, PL_OUT_BF16, f->x, &b->index_weight, n);

    /* Each indexer scores against its own KV owner's keys (docs/architecture.md, "Index keys"). */
    float scale = (float)(1.0 / sqrt((double)c->index_dim) / sqrt((double)c->index_heads));
    bool within = cand >= 0 && layer > cand && c->kv_owner[layer] == c->kv_owner[cand];
    k->index_select(k, &f->lists, c->index_topk, f->index_q, f->index_w, scale, &m->state.entries[c->kv_owner[layer]],
                    c->index_heads, c->index_dim, layer == cand ? &f->candidates : NULL, within ? &f->candidates : NULL,
                    &pass->launch);
}

void pl__attention_out(pl_model *m, const pl__block *b, const pl_rope *rope, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    int n = pass->launch.rows;
    k->rope(k, f->o, pass->launch.pos, n, c->heads, c->head_dim, rope, true);
    k->lin_groups(k, f->u, f->o, &b->wo_a, c->o_groups, n);
    k->quant8(k, f->uq, f->u, n, c->o_groups * c->o_lora);
    lin(m, f->y, PL_OUT_BF16, f->uq, &b->wo_b, n);
}

void pl__ffn(pl_model *m, const pl__block *b, int rows)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl_experts *e = &b->experts;
    int coefs = (2 + c->hc_mult) * c->hc_mult;
    pl__collapse_norm(m, (pl__pre){f->coef_attn, coefs}, b->ffn_norm, rows);
    lin(m, f->gate, PL_OUT_F32, f->x, &b->gate, rows);
    k->route(k, f->expert, f->expert_w, f->gate, b->gate_bias, rows, e->experts, e->per_token, c->norm_topk,
             c->gate_temp, c->route_scale);
    k->quant8(k, f->xq, f->x, rows, c->hidden);
    k->moe(k, f->y, f->xq, f->expert, f->expert_w, e, rows, c->hidden);
}

void pl__engram_ids(pl_model *m, const pl__pass *pass)
{
    const pl_config *c = m->config;
    pl__buffers *f = &m->buffers;
    for (int r = 0; r < pass->launch.rows; r++) {
        const int32_t *tokens = m->state.token + (size_t)f->slot[r] * (size_t)m->settings.context;
        f->skip[r] = tokens[f->pos[r]] == c->image_token;
        for (int e = 0; e < c->engrams; e++)
            pl__engram_rows(&m->engrams, c, e, tokens, f->pos[r],
                            f->engram_id + ((size_t)e * (size_t)f->rows + (size_t)r) * (size_t)m->engrams.cols);
    }
}

void pl__engram_apply(pl_model *m, int layer, int rows)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    int which = pl_config_engram_at(c, layer), cols = m->engrams.cols;
    if (which < 0)
        return;
    const pl__block *b = &m->weights.block[layer];
    k->engram_rows(k, f->engram_x, b->engram_codes, b->engram_scales, c->engram_dim,
                   f->engram_id + (size_t)which * (size_t)f->rows * (size_t)cols, cols, rows);
    k->quant8(k, f->engram_xq, f->engram_x, rows, cols * c->engram_dim);
    lin(m, f->engram_kv, PL_OUT_BF16, f->engram_xq, &b->engram_wkv, rows);
    k->engram_gate(k, f->h, f->engram_kv, b->engram_q, b->engram_k, f->skip, rows, c->hc_mult, c->hidden, c->norm_eps);
}

static void note_taps(pl_model *m, int layer, int rows)
{
    const pl_config *c = m->config;
    for (int t = 0; t < c->taps && c->stages; t++)
        if (c->tap_layer[t] == layer)
            m->kernels.stream_mean(&m->kernels, m->buffers.taps + (size_t)t * (size_t)c->hidden,
                                   (size_t)c->taps * (size_t)c->hidden, m->buffers.h, rows, c->hc_mult, c->hidden);
}

/* Parts of a layer are as long as a layer of a short piece: who left should not hold the engine up for all of them. */
static bool given_up(const pl__pass *pass)
{
    return pass->cancel && atomic_load_explicit(pass->cancel, memory_order_relaxed);
}

static bool attend(pl_model *m, int layer, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__block *b = &m->weights.block[layer];
    const pl_rope *rope = c->ratio[layer] ? &m->rope_long : &m->rope_plain;
    int owner = c->kv_owner[layer];
    pl__project(m, b, rope, pass);
    k->window_put(k, &m->state.window[layer], f->kv, c->head_dim, &pass->launch);
    if (given_up(pass))
        return false;
    if (pl_config_owns_kv(c, layer))
        pl__compress(m, layer, pass);
    if (pl_config_owns_index(c, layer))
        pl__index(m, layer, pass);
    if (given_up(pass))
        return false;
    k->attention(k, f->o, f->q, &m->state.window[layer], c->window, owner < 0 ? NULL : &m->state.entries[owner],
                 owner < 0 ? NULL : &f->lists, b->sink, c->heads, c->head_dim, pl__attention_scale(c), &pass->launch);
    if (given_up(pass))
        return false;
    pl__attention_out(m, b, rope, pass);
    return !given_up(pass);
}

bool pl__layer(pl_model *m, int layer, const pl__pass *pass, pl__pre *pre, bool taps)
{
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__block *b = &m->weights.block[layer];
    int n = pass->launch.rows;

    if (given_up(pass))
        return false;
    pl__engram_apply(m, layer, n);
    if (taps)
        note_taps(m, layer, n); /* the stream that enters the layer, its engram included */
    pl__coef(m, f->coef_attn, &b->hc_attn, n);
    pl__collapse_norm(m, *pre, b->attn_norm, n);
    if (given_up(pass) || !attend(m, layer, pass))
        return false;
    pl__expand(m, f->coef_attn, n);

    pl__coef(m, f->coef_ffn, &b->hc_ffn, n);
    pl__ffn(m, b, n);
    pl__expand(m, f->coef_ffn, n);
    *pre = (pl__pre){f->coef_ffn, (2 + c->hc_mult) * c->hc_mult}; /* A of the FFN: collapses the next layer's input */
    return true;
}
