#include "model/internal.h"

#include "base/log.h"

#include <stdlib.h>

const pl_config *pl_model_config(const pl_model *m)
{
    return m->config;
}

const pl_model_settings *pl_model_settings_of(const pl_model *m)
{
    return &m->settings;
}

const char *pl_model_backend(const pl_model *m)
{
    return m->kernels.name;
}

int pl_model_threads(const pl_model *m)
{
    return pl_pool_threads(m->pool);
}

int pl_model_len(const pl_model *m, int slot)
{
    return m->state.slot[slot].len;
}

const int32_t *pl_model_tokens(const pl_model *m, int slot)
{
    return m->state.token + (size_t)slot * (size_t)m->settings.context;
}

void pl_model_reset(pl_model *m, int slot)
{
    m->state.slot[slot] = (pl__slot){0};
}

const float *pl_model_logits(const pl_model *m, int i)
{
    return i >= 0 && i < m->wanted ? m->buffers.logits_host + (size_t)i * (size_t)m->config->vocab_size : NULL;
}

/* Bind the kernels, count the host arrays, then take everything for real. */
static pl_status build(pl_model *m, const uint32_t *token_map, pl_error *err)
{
    pl_kernel_limits limits = pl__model_limits(m->config, &m->settings);
    PL_TRY(pl_pool_open(&m->pool, m->settings.threads, err));
    PL_TRY(pl_cpu_kernels(&m->kernels, &limits, m->pool, m->settings.isa, err));

    const pl_checkpoint *checkpoint = m->checkpoint;
    pl_model counted = *m;
    counted.checkpoint = NULL;
    pl__taker count = {0};
    PL_TRY(pl__model_take(&counted, &count, &count, &count, NULL, err));
    PL_TRY(pl_arena_open(&m->host, count.host_bytes, "host arrays of the model", err));

    pl__taker take = {.kernels = &m->kernels, .host = &m->host};
    m->checkpoint = checkpoint;
    return pl__model_take(m, &take, &take, &take, token_map, err);
}

pl_status pl_model_open(pl_model **out, const pl_checkpoint *checkpoint, const uint32_t *token_map,
                        const pl_model_settings *settings, pl_error *err)
{
    *out = NULL;
    pl_model *m = calloc(1, sizeof *m);
    if (!m)
        return pl_fail(err, PL_ENOMEM, "model: no memory");
    m->checkpoint = checkpoint;
    m->config = pl_checkpoint_config(checkpoint);
    m->settings = *settings;
    pl_status status = pl_model_settings_resolve(&m->settings, m->config, err);
    if (status == PL_OK)
        status = build(m, token_map, err);
    if (status != PL_OK) {
        pl_model_close(m);
        return status;
    }
    *out = m;
    return PL_OK;
}

void pl_model_close(pl_model *m)
{
    if (!m)
        return;
    if (m->kernels.close)
        m->kernels.close(&m->kernels);
    pl_pool_close(m->pool);
    pl_arena_close(&m->host);
    free(m);
}
