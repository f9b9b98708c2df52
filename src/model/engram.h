/* Engram: which table rows a position looks up. Model spec section 3.6. Integers only, from the tokens alone. */
#ifndef PL_MODEL_ENGRAM_H
#define PL_MODEL_ENGRAM_H

#include "checkpoint/config.h"
#include "model/take.h"

/* The constants of one engram layer. */
typedef struct pl__engram {
    int64_t multiplier[PL_MAX_NGRAM]; /* of look-back 0 .. ngram-1 */
    int64_t *prime;                   /* [cols] (n = 2: heads, n = 3: heads, ...) */
    int64_t *offset;                  /* [cols] exclusive prefix sum of prime */
} pl__engram;

typedef struct pl__engrams {
    int cols;           /* table rows a position: (ngram - 1) * heads */
    uint32_t *class_of; /* [vocab_size] token map */
    pl__engram engram[PL_MAX_ENGRAMS];
} pl__engrams;

/* Derive primes and multipliers; copy token_map[vocab_size]. PL_EINVAL when a class is out of range or the map is
 * missing, PL_EFORMAT when the primes do not add up to the config's row counts. token_map may be NULL while
 * counting. */
pl_status pl__engrams_load(pl__engrams *e, pl__taker *t, const pl_config *config, const uint32_t *token_map,
                           pl_error *err);

/* id[cols]: rows looked up by the token at `pos` of tokens[0..pos] in engram layer `which`. */
void pl__engram_rows(const pl__engrams *e, const pl_config *config, int which, const int32_t *tokens, int pos,
                     int64_t *id);

/* The four (or more) odd multipliers of a layer: numpy's default_rng(10007 * layer).integers(0, bound, count) * 2 + 1
 * with bound = floor(floor((2^63 - 1) / classes) / 2). */
void pl__engram_multipliers(int layer, int classes, int count, int64_t *out);

#endif
