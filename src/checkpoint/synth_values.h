/* Private to this folder: the random values of one tensor, any piece of it. */
#ifndef PL_CHECKPOINT_SYNTH_VALUES_H
#define PL_CHECKPOINT_SYNTH_VALUES_H

#include "checkpoint/inventory.h"

/* How the bytes of one tensor are drawn. Every 8 output bytes come from one hash of (seed, name, number of the
 * word). */
typedef struct pl__values {
    uint64_t key;
    pl_dtype dtype;
    unsigned char byte[256]; /* one-byte types: the byte for each random byte */
    uint16_t bf16[511];      /* BF16: the value for each difference of two random bytes */
    float mean, spread;      /* F32: mean + spread x a triangular number in [-1, 1] */
    int streams;             /* F32 hyper-connection offsets: S, so that the diagonal of the mix is lifted; else 0 */
} pl__values;

void pl__values_init(pl__values *values, const pl_config *config, const pl_item *item, uint64_t seed);

/* The n bytes from byte offset `at` (a multiple of 8) of the tensor on. */
void pl__values_fill(const pl__values *values, uint64_t at, unsigned char *out, size_t n);

#endif
