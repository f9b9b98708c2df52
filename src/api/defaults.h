/* What holds when a request does not say: the request wins over the flags, the flags over the checkpoint's
 * generation_config.json, that over what is built in. This is one such source, flags or file. */
#ifndef PL_API_DEFAULTS_H
#define PL_API_DEFAULTS_H

#include "model/sampling.h"

typedef struct pl_defaults {
    pl_sampling_part sampling;
    int64_t max_tokens; /* 0: not said */
    int thinking;       /* 0, 1, or -1: not said */
    int effort;         /* 1..100, or 0: not said */
} pl_defaults;

enum { PL_MAX_TOKENS_PLAIN = 8192, PL_MAX_TOKENS_THINKING = 65536 };

/* A source that says nothing. */
void pl_defaults_unset(pl_defaults *defaults);

/* What DIR/generation_config.json says, as pl_generation_load reads it; nothing without the file. *generation: the file
 * itself, for its end tokens. The errors of pl_generation_load: a wrong default would change every reply. */
pl_status pl_defaults_from_dir(pl_defaults *defaults, const char *dir, pl_generation *generation, pl_error *err);

#endif
