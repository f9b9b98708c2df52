/* One layer alone from given streams: the sharp comparison with a reference, without its noise floor. */
#include "model/layer.h"

#include <stdlib.h>

/* What the call was given, and where the piece in hand stands. */
typedef struct given {
    const uint16_t *h; /* [layers][rows][S][D] */
    const float *pre;  /* [layers][rows][S] */
    int rows;          /* of the whole sequence */
    int first;         /* first row of this piece */
} given;

/* Stream and collapse weights as layer `layer` receives them: the output of the one before, or the embedding. */
static pl__pre enter(pl_model *m, const given *g, int layer, int rows)
{
    if (layer == 0)
        return pl__embed(m, rows);
    size_t s = (size_t)m->config->hc_mult, sd = s * (size_t)m->config->hidden;
    size_t row = (size_t)(layer - 1) * (size_t)g->rows + (size_t)g->first;
    m->kernels.upload(&m->kernels, m->buffers.h, g->h + row * sd, (size_t)rows * sd * sizeof *g->h);
    m->kernels.upload(&m->kernels, m->buffers.pre0, g->pre + row * s, (size_t)rows * s * sizeof *g->pre);
    return (pl__pre){m->buffers.pre0, (int)s};
}

/* What later layers read of an owner: entries and keys, list and candidates, from the owner's own given input. */
static void produce(pl_model *m, const given *g, int layer, const pl__pass *pass)
{
    const pl__block *b = &m->weights.block[layer];
    int n = pass->launch.rows;
    pl__pre pre = enter(m, g, layer, n);
    pl__engram_apply(m, layer, n);
    pl__collapse_norm(m, pre, b->attn_norm, n);
    pl__project(m, b, &m->rope_long, pass);
    if (pl_config_owns_kv(m->config, layer))
        pl__compress(m, layer, pass);
    if (pl_config_owns_index(m->config, layer))
        pl__index(m, layer, pass);
}

static void piece(pl_model *m, const given *g, int layer, const pl__pass *pass, uint16_t *h_out, float *pre_out)
{
    const pl_config *c = m->config;
    int n = pass->launch.rows;
    int cand = c->candidate_layer, kv = c->kv_owner[layer], list = c->index_owner[layer];
    if (kv >= 0 && kv < layer)
        produce(m, g, kv, pass);
    if (cand >= 0 && list > cand && cand != kv && c->kv_owner[cand] == kv)
        produce(m, g, cand, pass);
    if (list >= 0 && list < layer && list != kv)
        produce(m, g, list, pass);

    pl__pre pre = enter(m, g, layer, n);
    pl__layer(m, layer, pass, &pre, false);
    size_t s = (size_t)c->hc_mult, sd = s * (size_t)c->hidden, first = (size_t)g->first;
    m->kernels.download(&m->kernels, h_out + first * sd, m->buffers.h, (size_t)n * sd * sizeof *h_out);
    for (size_t r = 0; r < (size_t)n; r++)
        m->kernels.download(&m->kernels, pre_out + (first + r) * s, pre.a + r * (size_t)pre.stride,
                            s * sizeof *pre_out);
}

pl_status pl_model_layer(pl_model *m, int layer, const int32_t *token, int rows, const uint16_t *h, const float *pre,
                         uint16_t *h_out, float *pre_out, pl_error *err)
{
    if (layer < 0 || layer >= m->config->layers)
        return pl_fail_param(err, PL_EINVAL, "layer", "layer: 0..%d expected, found %d", m->config->layers - 1, layer);
    if (rows < 1 || rows > m->settings.context || m->state.slot[0].len)
        return pl_fail(err, PL_EINVAL, "trace: 1..%d tokens and a new slot expected, found %d tokens",
                       m->settings.context, rows);
    for (int r = 0; r < rows; r++)
        if (token[r] < 0 || token[r] >= m->config->vocab_size)
            return pl_fail(err, PL_EINVAL, "trace: token 0..%d expected, found %d at position %d",
                           m->config->vocab_size - 1, token[r], r);
    memcpy(m->state.token, token, sizeof *token * (size_t)rows);
    given g = {.h = h, .pre = pre, .rows = rows};
    for (; g.first < rows; g.first += m->settings.piece) {
        int n = rows - g.first < m->settings.piece ? rows - g.first : m->settings.piece;
        memcpy(m->buffers.token, token + g.first, sizeof *token * (size_t)n);
        m->buffers.span[0] = (pl_span){0, g.first, n};
        pl__pass pass;
        pl__pass_build(&pass, &m->buffers, 1);
        pl__engram_ids(m, &pass);
        piece(m, &g, layer, &pass, h_out, pre_out);
    }
    pl_model_reset(m, 0);
    return PL_OK;
}
