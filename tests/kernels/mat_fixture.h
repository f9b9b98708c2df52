/* Random matrices, rows and tables of kernels for the tests of matrix products. */
#ifndef PL_TESTS_KERNELS_MAT_FIXTURE_H
#define PL_TESTS_KERNELS_MAT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t rng_state;

static inline uint32_t rng(void)
{
    rng_state += 0x9e3779b97f4a7c15u;
    uint64_t z = rng_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static inline int rng_to(int n) /* 0 .. n - 1 */
{
    return (int)(rng() % (uint32_t)n);
}

static inline float rng_gauss(void)
{
    float s = 0;
    for (int i = 0; i < 12; i++)
        s += (float)rng() * 0x1p-32f;
    return s - 6;
}

/* PACELINE_TEST_SEED or the time; printed, so that a failure can be run again. */
static inline void rng_start(const char *what)
{
    const char *text = getenv("PACELINE_TEST_SEED");
    rng_state = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    printf("%s: PACELINE_TEST_SEED=%llu\n", what, (unsigned long long)rng_state);
}

/* A table of kernels for one instruction set. "avx512-plain" is AVX-512 without its VNNI extension. False: not here. */
typedef struct kit {
    pl_kernels k;
    pl_pool *pool;
} kit;

static const char *const kit_isas[] = {"scalar", "avx2", "avx512-plain", "avx512", "neon"};
enum { KIT_ISAS = 5 };

static inline bool kit_open(kit *t, const char *isa, int threads, const pl_kernel_limits *limits)
{
    pl_error err;
    bool plain = strcmp(isa, "avx512-plain") == 0;
    pl__isa picked;
    if (pl__isa_pick(plain ? "avx512" : isa, &picked, &err) != PL_OK)
        return false;
    assert_int_equal(pl_pool_open(&t->pool, threads, &err), PL_OK);
    assert_int_equal(pl_cpu_kernels(&t->k, limits, t->pool, plain ? "avx512" : isa, &err), PL_OK);
    if (plain)
        pl__cpu_of(&t->k)->extra = 0;
    return true;
}

static inline void kit_close(kit *t)
{
    t->k.close(&t->k);
    pl_pool_close(t->pool);
}

/* A buffer that ends where it ends: an address sanitizer sees a read beyond. */
static inline void *exact(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    assert_non_null(p);
    return p;
}

/* Random weights; scale bytes from lo to hi. Free with mat_free. */
static inline pl_mat mat_make(pl_format format, int out, int in, int lo, int hi, bool wide)
{
    size_t n = (size_t)out * (size_t)in, blocks = (size_t)((in + 31) / 32), bytes = n;
    if (format != PL_FMT_FP8)
        bytes = format == PL_FMT_FP4 ? n / 2 : format == PL_FMT_BF16 ? 2 * n : 4 * n;
    unsigned char *data = exact(bytes), *scale = NULL;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)rng();
    if (format == PL_FMT_FP8) {
        for (size_t i = 0; i < n; i++)
            if ((data[i] & 127) == 127)
                data[i] ^= 1;
    } else if (format == PL_FMT_BF16) {
        for (size_t i = 0; i < n; i++)
            ((pl_bf16 *)(void *)data)[i] = pl_bf16_from_f32(rng_gauss() * 0.05f);
    } else if (format == PL_FMT_F32) {
        for (size_t i = 0; i < n; i++)
            ((float *)(void *)data)[i] = rng_gauss() * 0.05f;
    }
    if (format == PL_FMT_FP8 || format == PL_FMT_FP4) {
        size_t scales = format == PL_FMT_FP4 ? (size_t)out * blocks : (size_t)((out + 31) / 32) * blocks;
        scale = exact(scales);
        for (size_t i = 0; i < scales; i++)
            scale[i] = (unsigned char)(lo + rng_to(hi - lo + 1));
    }
    return (pl_mat){.format = format, .out = out, .in = in, .data = data, .scale = scale, .wide = wide};
}

static inline void mat_free(pl_mat *w)
{
    free((void *)(uintptr_t)w->data);
    free((void *)(uintptr_t)w->scale);
}

/* Model spec 3.0, q8: the rounding that FP4 products expect, written out plainly. */
static inline float e4m3_round(float v)
{
    int e;
    float a = fabsf(v);
    if (a == 0)
        return v;
    frexpf(a, &e);
    e = e - 1 < -6 ? -6 : e - 1;
    float step = ldexpf(1, e - 3);
    return copysignf(fminf(rintf(a / step) * step, 448), v);
}

static inline void q8_row(pl_bf16 *x, int n)
{
    for (int g = 0; g < n; g += 32) {
        float top = 1e-4f;
        for (int i = g; i < g + 32 && i < n; i++)
            top = fmaxf(top, fabsf(pl_bf16_to_f32(x[i])));
        int e;
        float t = top * (1 / 448.0f), m = frexpf(t, &e), s = ldexpf(1, m == 0.5f ? e - 1 : e);
        for (int i = g; i < g + 32 && i < n; i++)
            x[i] = pl_bf16_from_f32(e4m3_round(pl_bf16_to_f32(x[i]) / s) * s);
    }
}

/* Rows of x with heavy tails, a few zeros and exact powers of two, of very different sizes. */
static inline pl_bf16 *rows_make(int rows, int n, bool rounded)
{
    pl_bf16 *x = exact((size_t)rows * (size_t)n * sizeof *x);
    for (int r = 0; r < rows; r++) {
        float size = ldexpf(1, rng_to(24) - 12);
        for (int i = 0; i < n; i++) {
            float v = rng_gauss() * expf(rng_gauss()) * size;
            if (rng_to(16) == 0)
                v = rng_to(2) ? 0.0f : ldexpf(size, rng_to(9) - 4);
            x[(size_t)r * (size_t)n + (size_t)i] = pl_bf16_from_f32(v);
        }
        if (rounded)
            q8_row(x + (size_t)r * (size_t)n, n);
    }
    return x;
}

static inline void *vector_file(const char *name, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "tests/vectors/tiny-a/unit/%s", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: not found (tests run from the repository root)", path);
    void *p = exact(bytes + 1);
    assert_int_equal(fread(p, 1, bytes + 1, f), bytes);
    fclose(f);
    return p;
}

#endif
