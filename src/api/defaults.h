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

enum { PL_MAX_TOKENS_PLAIN = 8192, PL_MAX_TOKENS_THINKING = 65536, PL_GENERATION_CONFIG_MAX = 1 << 20 };

/* A source that says nothing. */
void pl_defaults_unset(pl_defaults *defaults);

/* Read DIR/generation_config.json: temperature, top_p, top_k, min_p, repetition_penalty, do_sample (false: temperature
 * 0), thinking. Without the file nothing is said. A value out of its range is PL_EFORMAT naming the field: a wrong
 * default would change every reply. *eos: eos_token_id when that is one integer, else untouched. */
pl_status pl_defaults_from_dir(pl_defaults *defaults, const char *dir, int32_t *eos, pl_error *err);
/* The same from the file's text; where names it in errors. */
pl_status pl_defaults_parse(pl_defaults *defaults, const char *json, size_t len, const char *where, int32_t *eos,
                            pl_error *err);

#endif
