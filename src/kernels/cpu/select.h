/* Choosing the best of many 16-bit keys in linear time, ties to the lower index. */
#ifndef PL_KERNELS_CPU_SELECT_H
#define PL_KERNELS_CPU_SELECT_H

#include "base/bf16.h"

#include <stddef.h>

/* A bfloat16 as an integer of the same order: -0 equals +0, a NaN lies below everything. */
static inline uint16_t pl__ordered(pl_bf16 v)
{
    uint16_t mag = v & 0x7fff;
    uint16_t key = v & 0x8000 ? (uint16_t)(0x8000 - mag) : (uint16_t)(0x8000 + mag);
    return mag > 0x7f80 ? 0 : key;
}

enum { PL__ORDERED_LOWEST = 0x8000 - 0x7f80 /* -infinity */, PL__ORDERED_PIN = 0xffff /* above every value */ };

/* Which of n keys are the `keep` greatest: all above `cut`, and of those equal to it the first `ties`. keep < n. */
typedef struct pl__cut {
    uint16_t cut;
    size_t ties;
} pl__cut;
pl__cut pl__select(const uint16_t *key, size_t n, size_t keep);

#endif
