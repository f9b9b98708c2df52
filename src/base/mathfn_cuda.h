/* mathfn for CUDA device code: one lane a thread. Every operation is an intrinsic rounded to nearest that the compiler
 * never fuses, so neither --fmad nor the flush-to-zero default of a build may change a bit (do not pass --ftz=true or
 * --use_fast_math: those do reach comparisons and casts). */
#ifndef PL_BASE_MATHFN_CUDA_H
#define PL_BASE_MATHFN_CUDA_H

#include <stdint.h>

/* clang-format off */
#define PLM(name)       pl_##name##_dev
#define PLM_FN          static __device__ __forceinline__
#define VF              float
#define VI              uint32_t
#define VFM             bool
#define VD              double
#define VL              uint64_t
#define VDM             bool
#define VF_LANES        1
#define VF_LOAD(p)      (*(p))
#define VF_STORE(p, v)  (*(p) = (v))
#define VFM_ANY(m)      (m)
#define VF_SET(c)       (c)
#define VF_ADD(a, b)    __fadd_rn(a, b)
#define VF_SUB(a, b)    __fsub_rn(a, b)
#define VF_MUL(a, b)    __fmul_rn(a, b)
#define VF_DIV(a, b)    __fdiv_rn(a, b)
#define VF_FMA(a, b, c) __fmaf_rn(a, b, c)
#define VF_GT(a, b)     ((a) > (b))
#define VF_EQ(a, b)     ((a) == (b))
#define VF_SEL(m, a, b) ((m) ? (a) : (b))
#define VF_BITS(a)      __float_as_uint(a)
#define VF_OF(i)        __uint_as_float(i)
#define VF_ABS(a)       __uint_as_float(__float_as_uint(a) & 0x7fffffffu)
#define VF_NEG(a)       __uint_as_float(__float_as_uint(a) ^ 0x80000000u)
#define VI_SET(c)       ((uint32_t)(c))
#define VI_ADD(a, b)    ((a) + (b))
#define VI_SUB(a, b)    ((a) - (b))
#define VI_SHL(a, n)    ((a) << (n))
#define VI_SAR(a, n)    ((uint32_t)((int32_t)(a) >> (n)))
#define VD_SET(c)       (c)
#define VD_ADD(a, b)    __dadd_rn(a, b)
#define VD_SUB(a, b)    __dsub_rn(a, b)
#define VD_MUL(a, b)    __dmul_rn(a, b)
#define VD_DIV(a, b)    __ddiv_rn(a, b)
#define VD_FMA(a, b, c) __fma_rn(a, b, c)
#define VD_GT(a, b)     ((a) > (b))
#define VD_EQ(a, b)     ((a) == (b))
#define VD_SEL(m, a, b) ((m) ? (a) : (b))
#define VD_BITS(a)      ((uint64_t)__double_as_longlong(a))
#define VD_OF(i)        __longlong_as_double((long long)(i))
#define VD_ABS(a)       VD_OF(VD_BITS(a) & 0x7fffffffffffffffull)
#define VD_NEG(a)       VD_OF(VD_BITS(a) ^ 0x8000000000000000ull)
#define VL_SET(c)       ((uint64_t)(c))
#define VL_ADD(a, b)    ((a) + (b))
#define VL_SUB(a, b)    ((a) - (b))
#define VL_AND(a, b)    ((a) & (b))
#define VL_OR(a, b)     ((a) | (b))
#define VL_XOR(a, b)    ((a) ^ (b))
#define VL_SHL(a, n)    ((a) << (n))
#define VL_SHR(a, n)    ((a) >> (n))
#define VF_VIA_D(f, x)  __double2float_rn(f((double)(x)))
/* clang-format on */
#include "base/mathfn_body.h"

#endif
