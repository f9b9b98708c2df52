/* bfloat16: the upper half of a float32. */
#ifndef PL_BASE_BF16_H
#define PL_BASE_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t pl_bf16;

static inline float pl_f32_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t pl_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float pl_bf16_to_f32(pl_bf16 b)
{
    return pl_f32_from_bits((uint32_t)b << 16);
}

/* Round to nearest even. A NaN stays a NaN (quiet, sign kept). */
static inline pl_bf16 pl_bf16_from_f32(float f)
{
    uint32_t u = pl_f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (pl_bf16)(u >> 16 | 0x40);
    return (pl_bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
