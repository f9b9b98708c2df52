/* A loop of independent fused multiply-adds. A file that is compiled for an instruction set defines PEAK_FN,
 * PEAK_LANES and PEAK_FMA and so gets its loop; peak.c takes the names only. */
#ifndef PL_KERNELS_CPU_PEAK_BODY_H
#define PL_KERNELS_CPU_PEAK_BODY_H

double pl__peak_fma_avx2(int rounds, float *sink);
double pl__peak_fma_avx512(int rounds, float *sink);
double pl__peak_fma_neon(int rounds, float *sink);

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
