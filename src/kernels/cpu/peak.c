/* The machine's ceilings: streaming reads and fused multiply-adds. */
#include "kernels/cpu/peak_body.h"

#include "kernels/peak.h"

#include <math.h>
#include <string.h>

/* Plain enough for any compiler to make wide loads of it; four sums hide the latency of the additions. */
uint64_t pl_peak_read(const void *data, size_t bytes)
{
    const uint64_t *p = data;
    uint64_t a[8] = {0};
    for (size_t i = 0; i + 8 <= bytes / 8; i += 8)
        for (int j = 0; j < 8; j++)
            a[j] ^= p[i + (size_t)j];
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

static double fma_scalar(int rounds, float *sink)
{
    float a[8] = {0};
    for (int i = 0; i < rounds * 65536; i++)
        for (int j = 0; j < 8; j++)
            a[j] = fmaf(a[j], 0.5f, 1.0f);
    for (int j = 0; j < 8; j++)
        *sink += a[j];
    return (double)rounds * 65536 * 8 * 2;
}

double pl_peak_fma(const char *isa, int rounds, float *sink)
{
    *sink = 0;
#if defined(__x86_64__)
    if (strcmp(isa, "avx2") == 0)
        return pl__peak_fma_avx2(rounds, sink);
    if (strcmp(isa, "avx512") == 0)
        return pl__peak_fma_avx512(rounds, sink);
#elif defined(__aarch64__)
    if (strcmp(isa, "neon") == 0)
        return pl__peak_fma_neon(rounds, sink);
#endif
    (void)isa;
    return fma_scalar(rounds, sink);
}
