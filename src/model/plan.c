#include "model/internal.h"

#include "base/rope.h"

static pl_status choose(int *value, int standard, int min, int max, const char *name, pl_error *err)
{
    if (*value == 0)
        *value = standard;
    if (*value < min || *value > max)
        return pl_fail_param(err, PL_EINVAL, name, "%s: %d..%d expected, found %d", name, min, max, *value);
    return PL_OK;
}

pl_status pl_model_settings_resolve(pl_model_settings *s, const pl_config *c, pl_error *err)
{
    int context = c->max_positions < 32768 ? c->max_positions : 32768;
    if (!s->isa)
        s->isa = "auto";
    PL_TRY(choose(&s->threads, s->threads ? s->threads : pl_cpu_count(), 1, 1024, "threads", err));
    PL_TRY(choose(&s->slots, 1, 1, 1024, "slots", err));
    PL_TRY(choose(&s->context, context, 1, c->max_positions, "context", err));
    PL_TRY(choose(&s->piece, s->context < 256 ? s->context : 256, 1, 8192, "piece", err));
    /* A window of 16 rows and a draft block must fit whatever is asked for. */
    return choose(&s->rows, 64, PL_WINDOW_ROWS, 4096, "rows", err);
}

pl_kernel_limits pl__model_limits(const pl_config *c, const pl_model_settings *s)
{
    pl__buffers rows;
    pl__taker count = {0};
    (void)pl__buffers_take(&rows, &count, c, s, NULL); /* only the row count is read */
    int heads_in = c->heads * c->head_dim, group_out = c->o_groups * c->o_lora;
    int engram_in = (c->engram_ngram - 1) * c->engram_heads * c->engram_dim;
    int ins[] = {c->hidden,           c->q_lora,   heads_in / c->o_groups, group_out, c->moe_inter, engram_in,
                 c->taps * c->hidden, c->head_dim, c->markov_rank};
    int outs[] = {c->vocab_size,
                  heads_in,
                  group_out,
                  (c->hc_mult + 1) * c->hidden,
                  c->index_heads * c->index_dim,
                  c->moe_inter,
                  c->q_lora,
                  c->head_dim,
                  c->experts,
                  c->draft_experts};
    pl_kernel_limits l = {.rows = rows.rows,
                          .slots = s->slots,
                          .hidden = c->hidden,
                          .streams = c->hc_mult,
                          .heads = c->heads,
                          .head_dim = c->head_dim,
                          .rope_dim = c->rope_dim,
                          .per_token = c->experts_per_tok,
                          .experts = c->experts,
                          .inter = c->moe_inter,
                          .window = c->window,
                          .topk = c->index_topk < s->context ? c->index_topk : s->context,
                          .index_heads = c->index_heads,
                          .index_dim = c->index_dim,
                          .context = s->context,
                          .block = c->block};
    if (c->stages && c->draft_experts > l.experts)
        l.experts = c->draft_experts;
    if (c->stages && c->draft_experts_per_tok > l.per_token)
        l.per_token = c->draft_experts_per_tok;
    for (size_t i = 0; i < sizeof ins / sizeof *ins; i++)
        l.max_in = ins[i] > l.max_in ? ins[i] : l.max_in;
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        l.max_out = outs[i] > l.max_out ? outs[i] : l.max_out;
    return l;
}

static pl_status take_rope(pl_rope *rope, pl__taker *t, const pl_config *c, bool long_range, pl_error *err)
{
    float *freq;
    PL_TAKE_HOST(t, freq, c->rope_dim / 2, "rope frequencies", err);
    if (freq) {
        pl_rope_yarn yarn = {c->yarn_factor, c->yarn_beta_fast, c->yarn_beta_slow, c->yarn_original};
        pl_rope_frequencies(freq, c->rope_dim, long_range ? c->compress_rope_theta : c->rope_theta,
                            long_range && c->yarn ? &yarn : NULL);
    }
    *rope = (pl_rope){.dims = c->rope_dim, .freq = freq};
    return PL_OK;
}

pl_status pl__model_take(pl_model *m, pl__taker *state, pl__taker *rest, pl__taker *weights, const uint32_t *token_map,
                         pl_error *err)
{
    const pl_config *c = m->config;
    PL_TRY(pl__weights_load(&m->weights, weights, c, m->checkpoint, err));
    PL_TRY(pl__engrams_load(&m->engrams, weights, c, token_map, err));
    PL_TRY(pl__state_take(&m->state, state, c, &m->settings, err));
    PL_TRY(pl__buffers_take(&m->buffers, rest, c, &m->settings, err));
    PL_TRY(take_rope(&m->rope_plain, rest, c, false, err));
    return take_rope(&m->rope_long, rest, c, true, err);
}

pl_status pl_model_plan(pl_plan *plan, const pl_config *c, const pl_model_settings *settings, pl_error *err)
{
    pl_model counted = {.config = c, .settings = *settings};
    pl__taker state = {0}, rest = {0}, weights = {0};
    PL_TRY(pl__model_take(&counted, &state, &rest, &weights, NULL, err));
    pl_kernel_limits limits = pl__model_limits(c, settings);
    *plan = (pl_plan){
        .state = state.bytes + state.host_bytes,
        .state_slot = (state.bytes + state.host_bytes) / (uint64_t)settings->slots,
        .token_bytes = pl__state_token_bytes2(c) / 2,
        .logits = 2 * (uint64_t)settings->rows * (uint64_t)c->vocab_size * sizeof(float),
        .weights_copied = weights.bytes + weights.host_bytes,
        .scratch = pl_cpu_scratch_bytes(&limits, settings->threads),
    };
    plan->activations = rest.bytes + rest.host_bytes - plan->logits;
    plan->resident = plan->state + plan->logits + plan->weights_copied + plan->scratch + plan->activations;
    return PL_OK;
}
