/* How a reply's tokens are drawn: the settings of a request, where each of them may come from, and the seed. */
#ifndef PL_MODEL_SAMPLING_H
#define PL_MODEL_SAMPLING_H

#include "checkpoint/generation.h"

enum { PL_MAX_BIASES = 1024 };

/* Added to one token's logit, after the penalties. -inf bars the token. */
typedef struct pl_bias {
    int32_t token;
    float add;
} pl_bias;

/* Settings with nothing left open. */
typedef struct pl_sampling {
    float temperature; /* 0: always the largest logit, the lower id on ties; the filters then change nothing */
    int top_k;         /* keep the k largest; 0: all */
    float top_p;       /* keep the fewest largest whose probabilities reach this sum, in (0, 1]; 1: all */
    float min_p;       /* keep those with at least this share of the largest's probability, in [0, 1]; 0: all */
    float
        repetition_penalty;  /* > 0; a token of the prompt or reply: logit > 0 divided by it, else multiplied; 1: off */
    float frequency_penalty; /* subtracted for each time a token is in the reply */
    float presence_penalty;  /* subtracted once for a token in the reply */
    uint64_t seed;
    int biases;
    pl_bias *bias; /* [biases] no token twice; owned by whoever made the struct (pl_sampling_copy, pl_sampling_free) */
} pl_sampling;

/* One source of settings: which fields it names. */
enum {
    PL_HAS_TEMPERATURE = 1 << 0,
    PL_HAS_TOP_K = 1 << 1,
    PL_HAS_TOP_P = 1 << 2,
    PL_HAS_MIN_P = 1 << 3,
    PL_HAS_REPETITION = 1 << 4,
    PL_HAS_FREQUENCY = 1 << 5,
    PL_HAS_PRESENCE = 1 << 6,
    PL_HAS_SEED = 1 << 7
};

typedef struct pl_sampling_part {
    unsigned has;
    pl_sampling value; /* only the named fields count; the bias list always does */
} pl_sampling_part;

/* Merge sources, the strongest first: the request, the flags, generation_config.json. NULL entries are skipped. What
 * none of them names is temperature 1 and everything else off. The bias list is that of the first source that has one;
 * it is not copied. False when no source names a seed (out->seed is then 0: derive one). */
bool pl_sampling_resolve(pl_sampling *out, const pl_sampling_part *const *sources, int count);

/* What generation_config.json names, as a source. */
pl_sampling_part pl_sampling_of_generation(const pl_generation *generation);

/* Ranges: PL_EINVAL with the API's field name as parameter ("top_p", "logit_bias", ...). vocab: ids a bias may name. */
pl_status pl_sampling_check(const pl_sampling *sampling, int vocab, pl_error *err);

/* A copy that owns its bias list. PL_ENOMEM. */
pl_status pl_sampling_copy(pl_sampling *to, const pl_sampling *from, pl_error *err);
void pl_sampling_free(pl_sampling *sampling);

/* The seed of a request that gives none: a hash of the prompt's ids and a salt (NULL or "" for none), so that the same
 * request has the same reply. The salt "random" takes a fresh random seed instead. Below 2^53: a JSON reader keeps it.
 * PL_EIO when the system gives no random bytes. Choice i of n draws with seed + i. */
pl_status pl_seed_derive(uint64_t *seed, const int32_t *ids, size_t count, const char *salt, pl_error *err);

#endif
