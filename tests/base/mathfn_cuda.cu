/* Device code of mathfn gives the CPU's bits: every float32 input of every function, and doubles as a draw uses them.
 *
 * Not part of the test suite (it needs nvcc and a GPU). Build and run from the repository root:
 *   for f in rowmath rowmath_avx2 rowmath_avx512; do cc -std=c17 -O2 -ffp-contract=off -march=native -Isrc -Iinclude \
 *       -c src/base/$f.c -o /tmp/$f.o; done
 *   nvcc -O2 -arch=native -Isrc -Iinclude -Xcompiler -fopenmp,-ffp-contract=off tests/base/mathfn_cuda.cu \
 *       /tmp/rowmath*.o -o /tmp/t
 *   /tmp/t */
#include <cstdio>
#include <cstring>
#include <vector>

#include <omp.h>

#include "base/mathfn_cuda.h"

extern "C" {
#include "base/mathfn.h"
#include "base/rowmath.h"
}

static const int CHUNK = 1 << 20;
static const int CHUNKS = 1 << 12; /* together all 2^32 patterns */
static const char *const names[PL_ROW_FUNCTIONS] = {"exp", "sigmoid", "silu", "softplus", "log", "sin", "cos"};

/* Results are compared by a sum of hashes a chunk: in any order, and a single wrong bit shows. */
__host__ __device__ static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

__global__ void sum_floats(int fn, unsigned long long *sum)
{
    uint32_t bits = blockIdx.x * blockDim.x + threadIdx.x;
    float x = __uint_as_float(bits), y = 0;
    switch (fn) {
    case PL_ROW_EXP: y = pl_expf_dev(x); break;
    case PL_ROW_SIGMOID: y = pl_sigmoidf_dev(x); break;
    case PL_ROW_SILU: y = pl_siluf_dev(x); break;
    case PL_ROW_SOFTPLUS: y = pl_softplusf_dev(x); break;
    case PL_ROW_LOG: y = pl_logf_dev(x); break;
    case PL_ROW_SIN: y = pl_sinf_dev(x); break;
    default: y = pl_cosf_dev(x); break;
    }
    atomicAdd(&sum[bits / CHUNK], (unsigned long long)mix((uint64_t)bits << 32 | __float_as_uint(y)));
}

__global__ void sum_doubles(unsigned long long *sum)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t h = mix(i + 1);
    double u = ((double)(h >> 12) + 0.5) * 0x1p-52;
    double g = -pl_log_dev(-pl_log_dev(1.0 - u));
    double e = pl_exp_dev((u - 0.5) * 1500), l = pl_log_dev(__longlong_as_double((long long)(h >> 1)));
    uint64_t all = mix(__double_as_longlong(g)) + 3 * mix(__double_as_longlong(e)) + 5 * mix(__double_as_longlong(l));
    atomicAdd(&sum[i / CHUNK], (unsigned long long)all);
}

static uint64_t cpu_floats(const pl_rowmath *m, int fn, uint64_t chunk)
{
    static thread_local std::vector<float> x(CHUNK), y(CHUNK);
    uint64_t sum = 0;
    for (int i = 0; i < CHUNK; i++)
        x[i] = pl_f32_from_bits((uint32_t)(chunk * CHUNK + i));
    m->map((pl_rowfn)fn, y.data(), x.data(), CHUNK);
    for (int i = 0; i < CHUNK; i++)
        sum += mix((chunk * CHUNK + i) << 32 | pl_f32_bits(y[i]));
    return sum;
}

static uint64_t cpu_doubles(uint64_t chunk)
{
    uint64_t sum = 0;
    for (uint64_t i = chunk * CHUNK; i < (chunk + 1) * CHUNK; i++) {
        uint64_t h = mix(i + 1);
        double u = ((double)(h >> 12) + 0.5) * 0x1p-52;
        double g = -pl_log(-pl_log(1.0 - u));
        double e = pl_exp((u - 0.5) * 1500), l = pl_log(pl_f64_from_bits(h >> 1));
        sum += mix(pl_f64_bits(g)) + 3 * mix(pl_f64_bits(e)) + 5 * mix(pl_f64_bits(l));
    }
    return sum;
}

int main()
{
    const char *isas[] = {"avx512", "avx2", "scalar"};
    unsigned long long *device;
    std::vector<unsigned long long> got(CHUNKS);
    int wrong = 0;
    if (cudaMalloc(&device, CHUNKS * sizeof *device) != cudaSuccess)
        return 2;
    for (int fn = 0; fn <= PL_ROW_FUNCTIONS; fn++) {
        int chunks = fn < PL_ROW_FUNCTIONS ? CHUNKS : 256;
        cudaMemset(device, 0, CHUNKS * sizeof *device);
        if (fn < PL_ROW_FUNCTIONS)
            sum_floats<<<1u << 24, 256>>>(fn, device);
        else
            sum_doubles<<<256u * CHUNK / 256, 256>>>(device);
        cudaMemcpy(got.data(), device, CHUNKS * sizeof *device, cudaMemcpyDeviceToHost);
        if (cudaGetLastError() != cudaSuccess)
            return 2;
        for (int k = 0; k < (fn < PL_ROW_FUNCTIONS ? 3 : 1); k++) {
            const pl_rowmath *m = pl_rowmath_for(isas[k]);
            int step = strcmp(isas[k], "scalar") == 0 ? 7 : 1, bad = 0;
            if (!m)
                continue;
            double start = omp_get_wtime();
#pragma omp parallel for schedule(dynamic) reduction(+ : bad)
            for (int c = 0; c < chunks; c += fn < PL_ROW_FUNCTIONS ? step : 1)
                bad += got[c] != (fn < PL_ROW_FUNCTIONS ? cpu_floats(m, fn, c) : cpu_doubles(c));
            printf("%s, device against %s: %d of %d chunks of 2^20 differ (%.1f s)\n",
                   fn < PL_ROW_FUNCTIONS ? names[fn] : "double log, exp, noise",
                   fn < PL_ROW_FUNCTIONS ? isas[k] : "scalar", bad, (chunks + step - 1) / step,
                   omp_get_wtime() - start);
            fflush(stdout);
            wrong += bad;
        }
    }
    return wrong != 0;
}
