/* mathfn for AVX2 + FMA: eight float32 lanes (or four float64). Include only from files compiled with -mavx2 -mfma. */
#ifndef PL_BASE_MATHFN_AVX2_H
#define PL_BASE_MATHFN_AVX2_H

#include <immintrin.h>

/* clang-format off */
#define PLM(name)       pl_##name##_avx2
#define PLM_FN          static inline __attribute__((unused))
#define VF              __m256
#define VI              __m256i
#define VFM             __m256
#define VD              __m256d
#define VL              __m256i
#define VDM             __m256d
#define VF_LANES        8
#define VF_LOAD(p)      _mm256_loadu_ps(p)
#define VF_STORE(p, v)  _mm256_storeu_ps(p, v)
#define VFM_ANY(m)      (_mm256_movemask_ps(m) != 0)
#define VF_SET(c)       _mm256_set1_ps(c)
#define VF_ADD(a, b)    _mm256_add_ps(a, b)
#define VF_SUB(a, b)    _mm256_sub_ps(a, b)
#define VF_MUL(a, b)    _mm256_mul_ps(a, b)
#define VF_DIV(a, b)    _mm256_div_ps(a, b)
#define VF_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define VF_GT(a, b)     _mm256_cmp_ps(a, b, _CMP_GT_OQ)
#define VF_EQ(a, b)     _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define VF_SEL(m, a, b) _mm256_blendv_ps(b, a, m)
#define VF_BITS(a)      _mm256_castps_si256(a)
#define VF_OF(i)        _mm256_castsi256_ps(i)
#define VF_ABS(a)       _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define VF_NEG(a)       _mm256_xor_ps(_mm256_set1_ps(-0.0f), a)
#define VI_SET(c)       _mm256_set1_epi32(c)
#define VI_ADD(a, b)    _mm256_add_epi32(a, b)
#define VI_SUB(a, b)    _mm256_sub_epi32(a, b)
#define VI_SHL(a, n)    _mm256_slli_epi32(a, n)
#define VI_SAR(a, n)    _mm256_srai_epi32(a, n)
#define VD_SET(c)       _mm256_set1_pd(c)
#define VD_ADD(a, b)    _mm256_add_pd(a, b)
#define VD_SUB(a, b)    _mm256_sub_pd(a, b)
#define VD_MUL(a, b)    _mm256_mul_pd(a, b)
#define VD_DIV(a, b)    _mm256_div_pd(a, b)
#define VD_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define VD_GT(a, b)     _mm256_cmp_pd(a, b, _CMP_GT_OQ)
#define VD_EQ(a, b)     _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define VD_SEL(m, a, b) _mm256_blendv_pd(b, a, m)
#define VD_BITS(a)      _mm256_castpd_si256(a)
#define VD_OF(i)        _mm256_castsi256_pd(i)
#define VD_ABS(a)       _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define VD_NEG(a)       _mm256_xor_pd(_mm256_set1_pd(-0.0), a)
#define VL_SET(c)       _mm256_set1_epi64x(c)
#define VL_ADD(a, b)    _mm256_add_epi64(a, b)
#define VL_SUB(a, b)    _mm256_sub_epi64(a, b)
#define VL_AND(a, b)    _mm256_and_si256(a, b)
#define VL_OR(a, b)     _mm256_or_si256(a, b)
#define VL_XOR(a, b)    _mm256_xor_si256(a, b)
#define VL_SHL(a, n)    _mm256_slli_epi64(a, n)
#define VL_SHR(a, n)    _mm256_srli_epi64(a, n)
#define VF_VIA_D(f, x)                                                                       \
    _mm256_set_m128(_mm256_cvtpd_ps(f(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)))),        \
                    _mm256_cvtpd_ps(f(_mm256_cvtps_pd(_mm256_castps256_ps128(x)))))
/* clang-format on */
#include "base/mathfn_body.h"

#endif
