/* The machine's ceilings: streaming reads and fused multiply-adds. */
#define PEAK_READ_FN pl__peak_read_any
#define PEAK_LANES   4
#include "kernels/cpu/peak_body.h"

#include "kernels/peak.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int streams;
    size_t ahead;
} ways[PL_PEAK_READS] = {{"1 stream", 1, 0},
                         {"1 stream, 4 KB ahead", 1, 4096},
                         {"1 stream, 16 KB ahead", 1, 16384},
                         {"2 streams, 8 KB ahead", 2, 8192},
                         {"4 streams", 4, 0},
                         {"4 streams, 8 KB ahead", 4, 8192}};

const char *pl_peak_read_name(int way)
{
    return ways[way].name;
}

uint64_t pl_peak_read(const char *isa, int way, const void *data, size_t bytes)
{
    int streams = ways[way].streams;
    size_t ahead = ways[way].ahead;
#if defined(__x86_64__)
    if (strcmp(isa, "avx2") == 0)
        return pl__peak_read_avx2(data, bytes, streams, ahead);
    if (strcmp(isa, "avx512") == 0)
        return pl__peak_read_avx512(data, bytes, streams, ahead);
#elif defined(__aarch64__)
    if (strcmp(isa, "neon") == 0)
        return pl__peak_read_neon(data, bytes, streams, ahead);
#endif
    (void)isa;
    return pl__peak_read_any(data, bytes, streams, ahead);
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
