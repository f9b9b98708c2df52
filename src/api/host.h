/* One opened checkpoint, ready to make replies: tokenizer, model, engine and defaults. */
#ifndef PL_API_HOST_H
#define PL_API_HOST_H

#include "api/defaults.h"
#include "checkpoint/checkpoint.h"
#include "lanes/engine.h"
#include "text/tokenizer.h"

typedef struct pl_host pl_host;

typedef struct pl_host_settings {
    const char *dir;
    int threads;               /* 0: all that this process may use */
    int context;               /* tokens of prompt and reply; 0: the model's own, 32768 at most */
    int slots;                 /* replies made at once; 0: pl_resident_parallel's choice */
    pl_engine_settings engine; /* core.drafts is set from drafts below; accept_log is copied by its opening */
    const char *cache_dir;     /* see pl_token_map_open; NULL: where the environment says */
    const char *seed_salt;     /* see pl_seed_derive; NULL: none */
    bool drafts;               /* requests may draft */
    pl_defaults flags;         /* stronger than the checkpoint's own defaults; its bias list must be empty */
    pl_progress_fn *progress;  /* may be NULL; called on the opening thread */
    void *progress_arg;
} pl_host_settings;

/* Open everything under settings->dir and start the engine thread. Texts are copied. The errors of each part, passed
 * on. */
pl_status pl_host_open(pl_host **host, const pl_host_settings *settings, pl_error *err);
/* Cancels what still runs and ends the engine thread. Replies may be released before or after. NULL is allowed. */
void pl_host_close(pl_host *host);

/* Fixed from pl_host_open to pl_host_close: any thread. */
const pl_tokenizer *pl_host_tokenizer(const pl_host *host);
const pl_config *pl_host_config(const pl_host *host);
int pl_host_context(const pl_host *host);
int32_t pl_host_eos(const pl_host *host); /* -1 without one, and so is bos */
/* A token that ends replies: config.json's eos_token_id or any of generation_config.json's. */
bool pl_host_ends(const pl_host *host, int32_t token);
bool pl_host_many_eos(const pl_host *host); /* there are others than pl_host_eos */
int32_t pl_host_bos(const pl_host *host);
bool pl_host_thinks(const pl_host *host); /* by default */
int pl_host_effort(const pl_host *host);  /* by default */
int64_t pl_host_max_tokens(const pl_host *host, bool thinking);
int pl_host_slots(const pl_host *host); /* replies made at once */
const char *pl_host_backend(const pl_host *host);
int pl_host_threads(const pl_host *host);
double pl_host_load_seconds(const pl_host *host);
uint64_t pl_host_resident(const pl_host *host); /* bytes beside the mapped weights: resident.h */
/* Its own rules on threads hold. */
pl_engine *pl_host_engine(pl_host *host);

/* The settings of one request over the flags, over the file; checked; the seed derived from the prompt when the request
 * names none. The result owns its bias list. PL_EINVAL with the field. */
pl_status pl_host_sampling(const pl_host *host, const pl_sampling_part *request, const int32_t *prompt,
                           size_t prompt_len, pl_sampling *out, pl_error *err);
/* Whether a request that asks for drafts gets them. */
bool pl_host_drafts(const pl_host *host);

#endif
