/* Loops at a machine's limits: reads, and independent fused multiply-adds. A file that is compiled for an instruction
 * set defines PEAK_LANES, PEAK_READ_FN, PEAK_FN and PEAK_FMA and so gets its loops; peak.c takes the names, and the
 * reads of any machine. */
#ifndef PL_KERNELS_CPU_PEAK_BODY_H
#define PL_KERNELS_CPU_PEAK_BODY_H

#include <stddef.h>
#include <stdint.h>

double pl__peak_fma_avx2(int rounds, float *sink);
double pl__peak_fma_avx512(int rounds, float *sink);
double pl__peak_fma_neon(int rounds, float *sink);
uint64_t pl__peak_read_any(const unsigned char *p, size_t bytes, int streams, size_t ahead);
uint64_t pl__peak_read_avx2(const unsigned char *p, size_t bytes, int streams, size_t ahead);
uint64_t pl__peak_read_avx512(const unsigned char *p, size_t bytes, int streams, size_t ahead);
uint64_t pl__peak_read_neon(const unsigned char *p, size_t bytes, int streams, size_t ahead);

#ifdef PEAK_READ_FN
typedef uint64_t peak_words __attribute__((vector_size(PEAK_LANES * 4)));

/* The bytes in `streams` equal parts side by side, 256 at a time, each asked for `ahead` bytes before (0: not asked
 * for). bytes / streams is a multiple of 256. */
uint64_t PEAK_READ_FN(const unsigned char *p, size_t bytes, int streams, size_t ahead)
{
    enum { STEP = 256, LOADS = STEP / (PEAK_LANES * 4) };
    peak_words sum[4] = {{0}};
    size_t part = bytes / (size_t)streams;
    for (size_t i = 0; i < part; i += STEP)
        for (int s = 0; s < streams; s++) {
            const unsigned char *q = p + (size_t)s * part + i;
            for (int line = 0; ahead && line < STEP; line += 64)
                __builtin_prefetch((const void *)((uintptr_t)q + ahead + (size_t)line), 0, 2);
            const peak_words *v = (const peak_words *)(const void *)q;
#pragma GCC unroll 16
            for (int j = 0; j < LOADS; j++)
                sum[j % 4] ^= v[j];
        }
    sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
    uint64_t all = 0;
    for (size_t j = 0; j < sizeof sum[0] / sizeof all; j++)
        all ^= sum[0][j];
    return all;
}
#endif

#ifdef PEAK_FN
typedef float peak_vec __attribute__((vector_size(PEAK_LANES * 4)));

/* Twelve chains: two multipliers of latency five keep ten in flight. PEAK_FMA is assembly, since no compiler may
 * contract a * b + c here, and the chains are names, not an array, so that they stay in registers. */
double PEAK_FN(int rounds, float *sink)
{
    peak_vec half = {0}, one = {0};
    int steps = (1 << 19) / (PEAK_LANES * 12);
    half += 0.5f;
    one += 1.0f;
    peak_vec a = one, b = one, c = one, d = one, e = one, f = one, g = one, h = one, i = one, j = one, k = one, l = one;
    for (int n = 0; n < rounds * steps; n++) {
        PEAK_FMA(a, half, one);
        PEAK_FMA(b, half, one);
        PEAK_FMA(c, half, one);
        PEAK_FMA(d, half, one);
        PEAK_FMA(e, half, one);
        PEAK_FMA(f, half, one);
        PEAK_FMA(g, half, one);
        PEAK_FMA(h, half, one);
        PEAK_FMA(i, half, one);
        PEAK_FMA(j, half, one);
        PEAK_FMA(k, half, one);
        PEAK_FMA(l, half, one);
    }
    a = a + b + c + d + e + f + g + h + i + j + k + l;
    for (int n = 0; n < PEAK_LANES; n++)
        *sink += a[n];
    return (double)rounds * steps * PEAK_LANES * 12 * 2;
}
#endif

#endif
