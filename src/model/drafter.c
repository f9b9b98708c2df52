/* The DSpark drafter: model spec section 4. */
#include "model/layer.h"

#include <math.h>

bool pl_drafter_present(const pl_model *m)
{
    return m->config->stages > 0;
}

int pl_drafter_count(const pl_model *m, int slot)
{
    return m->state.slot[slot].ingested;
}

/* The spans still to be ingested: what is older than the window is never read, so it is skipped. */
static pl_status plan_ingest(pl_model *m, const int *slot, const int *count, int slots, int *spans, pl_error *err)
{
    *spans = 0;
    for (int i = 0; i < slots; i++) {
        if (slot[i] < 0 || slot[i] >= m->settings.slots)
            return pl_fail(err, PL_EINVAL, "ingest: slot 0..%d expected, found %d", m->settings.slots - 1, slot[i]);
        const pl__slot *s = &m->state.slot[slot[i]];
        int from = s->ingested, oldest = count[i] - m->config->window;
        if (count[i] < from || count[i] > s->len)
            return pl_fail(err, PL_EINVAL, "ingest: slot %d: %d..%d positions expected, found %d", slot[i], from,
                           s->len, count[i]);
        if (from < oldest)
            from = oldest;
        if (from < s->high - m->state.taps.length)
            return pl_fail(err, PL_EINVAL, "ingest: slot %d: the tap of position %d is no longer kept (from %d on)",
                           slot[i], from, s->high - m->state.taps.length);
        if (from < count[i])
            m->buffers.span[(*spans)++] = (pl_span){slot[i], from, count[i] - from};
    }
    return PL_OK;
}

static void ingest_pass(pl_model *m, const pl__pass *pass)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__weights *w = &m->weights;
    int n = pass->launch.rows;
    k->ring_get(k, f->taps, &m->state.taps, &pass->launch);
    k->quant8(k, f->main_q, f->taps, n, c->taps * c->hidden);
    k->lin(k, f->x, (size_t)c->hidden, PL_OUT_BF16, f->main_q, (size_t)w->main_proj.in, &w->main_proj, n);
    k->rmsnorm(k, f->x, f->x, w->main_norm, n, c->hidden, c->norm_eps);
    k->quant8(k, f->xq, f->x, n, c->hidden);
    for (int s = 0; s < c->stages; s++) {
        const pl__block *b = &w->block[c->layers + s];
        k->lin(k, f->kv, (size_t)c->head_dim, PL_OUT_BF16, f->xq, (size_t)c->hidden, &b->wkv, n);
        k->rmsnorm(k, f->kv, f->kv, b->kv_norm, n, c->head_dim, c->norm_eps);
        k->rope(k, f->kv, pass->launch.pos, n, 1, c->head_dim, &m->rope_plain, false);
        k->window_put(k, &m->state.draft[s], f->kv, c->head_dim, &pass->launch);
    }
}

pl_status pl_drafter_ingest(pl_model *m, const int *slot, const int *count, int slots, pl_error *err)
{
    int spans;
    PL_TRY(plan_ingest(m, slot, count, slots, &spans, err));
    /* As many spans at a time as the buffers hold rows; one span always fits (buffers.c). */
    pl_span *all = m->buffers.span;
    for (int done = 0; done < spans;) {
        int take = 0, rows = 0;
        while (done + take < spans && rows + all[done + take].rows <= m->buffers.rows)
            rows += all[done + take++].rows;
        memmove(all, all + done, sizeof *all * (size_t)(spans - done));
        spans -= done;
        done = take;
        pl__pass pass;
        pl__pass_build(&pass, &m->buffers, take);
        ingest_pass(m, &pass);
    }
    for (int i = 0; i < slots; i++)
        m->state.slot[slot[i]].ingested = count[i];
    return PL_OK;
}

/* One draft stage on the block rows: attention over the ring and the whole block, no mask inside it. */
static void stage(pl_model *m, int s, const pl__pass *pass, pl__pre *pre)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__block *b = &m->weights.block[c->layers + s];
    int n = pass->launch.rows;
    pl__coef(m, f->coef_attn, &b->hc_attn, n);
    pl__collapse_norm(m, *pre, b->attn_norm, n);
    pl__project(m, b, &m->rope_plain, pass);
    k->quant8(k, f->kv, f->kv, n, c->head_dim);
    k->block_attention(k, f->o, f->q, &m->state.draft[s], c->window, f->kv, b->sink, c->heads, c->head_dim,
                       pl__attention_scale(c), &pass->launch);
    pl__attention_out(m, b, &m->rope_plain, pass);
    pl__expand(m, f->coef_attn, n);
    pl__coef(m, f->coef_ffn, &b->hc_ffn, n);
    pl__ffn(m, b, n);
    pl__expand(m, f->coef_ffn, n);
    *pre = (pl__pre){f->coef_ffn, (2 + c->hc_mult) * c->hc_mult};
}

static float best_margin(const float *row, int count, int32_t chosen)
{
    float second = -INFINITY;
    for (int i = 0; i < count; i++)
        if (i != chosen && row[i] > second)
            second = row[i];
    return row[chosen] - second;
}

/* The Markov chain: row r of every ask is scored with the token chosen for row r-1, then chosen itself. */
static void chain(pl_model *m, const pl_ask *ask, int asks, pl_draft_pick *pick, void *arg, pl_proposal *out)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    const pl__weights *w = &m->weights;
    size_t v = (size_t)c->vocab_size, d = (size_t)c->hidden, rank = (size_t)c->markov_rank;
    for (int r = 0; r < c->block; r++) {
        for (int i = 0; i < asks; i++)
            f->token[i] = r ? out[i].draft[r - 1] : ask[i].anchor;
        k->gather(k, f->markov, &w->markov_embed, f->token, asks);
        k->lin(k, f->draft_row, v, PL_OUT_F32, f->markov, rank, &w->markov_head, asks);
        k->lin(k, f->conf_e, 1, PL_OUT_F32, f->markov, rank, &w->confidence_e, asks);
        for (int i = 0; i < asks; i++) {
            size_t row = (size_t)i * (size_t)c->block + (size_t)r;
            k->add(k, f->draft_row + (size_t)i * v, f->draft_base + row * v, f->draft_row + (size_t)i * v, v);
            k->lin(k, f->conf_x + i, 1, PL_OUT_F32, f->draft_x + row * d, d, &w->confidence_x, 1);
        }
        k->add(k, f->conf_x, f->conf_x, f->conf_e, (size_t)asks);
        k->download(k, f->logits_host, f->draft_row, (size_t)asks * v * sizeof(float));
        k->download(k, f->conf_host, f->conf_x, (size_t)asks * sizeof(float));
        k->argmax(k, f->token, f->draft_row, asks, c->vocab_size);
        for (int i = 0; i < asks; i++) {
            const float *row = f->logits_host + (size_t)i * v;
            out[i].draft[r] = pick ? pick(arg, i, r, row) : f->token[i];
            out[i].confidence[r] = f->conf_host[i];
            out[i].margin[r] = best_margin(row, c->vocab_size, f->token[i]);
        }
    }
}

static pl_status check_asks(const pl_model *m, const pl_ask *ask, int asks, pl_error *err)
{
    const pl_config *c = m->config;
    if (!c->stages)
        return pl_fail(err, PL_EINVAL, "propose: this model has no drafter");
    if (asks < 1 || asks > m->settings.rows / c->block)
        return pl_fail(err, PL_EINVAL, "propose: 1..%d asks expected, found %d", m->settings.rows / c->block, asks);
    for (int i = 0; i < asks; i++) {
        if (ask[i].slot < 0 || ask[i].slot >= m->settings.slots || m->state.slot[ask[i].slot].ingested < 1)
            return pl_fail(err, PL_EINVAL, "propose: slot %d has nothing ingested", ask[i].slot);
        if (ask[i].anchor < 0 || ask[i].anchor >= c->vocab_size)
            return pl_fail(err, PL_EINVAL, "propose: anchor 0..%d expected, found %d", c->vocab_size - 1,
                           ask[i].anchor);
        for (int j = 0; j < i; j++)
            if (ask[j].slot == ask[i].slot)
                return pl_fail(err, PL_EINVAL, "propose: slot %d asks twice", ask[i].slot);
    }
    return PL_OK;
}

pl_status pl_drafter_propose(pl_model *m, const pl_ask *ask, int asks, pl_draft_pick *pick, void *arg, pl_proposal *out,
                             pl_error *err)
{
    PL_TRY(check_asks(m, ask, asks, err));
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    for (int i = 0; i < asks; i++) {
        f->span[i] = (pl_span){ask[i].slot, m->state.slot[ask[i].slot].ingested, c->block};
        for (int r = 0; r < c->block; r++)
            f->token[i * c->block + r] = r ? c->noise_token : ask[i].anchor;
    }
    memset(out, 0, sizeof *out * (size_t)asks);
    pl__pass pass;
    pl__pass_build(&pass, f, asks);
    int n = pass.launch.rows;
    pl__pre pre = pl__embed(m, n);
    for (int s = 0; s < c->stages; s++)
        stage(m, s, &pass, &pre);
    k->collapse(k, f->draft_x, f->h, pre.a, pre.stride, n, c->hc_mult, c->hidden);
    k->rmsnorm(k, f->z, f->draft_x, m->weights.draft_norm, n, c->hidden, c->norm_eps);
    k->lin(k, f->draft_base, (size_t)c->vocab_size, PL_OUT_F32, f->z, (size_t)c->hidden, &m->weights.head, n);
    chain(m, ask, asks, pick, arg, out);
    m->wanted = 0; /* the logits of the last forward were overwritten */
    return PL_OK;
}
