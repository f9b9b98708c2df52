/* Opening: checkpoint, tokenizer, token map, model, engine, in this order; closing backwards. */
#include "api/host.h"

#include "api/resident.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "lanes/model_target.h"
#include "text/chat.h"
#include "text/token_map.h"

#include <stdlib.h>
#include <string.h>

struct pl_host {
    pl_checkpoint *checkpoint;
    pl_tokenizer *tokenizer;
    pl_model *model;
    pl_model_target *target;
    pl_engine *engine;
    pl_defaults flags, file;
    int32_t eos, bos;
    int32_t more_eos[PL_GEN_EOS_MAX]; /* what else ends a reply */
    int more_eos_count;
    bool drafts;
    char *seed_salt;
    double load_seconds;
    uint64_t resident;
};

static pl_status load_tokenizer(pl_host *h, const char *dir, pl_error *err)
{
    char *path = pl_path_join(dir, "tokenizer.json");
    if (!path)
        return pl_fail(err, PL_ENOMEM, "no memory for a path");
    pl_status status = pl_tokenizer_load(&h->tokenizer, path, err);
    free(path);
    PL_TRY(status);
    const pl_config *config = pl_checkpoint_config(h->checkpoint);
    if (pl_tokenizer_size(h->tokenizer) > config->vocab_size)
        return pl_fail_param(err, PL_EFORMAT, "tokenizer.json", "%s: the tokenizer has %d ids, the model %d", dir,
                             (int)pl_tokenizer_size(h->tokenizer), config->vocab_size);
    return PL_OK;
}

/* The end tokens of both files: each of them ends a reply. */
static pl_status take_eos(pl_host *h, const pl_generation *g, const char *dir, pl_error *err)
{
    const pl_config *config = pl_checkpoint_config(h->checkpoint);
    h->eos = config->eos;
    for (int i = 0; i < g->eos_count; i++) {
        if (g->eos[i] >= config->vocab_size)
            return pl_fail_param(err, PL_EFORMAT, "eos_token_id",
                                 "%s/generation_config.json: eos_token_id: expected ids below the vocabulary's %d, "
                                 "found %d",
                                 dir, config->vocab_size, (int)g->eos[i]);
        if (h->eos < 0)
            h->eos = g->eos[i];
        else if (h->eos != g->eos[i])
            h->more_eos[h->more_eos_count++] = g->eos[i];
    }
    return PL_OK;
}

static pl_status load_defaults(pl_host *h, const pl_host_settings *settings, pl_error *err)
{
    const pl_config *config = pl_checkpoint_config(h->checkpoint);
    h->flags = settings->flags;
    h->bos = config->bos;
    pl_generation generation;
    PL_TRY(pl_defaults_from_dir(&h->file, settings->dir, &generation, err));
    PL_TRY(take_eos(h, &generation, settings->dir, err));
    if (settings->seed_salt && *settings->seed_salt) {
        h->seed_salt = strdup(settings->seed_salt);
        if (!h->seed_salt)
            return pl_fail(err, PL_ENOMEM, "no memory for the salt");
    }
    /* A flag out of range stops the start, not the first request. */
    pl_sampling probe;
    const pl_sampling_part *sources[] = {&h->flags.sampling, &h->file.sampling};
    pl_sampling_resolve(&probe, sources, 2);
    return pl_sampling_check(&probe, config->vocab_size, err);
}

/* The model copies the token map. */
static pl_status load_model(pl_host *h, const pl_host_settings *settings, pl_error *err)
{
    const pl_config *config = pl_checkpoint_config(h->checkpoint);
    pl_model_settings model = {.threads = settings->threads, .context = settings->context, .slots = settings->slots};
    if (!model.slots)
        PL_TRY(pl_resident_parallel(&model.slots, config, &model, err));
    pl_token_map map = {0};
    if (config->engrams)
        PL_TRY(pl_token_map_open(&map, h->tokenizer, config->vocab_size, config->engram_classes, settings->cache_dir,
                                 err));
    pl_status status = pl_model_open(&h->model, h->checkpoint, map.map, &model, err);
    pl_token_map_close(&map);
    return status;
}

static pl_status count_resident(pl_host *h, pl_error *err)
{
    pl_checkpoint_info info;
    pl_resident resident;
    pl_checkpoint_info_get(h->checkpoint, &info);
    PL_TRY(pl_resident_plan(&resident, pl_checkpoint_config(h->checkpoint), pl_model_settings_of(h->model), info.heap,
                            h->tokenizer, err));
    h->resident = resident.total;
    return PL_OK;
}

static pl_status start(pl_host *h, const pl_host_settings *settings, pl_error *err)
{
    int64_t began = pl_now_ns();
    PL_TRY(pl_checkpoint_open(&h->checkpoint, settings->dir, settings->threads, settings->progress,
                              settings->progress_arg, err));
    PL_TRY(load_tokenizer(h, settings->dir, err));
    PL_TRY(load_defaults(h, settings, err));
    PL_TRY(load_model(h, settings, err));
    PL_TRY(pl_model_target_open(&h->target, h->model, err));
    pl_engine_settings engine = settings->engine;
    engine.core.drafts = settings->drafts;
    PL_TRY(
        pl_engine_open(&h->engine, pl_model_target_table(h->target), pl_model_target_drafter(h->target), &engine, err));
    pl_heap_trim(); /* the trees of the JSON files are gone: many times what was made of them */
    PL_TRY(count_resident(h, err));
    h->load_seconds = (double)(pl_now_ns() - began) * 1e-9;
    return PL_OK;
}

pl_status pl_host_open(pl_host **out, const pl_host_settings *settings, pl_error *err)
{
    *out = NULL;
    pl_host *h = calloc(1, sizeof *h);
    if (!h)
        return pl_fail(err, PL_ENOMEM, "no memory for a model");
    h->drafts = settings->drafts;
    pl_status status = start(h, settings, err);
    if (status != PL_OK) {
        pl_host_close(h);
        return status;
    }
    *out = h;
    return PL_OK;
}

void pl_host_close(pl_host *h)
{
    if (!h)
        return;
    pl_engine_close(h->engine);
    pl_model_target_close(h->target);
    pl_model_close(h->model);
    pl_tokenizer_close(h->tokenizer);
    pl_checkpoint_close(h->checkpoint);
    free(h->seed_salt);
    free(h);
}

const pl_tokenizer *pl_host_tokenizer(const pl_host *h)
{
    return h->tokenizer;
}

const pl_config *pl_host_config(const pl_host *h)
{
    return pl_checkpoint_config(h->checkpoint);
}

int pl_host_context(const pl_host *h)
{
    return pl_model_target_table(h->target)->context;
}

int32_t pl_host_eos(const pl_host *h)
{
    return h->eos;
}

bool pl_host_ends(const pl_host *h, int32_t token)
{
    bool ends = token >= 0 && token == h->eos;
    for (int i = 0; i < h->more_eos_count; i++)
        ends = ends || token == h->more_eos[i];
    return ends;
}

bool pl_host_many_eos(const pl_host *h)
{
    return h->more_eos_count > 0;
}

int32_t pl_host_bos(const pl_host *h)
{
    return h->bos;
}

bool pl_host_thinks(const pl_host *h)
{
    if (h->flags.thinking >= 0)
        return h->flags.thinking;
    return h->file.thinking != 0;
}

int pl_host_effort(const pl_host *h)
{
    return h->flags.effort ? h->flags.effort : PL_CHAT_EFFORT_HIGH;
}

int64_t pl_host_max_tokens(const pl_host *h, bool thinking)
{
    if (h->flags.max_tokens)
        return h->flags.max_tokens;
    return thinking ? PL_MAX_TOKENS_THINKING : PL_MAX_TOKENS_PLAIN;
}

int pl_host_slots(const pl_host *h)
{
    return pl_model_target_table(h->target)->slots;
}

const char *pl_host_backend(const pl_host *h)
{
    return pl_model_backend(h->model);
}

int pl_host_threads(const pl_host *h)
{
    return pl_model_threads(h->model);
}

double pl_host_load_seconds(const pl_host *h)
{
    return h->load_seconds;
}

uint64_t pl_host_resident(const pl_host *h)
{
    return h->resident;
}

pl_engine *pl_host_engine(pl_host *h)
{
    return h->engine;
}

bool pl_host_drafts(const pl_host *h)
{
    return h->drafts;
}

pl_status pl_host_sampling(const pl_host *h, const pl_sampling_part *request, const int32_t *prompt, size_t prompt_len,
                           pl_sampling *out, pl_error *err)
{
    const pl_sampling_part *sources[] = {request, &h->flags.sampling, &h->file.sampling};
    pl_sampling resolved;
    bool seeded = pl_sampling_resolve(&resolved, sources, 3);
    PL_TRY(pl_sampling_check(&resolved, pl_host_config(h)->vocab_size, err));
    if (!seeded)
        PL_TRY(pl_seed_derive(&resolved.seed, prompt, prompt_len, h->seed_salt, err));
    return pl_sampling_copy(out, &resolved, err);
}
