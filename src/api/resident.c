#include "api/resident.h"

#include "lanes/engine.h"
#include "lanes/model_target.h"

#include <unistd.h>

enum { SLOTS_MOST = 8 };

/* What the engine reserves beside the model. */
static uint64_t lanes_bytes(const pl_config *config, const pl_model_settings *settings)
{
    pl_target target;
    pl_draft_table drafter;
    pl_model_target_shape(&target, &drafter, config, settings);
    return pl_engine_bytes(&target, &drafter);
}

pl_status pl_resident_plan(pl_resident *r, const pl_config *config, const pl_model_settings *settings,
                           uint64_t tensor_table, const pl_tokenizer *tokenizer, pl_error *err)
{
    *r = (pl_resident){.tensor_table = tensor_table,
                       .tokenizer = tokenizer ? pl_tokenizer_bytes(tokenizer) : 0,
                       .lanes = lanes_bytes(config, settings),
                       .program = PL_PROGRAM_BYTES + (uint64_t)settings->threads * PL_THREAD_BYTES};
    PL_TRY(pl_model_plan(&r->model, config, settings, err));
    r->total = r->model.resident + r->tensor_table + r->tokenizer + r->lanes + r->program;
    return PL_OK;
}

pl_status pl_resident_parallel(int *slots, const pl_config *config, const pl_model_settings *settings, pl_error *err)
{
    pl_model_settings one = *settings;
    pl_plan plan;
    one.slots = 1;
    PL_TRY(pl_model_settings_resolve(&one, config, err));
    PL_TRY(pl_model_plan(&plan, config, &one, err));
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t quarter = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 : 0;
    uint64_t fit = plan.state_slot ? quarter / plan.state_slot : SLOTS_MOST;
    *slots = fit < 1 ? 1 : fit < SLOTS_MOST ? (int)fit : SLOTS_MOST;
    return PL_OK;
}
