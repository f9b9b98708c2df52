/* Products by the definition of lin.h, one weight at a time: for matrices with a scale byte outside the exact range and
 * for rows that do not pack. Slow, and the same in every instruction set because it is compiled once. */
#include "kernels/cpu/lin.h"

#include <math.h>

/* 2^(byte - 127), also below the normal floats. */
static float scale_value(unsigned char byte)
{
    return byte ? pl_f32_from_bits((uint32_t)byte << 23) : 0x1p-127f;
}

/* The NaN codes 127 and 255, which no release has, count as +-480 in products. */
static float e4m3_value(unsigned char code)
{
    uint32_t exponent = code >> 3 & 15, mantissa = code & 7;
    float magnitude = exponent ? pl_f32_from_bits((exponent + 120) << 23 | mantissa << 20) : (float)mantissa * 0x1p-9f;
    return code & 128 ? -magnitude : magnitude;
}

static float e2m1_value(unsigned code)
{
    static const float value[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code & 8 ? -value[code & 7] : value[code & 7];
}

/* Weight k of output o as a float32. */
static float weight_value(const pl_mat *w, int o, int k)
{
    size_t at = (size_t)o * (size_t)w->in + (size_t)k;
    if (w->format == PL_FMT_FP8) {
        size_t blocks = ((size_t)w->in + 31) / 32;
        return e4m3_value(w->data[at]) * scale_value(w->scale[(size_t)(o / 32) * blocks + (size_t)k / 32]);
    }
    if (w->format == PL_FMT_F32) {
        float f;
        memcpy(&f, w->data + at * 4, 4);
        return f;
    }
    pl_bf16 b;
    memcpy(&b, w->data + at * 2, 2);
    return pl_bf16_to_f32(b);
}

static float tree(float *a)
{
    for (int step = PL__LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            a[i] += a[i + step];
    return pl__one_nan(a[0]);
}

static float plain_d8(const pl_mat *w, int o, const pl_bf16 *x)
{
    float a[PL__LANES] = {0};
    const unsigned char *code = w->data + (size_t)o * (size_t)(w->in / 2);
    const unsigned char *scale = w->scale + (size_t)o * (size_t)(w->in / 32);
    for (int j = 0; j < w->in / 8; j++) {
        double sum = 0;
        for (int i = 0; i < 8; i++) {
            unsigned byte = code[4 * j + i / 2];
            sum += (double)pl_bf16_to_f32(x[8 * j + i]) * (double)e2m1_value(i & 1 ? byte >> 4 : byte & 15);
        }
        a[j % PL__LANES] = fmaf((float)sum, scale_value(scale[j / 4]), a[j % PL__LANES]);
    }
    return tree(a);
}

float pl__plain_dot(const pl_mat *w, int o, const pl_bf16 *x)
{
    if (w->format == PL_FMT_FP4)
        return plain_d8(w, o, x);
    float a[PL__LANES] = {0};
    int padded = (w->in + PL__LANES - 1) & -PL__LANES;
    for (int k = 0; k < padded; k++) {
        float xk = k < w->in ? pl_bf16_to_f32(x[k]) : 0.0f, wk = k < w->in ? weight_value(w, o, k) : 0.0f;
        a[k % PL__LANES] = fmaf(xk, wk, a[k % PL__LANES]);
    }
    return tree(a);
}
