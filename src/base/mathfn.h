/* Our own exp, log, sigmoid, softplus, sin, cos and pow: the same bits on every machine, instruction set and device.
 *
 * A libm's results change with its version and with the CPU it finds (double log with and without its fused path), so
 * the model and the draws use these alone. One body, mathfn_body.h, serves scalar code (this header), AVX2, AVX-512 and
 * NEON (mathfn_avx2.h, mathfn_avx512.h, mathfn_neon.h, included only by files compiled for that instruction set) and
 * CUDA (mathfn_cuda.h). Names carry the lane type: pl_expf, pl_expf_avx2, pl_expf_avx512, pl_expf_neon, pl_expf_dev.
 *
 *   float  pl_expf(x)       within 0.7 ulp             float  pl_sinf(x), pl_cosf(x)  |x| <= 2^32, else NaN; correctly
 *   float  pl_sigmoidf(x)   within 0.7 ulp                                            rounded but for one in 2^27
 *   float  pl_siluf(x)      within 0.75 ulp            float  pl_logf(x), pl_softplusf(x)  likewise
 *                                                      double pl_log(x), pl_exp(x)    within 1 ulp of double
 *
 * softplus is log(1 + e^x) for x <= 20 and x above. 1/sqrt is 1.0f / sqrtf(x), IEEE, and needs no function of ours.
 * NaN in gives one NaN out (0x7fc00000). Denormals are kept in and out. Rounding mode: to nearest, as C starts. */
#ifndef PL_BASE_MATHFN_H
#define PL_BASE_MATHFN_H

#include "base/bf16.h"

#include <math.h>

static inline uint64_t pl_f64_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

static inline double pl_f64_from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

/* clang-format off */
#define PLM(name)       pl_##name
#define PLM_FN          static inline __attribute__((unused))
#define VF              float
#define VI              uint32_t
#define VFM             int
#define VD              double
#define VL              uint64_t
#define VDM             int
#define VF_LANES        1
#define VF_LOAD(p)      (*(p))
#define VF_STORE(p, v)  (*(p) = (v))
#define VFM_ANY(m)      (m)
#define VF_SET(c)       (c)
#define VF_ADD(a, b)    ((a) + (b))
#define VF_SUB(a, b)    ((a) - (b))
#define VF_MUL(a, b)    ((a) * (b))
#define VF_DIV(a, b)    ((a) / (b))
#define VF_FMA(a, b, c) fmaf(a, b, c)
#define VF_GT(a, b)     ((a) > (b))
#define VF_EQ(a, b)     ((a) == (b))
#define VF_SEL(m, a, b) ((m) ? (a) : (b))
#define VF_BITS(a)      pl_f32_bits(a)
#define VF_OF(i)        pl_f32_from_bits(i)
#define VF_ABS(a)       fabsf(a)
#define VF_NEG(a)       (-(a))
#define VI_SET(c)       ((uint32_t)(c))
#define VI_ADD(a, b)    ((a) + (b))
#define VI_SUB(a, b)    ((a) - (b))
#define VI_SHL(a, n)    ((a) << (n))
#define VI_SAR(a, n)    ((uint32_t)((int32_t)(a) >> (n)))
#define VD_SET(c)       (c)
#define VD_ADD(a, b)    ((a) + (b))
#define VD_SUB(a, b)    ((a) - (b))
#define VD_MUL(a, b)    ((a) * (b))
#define VD_DIV(a, b)    ((a) / (b))
#define VD_FMA(a, b, c) fma(a, b, c)
#define VD_GT(a, b)     ((a) > (b))
#define VD_EQ(a, b)     ((a) == (b))
#define VD_SEL(m, a, b) ((m) ? (a) : (b))
#define VD_BITS(a)      pl_f64_bits(a)
#define VD_OF(i)        pl_f64_from_bits(i)
#define VD_ABS(a)       fabs(a)
#define VD_NEG(a)       (-(a))
#define VL_SET(c)       ((uint64_t)(c))
#define VL_ADD(a, b)    ((a) + (b))
#define VL_SUB(a, b)    ((a) - (b))
#define VL_AND(a, b)    ((a) & (b))
#define VL_OR(a, b)     ((a) | (b))
#define VL_XOR(a, b)    ((a) ^ (b))
#define VL_SHL(a, n)    ((a) << (n))
#define VL_SHR(a, n)    ((a) >> (n))
#define VF_VIA_D(f, x)  ((float)f((double)(x)))
/* clang-format on */
#include "base/mathfn_body.h"

/* base^e for a positive finite base, |e log(base)| < 700: about 2^-48 relative, so its rounding to float32 is right but
 * for one case in 2^23. For tables made at load (rope frequencies), not for hot loops. */
static inline __attribute__((unused)) double pl_pow(double base, double e)
{
    return pl_exp(e * pl_log(base));
}

#endif
