/* mathfn for AArch64 NEON: four float32 lanes (or two float64). */
#ifndef PL_BASE_MATHFN_NEON_H
#define PL_BASE_MATHFN_NEON_H

#include <arm_neon.h>

/* clang-format off */
#define PLM(name)       pl_##name##_neon
#define PLM_FN          static inline __attribute__((unused))
#define VF              float32x4_t
#define VI              int32x4_t
#define VFM             uint32x4_t
#define VD              float64x2_t
#define VL              uint64x2_t
#define VDM             uint64x2_t
#define VF_LANES        4
#define VF_LOAD(p)      vld1q_f32(p)
#define VF_STORE(p, v)  vst1q_f32(p, v)
#define VFM_ANY(m)      (vmaxvq_u32(m) != 0)
#define VF_SET(c)       vdupq_n_f32(c)
#define VF_ADD(a, b)    vaddq_f32(a, b)
#define VF_SUB(a, b)    vsubq_f32(a, b)
#define VF_MUL(a, b)    vmulq_f32(a, b)
#define VF_DIV(a, b)    vdivq_f32(a, b)
#define VF_FMA(a, b, c) vfmaq_f32(c, a, b)
#define VF_GT(a, b)     vcgtq_f32(a, b)
#define VF_EQ(a, b)     vceqq_f32(a, b)
#define VF_SEL(m, a, b) vbslq_f32(m, a, b)
#define VF_BITS(a)      vreinterpretq_s32_f32(a)
#define VF_OF(i)        vreinterpretq_f32_s32(i)
#define VF_ABS(a)       vabsq_f32(a)
#define VF_NEG(a)       vnegq_f32(a)
#define VI_SET(c)       vdupq_n_s32(c)
#define VI_ADD(a, b)    vaddq_s32(a, b)
#define VI_SUB(a, b)    vsubq_s32(a, b)
#define VI_SHL(a, n)    vshlq_n_s32(a, n)
#define VI_SAR(a, n)    vshrq_n_s32(a, n)
#define VD_SET(c)       vdupq_n_f64(c)
#define VD_ADD(a, b)    vaddq_f64(a, b)
#define VD_SUB(a, b)    vsubq_f64(a, b)
#define VD_MUL(a, b)    vmulq_f64(a, b)
#define VD_DIV(a, b)    vdivq_f64(a, b)
#define VD_FMA(a, b, c) vfmaq_f64(c, a, b)
#define VD_GT(a, b)     vcgtq_f64(a, b)
#define VD_EQ(a, b)     vceqq_f64(a, b)
#define VD_SEL(m, a, b) vbslq_f64(m, a, b)
#define VD_BITS(a)      vreinterpretq_u64_f64(a)
#define VD_OF(i)        vreinterpretq_f64_u64(i)
#define VD_ABS(a)       vabsq_f64(a)
#define VD_NEG(a)       vnegq_f64(a)
#define VL_SET(c)       vdupq_n_u64(c)
#define VL_ADD(a, b)    vaddq_u64(a, b)
#define VL_SUB(a, b)    vsubq_u64(a, b)
#define VL_AND(a, b)    vandq_u64(a, b)
#define VL_OR(a, b)     vorrq_u64(a, b)
#define VL_XOR(a, b)    veorq_u64(a, b)
#define VL_SHL(a, n)    vshlq_n_u64(a, n)
#define VL_SHR(a, n)    vshrq_n_u64(a, n)
#define VF_VIA_D(f, x)                                                       \
    vcombine_f32(vcvt_f32_f64(f(vcvt_f64_f32(vget_low_f32(x)))), vcvt_f32_f64(f(vcvt_f64_f32(vget_high_f32(x)))))
/* clang-format on */
#include "base/mathfn_body.h"

#endif
