/* The target's forward pass: model spec section 3.1. */
#include "model/layer.h"

#include <stdlib.h>

static pl_status check_run(const pl_model *m, const pl_run *run, int i, const pl_run *all, pl_error *err)
{
    const pl_config *c = m->config;
    if (run->slot < 0 || run->slot >= m->settings.slots || run->rows < 1)
        return pl_fail(err, PL_EINVAL, "forward: slot 0..%d and at least one row expected, found slot %d, %d rows",
                       m->settings.slots - 1, run->slot, run->rows);
    for (int j = 0; j < i; j++)
        if (all[j].slot == run->slot)
            return pl_fail(err, PL_EINVAL, "forward: slot %d is named twice in one launch", run->slot);
    const pl__slot *slot = &m->state.slot[run->slot];
    if (run->pos < 0 || run->pos > slot->len || run->rows > m->settings.context - run->pos)
        return pl_fail(err, PL_EINVAL,
                       "forward: %d rows at position %d do not fit slot %d (%d tokens held, context %d)", run->rows,
                       run->pos, run->slot, slot->len, m->settings.context);
    /* What lies behind a rewind must still be in the rings. */
    int reach = m->state.window[0].length - c->window;
    if (slot->high - run->pos > reach)
        return pl_fail(err, PL_EINVAL, "forward: slot %d cannot be rewound from %d to %d: %d positions at most",
                       run->slot, slot->high, run->pos, reach);
    for (int r = 0; r < run->rows; r++)
        if (run->token[r] < 0 || run->token[r] >= c->vocab_size)
            return pl_fail(err, PL_EINVAL, "forward: token 0..%d expected, found %d at position %d", c->vocab_size - 1,
                           run->token[r], run->pos + r);
    return PL_OK;
}

static pl_status check_launch(const pl_model *m, const pl_run *run, int runs, pl_error *err)
{
    int rows = 0, wanted = 0;
    for (int i = 0; i < runs; i++) {
        PL_TRY(check_run(m, &run[i], i, run, err));
        rows += run[i].rows;
        wanted += run[i].want == PL_WANT_ALL ? run[i].rows : run[i].want == PL_WANT_LAST;
        if (runs > 1 && run[i].rows > PL_WINDOW_ROWS)
            return pl_fail(err, PL_EINVAL, "forward: a window of %d rows, at most %d expected beside other slots",
                           run[i].rows, PL_WINDOW_ROWS);
    }
    int piece = m->settings.piece > PL_WINDOW_ROWS ? m->settings.piece : PL_WINDOW_ROWS;
    int most = runs == 1 ? piece : m->settings.rows; /* one slot's rings hold a piece beyond the window, no more */
    if (runs < 1 || rows > most || wanted > m->settings.rows)
        return pl_fail(err, PL_EINVAL, "forward: a launch of %d rows, %d with logits: at most %d and %d expected", rows,
                       wanted, most, m->settings.rows);
    return PL_OK;
}

/* Write the tokens down, rewind, and number the rows. */
static void begin(pl_model *m, const pl_run *run, int runs, pl__pass *pass)
{
    int at = 0;
    for (int i = 0; i < runs; i++) {
        pl__slot *slot = &m->state.slot[run[i].slot];
        int32_t *tokens = m->state.token + (size_t)run[i].slot * (size_t)m->settings.context;
        size_t bytes = sizeof(int32_t) * (size_t)run[i].rows;
        memcpy(tokens + run[i].pos, run[i].token, bytes);
        memcpy(m->buffers.token + at, run[i].token, bytes);
        at += run[i].rows;
        slot->len = run[i].pos;
        if (slot->ingested > run[i].pos)
            slot->ingested = run[i].pos;
        if (slot->high < run[i].pos + run[i].rows)
            slot->high = run[i].pos + run[i].rows;
        m->buffers.span[i] = (pl_span){run[i].slot, run[i].pos, run[i].rows};
    }
    pl__pass_build(pass, &m->buffers, runs);
}

static pl_status trace_layer(pl_model *m, const pl_tracer *tracer, int layer, pl__pre pre, int rows, pl_error *err)
{
    size_t s = (size_t)m->config->hc_mult, d = (size_t)m->config->hidden, n = (size_t)rows;
    uint16_t *h = malloc(n * s * d * sizeof *h);
    float *a = malloc(n * (size_t)pre.stride * sizeof *a);
    pl_status status = h && a ? PL_OK : pl_fail(err, PL_ENOMEM, "trace: no memory for %d rows", rows);
    if (status == PL_OK) {
        m->kernels.download(&m->kernels, h, m->buffers.h, n * s * d * sizeof *h);
        m->kernels.download(&m->kernels, a, pre.a, n * (size_t)pre.stride * sizeof *a);
        for (size_t r = 0; r < n; r++) /* close the gaps: the first S of each row */
            memmove(a + r * s, a + r * (size_t)pre.stride, s * sizeof *a);
        status = tracer->layer(tracer->arg, layer, h, a, rows, err);
    }
    free(h);
    free(a);
    return status;
}

/* Logits of the wanted rows: collapse and norm them into z, one head product for all. */
static void finish(pl_model *m, const pl_run *run, int runs, pl__pre pre)
{
    pl_kernels *k = &m->kernels;
    pl__buffers *f = &m->buffers;
    const pl_config *c = m->config;
    size_t d = (size_t)c->hidden, v = (size_t)c->vocab_size;
    int row = 0, out = 0;
    for (int i = 0; i < runs; row += run[i].rows, i++) {
        int n = run[i].want == PL_WANT_ALL ? run[i].rows : run[i].want == PL_WANT_LAST;
        if (!n)
            continue;
        size_t first = (size_t)(row + run[i].rows - n);
        k->collapse(k, f->z + (size_t)out * d, f->h + first * (size_t)c->hc_mult * d,
                    pre.a + first * (size_t)pre.stride, pre.stride, n, c->hc_mult, c->hidden);
        out += n;
    }
    m->wanted = out;
    if (!out)
        return;
    k->rmsnorm(k, f->z, f->z, m->weights.norm, out, c->hidden, c->norm_eps);
    k->lin(k, f->logits, v, PL_OUT_F32, f->z, d, &m->weights.head, out);
    k->download(k, f->logits_host, f->logits, (size_t)out * v * sizeof(float));
}

pl_status pl_model_forward(pl_model *m, const pl_run *run, int runs, const atomic_bool *cancel, const pl_tracer *tracer,
                           pl_error *err)
{
    PL_TRY(check_launch(m, run, runs, err));
    pl__pass pass;
    begin(m, run, runs, &pass);
    pass.cancel = cancel;
    int rows = pass.launch.rows;
    pl__engram_ids(m, &pass);
    pl__pre pre = pl__embed(m, rows);
    for (int layer = 0; layer < m->config->layers; layer++) {
        if (!pl__layer(m, layer, &pass, &pre, true))
            return pl_fail(err, PL_ECANCELED, "forward: cancelled in layer %d", layer);
        if (tracer)
            PL_TRY(trace_layer(m, tracer, layer, pre, rows, err));
    }
    if (m->config->stages)
        m->kernels.ring_put(&m->kernels, &m->state.taps, m->buffers.taps, &pass.launch);
    finish(m, run, runs, pre);
    for (int i = 0; i < runs; i++)
        m->state.slot[run[i].slot].len = run[i].pos + run[i].rows;
    return PL_OK;
}
