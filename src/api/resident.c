#include "api/resident.h"

#include "lanes/engine.h"

pl_status pl_resident_plan(pl_resident *r, const pl_config *config, const pl_model_settings *settings,
                           uint64_t tensor_table, const pl_tokenizer *tokenizer, pl_error *err)
{
    *r = (pl_resident){.tensor_table = tensor_table,
                       .tokenizer = tokenizer ? pl_tokenizer_bytes(tokenizer) : 0,
                       .draws = pl_engine_bytes(config->vocab_size),
                       .program = PL_PROGRAM_BYTES + (uint64_t)settings->threads * PL_THREAD_BYTES};
    PL_TRY(pl_model_plan(&r->model, config, settings, err));
    r->total = r->model.resident + r->tensor_table + r->tokenizer + r->draws + r->program;
    return PL_OK;
}
