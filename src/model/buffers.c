#include "model/buffers.h"

static pl_status take_streams(pl__buffers *b, pl__taker *t, const pl_config *c, pl_error *err)
{
    size_t r = (size_t)b->rows, s = (size_t)c->hc_mult, d = (size_t)c->hidden;
    PL_TAKE(t, b->h, r * s * d, "residual streams", err);
    PL_TAKE(t, b->pre0, r * s, "collapse weights", err);
    PL_TAKE(t, b->coef_attn, r * (2 + s) * s, "hyper-connection coefficients", err);
    PL_TAKE(t, b->coef_ffn, r * (2 + s) * s, "hyper-connection coefficients", err);
    PL_TAKE(t, b->x, r * d, "sublayer input", err);
    PL_TAKE(t, b->xq, r * d, "sublayer input, rounded", err);
    PL_TAKE(t, b->y, r * d, "sublayer output", err);
    return PL_OK;
}

static pl_status take_attention(pl__buffers *b, pl__taker *t, const pl_config *c, const pl_model_settings *set,
                                pl_error *err)
{
    size_t r = (size_t)b->rows, hc = (size_t)c->heads * (size_t)c->head_dim,
           g = (size_t)c->o_groups * (size_t)c->o_lora;
    PL_TAKE(t, b->qr, r * (size_t)c->q_lora, "query latent", err);
    PL_TAKE(t, b->qrq, r * (size_t)c->q_lora, "query latent, rounded", err);
    PL_TAKE(t, b->q, r * hc, "queries", err);
    PL_TAKE(t, b->o, r * hc, "attention result", err);
    PL_TAKE(t, b->kv, r * (size_t)c->head_dim, "window KV", err);
    PL_TAKE(t, b->u, r * g, "output latent", err);
    PL_TAKE(t, b->uq, r * g, "output latent, rounded", err);
    PL_TAKE(t, b->comp_kv, r * (size_t)c->head_dim, "compressor", err);
    PL_TAKE(t, b->comp_gate, r * (size_t)c->head_dim, "compressor", err);
    PL_TAKE(t, b->lat, r * (size_t)c->head_dim, "compressor", err);
    PL_TAKE(t, b->key, r * (size_t)c->index_dim, "index keys", err);
    PL_TAKE(t, b->index_q, r * (size_t)c->index_heads * (size_t)c->index_dim, "index queries", err);
    PL_TAKE(t, b->index_w, r * (size_t)c->index_heads, "index weights", err);
    b->lists.stride = c->index_topk < set->context ? c->index_topk : set->context;
    PL_TAKE(t, b->lists.list, r * (size_t)b->lists.stride, "selected entries", err);
    PL_TAKE(t, b->lists.count, r, "selected entries", err);
    if (c->candidate_layer < 0)
        return PL_OK;
    int blocks = set->context / c->candidate_block + 1;
    b->candidates =
        (pl_candidates){.words = (blocks + 63) / 64, .block = c->candidate_block, .keep = c->candidate_blocks};
    PL_TAKE(t, b->candidates.mask, r * (size_t)b->candidates.words, "candidate blocks", err);
    return PL_OK;
}

static pl_status take_ffn(pl__buffers *b, pl__taker *t, const pl_config *c, pl_error *err)
{
    size_t r = (size_t)b->rows;
    int experts = c->stages && c->draft_experts > c->experts ? c->draft_experts : c->experts;
    int k = c->stages && c->draft_experts_per_tok > c->experts_per_tok ? c->draft_experts_per_tok : c->experts_per_tok;
    PL_TAKE(t, b->gate, r * (size_t)experts, "router", err);
    PL_TAKE(t, b->expert, r * (size_t)k, "router", err);
    PL_TAKE(t, b->expert_w, r * (size_t)k, "router", err);
    return PL_OK;
}

static pl_status take_engram(pl__buffers *b, pl__taker *t, const pl_config *c, pl_error *err)
{
    size_t r = (size_t)b->rows, cols = (size_t)(c->engram_ngram - 1) * (size_t)c->engram_heads;
    PL_TAKE_HOST(t, b->skip, r, "image positions", err);
    if (!c->engrams)
        return PL_OK;
    PL_TAKE_HOST(t, b->engram_id, (size_t)c->engrams * r * cols, "engram rows", err);
    PL_TAKE(t, b->engram_x, r * cols * (size_t)c->engram_dim, "engram rows", err);
    PL_TAKE(t, b->engram_xq, r * cols * (size_t)c->engram_dim, "engram rows, rounded", err);
    PL_TAKE(t, b->engram_kv, r * (size_t)(c->hc_mult + 1) * (size_t)c->hidden, "engram keys and value", err);
    return PL_OK;
}

static pl_status take_drafter(pl__buffers *b, pl__taker *t, const pl_config *c, size_t out_rows, pl_error *err)
{
    if (!c->stages)
        return PL_OK;
    size_t td = (size_t)c->taps * (size_t)c->hidden, v = (size_t)c->vocab_size;
    PL_TAKE(t, b->taps, (size_t)b->rows * td, "taps", err);
    PL_TAKE(t, b->main_q, (size_t)b->rows * td, "taps, rounded", err);
    PL_TAKE(t, b->draft_base, out_rows * v, "draft logits", err);
    PL_TAKE(t, b->draft_row, out_rows * v, "draft logits", err);
    PL_TAKE(t, b->draft_x, out_rows * (size_t)c->hidden, "draft rows", err);
    PL_TAKE(t, b->markov, out_rows * (size_t)c->markov_rank, "Markov embedding", err);
    PL_TAKE(t, b->conf_x, out_rows, "confidence", err);
    PL_TAKE(t, b->conf_e, out_rows, "confidence", err);
    PL_TAKE_HOST(t, b->conf_host, out_rows, "confidence", err);
    return PL_OK;
}

pl_status pl__buffers_take(pl__buffers *b, pl__taker *t, const pl_config *c, const pl_model_settings *set,
                           pl_error *err)
{
    *b = (pl__buffers){.rows = set->piece > set->rows ? set->piece : set->rows};
    /* A catch-up ingest is one launch of up to the tap ring. */
    if (c->stages && b->rows < c->window + PL_WINDOW_ROWS)
        b->rows = c->window + PL_WINDOW_ROWS;
    size_t r = (size_t)b->rows, out_rows = (size_t)set->rows;
    PL_TRY(take_streams(b, t, c, err));
    PL_TRY(take_attention(b, t, c, set, err));
    PL_TRY(take_ffn(b, t, c, err));
    PL_TRY(take_engram(b, t, c, err));
    PL_TRY(take_drafter(b, t, c, out_rows, err));
    PL_TAKE(t, b->z, out_rows * (size_t)c->hidden, "final rows", err);
    PL_TAKE(t, b->logits, out_rows * (size_t)c->vocab_size, "logits", err);
    PL_TAKE_HOST(t, b->logits_host, out_rows * (size_t)c->vocab_size, "logits", err);
    PL_TAKE_HOST(t, b->span, r, "launch", err);
    PL_TAKE_HOST(t, b->slot, r, "launch", err);
    PL_TAKE_HOST(t, b->pos, r, "launch", err);
    PL_TAKE_HOST(t, b->token, r, "launch", err);
    for (int i = 1; i <= 2; i++) {
        PL_TAKE_HOST(t, b->group_slot[i], r, "launch", err);
        PL_TAKE_HOST(t, b->group_index[i], r, "launch", err);
    }
    return PL_OK;
}

void pl__pass_build(pl__pass *pass, pl__buffers *b, int spans)
{
    int rows = 0;
    *pass = (pl__pass){0};
    for (int ratio = 1; ratio <= 2; ratio++)
        pass->groups[ratio] = (pl_groups){.ratio = ratio, .slot = b->group_slot[ratio], .index = b->group_index[ratio]};
    for (int i = 0; i < spans; i++) {
        const pl_span *s = &b->span[i];
        for (int r = 0; r < s->rows; r++, rows++) {
            b->slot[rows] = s->slot;
            b->pos[rows] = s->pos + r;
        }
        for (int ratio = 1; ratio <= 2; ratio++)
            for (int j = s->pos / ratio; j < (s->pos + s->rows) / ratio; j++) {
                int at = pass->groups[ratio].count++;
                b->group_slot[ratio][at] = s->slot;
                b->group_index[ratio][at] = j;
            }
    }
    pass->launch = (pl_launch){.spans = spans, .span = b->span, .rows = rows, .slot = b->slot, .pos = b->pos};
}
