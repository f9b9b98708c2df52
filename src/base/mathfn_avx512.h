/* mathfn for AVX-512: sixteen float32 lanes (or eight float64). Include only from files compiled with -mavx512f. */
#ifndef PL_BASE_MATHFN_AVX512_H
#define PL_BASE_MATHFN_AVX512_H

#include <immintrin.h>

/* clang-format off */
#define PLM(name)       pl_##name##_avx512
#define PLM_FN          static inline __attribute__((unused))
#define VF              __m512
#define VI              __m512i
#define VFM             __mmask16
#define VD              __m512d
#define VL              __m512i
#define VDM             __mmask8
#define VF_LANES        16
#define VF_LOAD(p)      _mm512_loadu_ps(p)
#define VF_STORE(p, v)  _mm512_storeu_ps(p, v)
#define VFM_ANY(m)      ((m) != 0)
#define VF_SET(c)       _mm512_set1_ps(c)
#define VF_ADD(a, b)    _mm512_add_ps(a, b)
#define VF_SUB(a, b)    _mm512_sub_ps(a, b)
#define VF_MUL(a, b)    _mm512_mul_ps(a, b)
#define VF_DIV(a, b)    _mm512_div_ps(a, b)
#define VF_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define VF_GT(a, b)     _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)
#define VF_EQ(a, b)     _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define VF_SEL(m, a, b) _mm512_mask_blend_ps(m, b, a)
#define VF_BITS(a)      _mm512_castps_si512(a)
#define VF_OF(i)        _mm512_castsi512_ps(i)
#define VF_ABS(a)       VF_OF(_mm512_and_epi32(VF_BITS(a), _mm512_set1_epi32(0x7fffffff)))
#define VF_NEG(a)       VF_OF(_mm512_xor_epi32(VF_BITS(a), _mm512_set1_epi32((int)0x80000000)))
#define VI_SET(c)       _mm512_set1_epi32(c)
#define VI_ADD(a, b)    _mm512_add_epi32(a, b)
#define VI_SUB(a, b)    _mm512_sub_epi32(a, b)
#define VI_SHL(a, n)    _mm512_slli_epi32(a, n)
#define VI_SAR(a, n)    _mm512_srai_epi32(a, n)
#define VD_SET(c)       _mm512_set1_pd(c)
#define VD_ADD(a, b)    _mm512_add_pd(a, b)
#define VD_SUB(a, b)    _mm512_sub_pd(a, b)
#define VD_MUL(a, b)    _mm512_mul_pd(a, b)
#define VD_DIV(a, b)    _mm512_div_pd(a, b)
#define VD_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define VD_GT(a, b)     _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ)
#define VD_EQ(a, b)     _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define VD_SEL(m, a, b) _mm512_mask_blend_pd(m, b, a)
#define VD_BITS(a)      _mm512_castpd_si512(a)
#define VD_OF(i)        _mm512_castsi512_pd(i)
#define VD_ABS(a)       VD_OF(_mm512_and_epi64(VD_BITS(a), _mm512_set1_epi64(0x7fffffffffffffff)))
#define VD_NEG(a)       VD_OF(_mm512_xor_epi64(VD_BITS(a), _mm512_set1_epi64((long long)0x8000000000000000)))
#define VL_SET(c)       _mm512_set1_epi64(c)
#define VL_ADD(a, b)    _mm512_add_epi64(a, b)
#define VL_SUB(a, b)    _mm512_sub_epi64(a, b)
#define VL_AND(a, b)    _mm512_and_epi64(a, b)
#define VL_OR(a, b)     _mm512_or_epi64(a, b)
#define VL_XOR(a, b)    _mm512_xor_epi64(a, b)
#define VL_SHL(a, n)    _mm512_slli_epi64(a, n)
#define VL_SHR(a, n)    _mm512_srli_epi64(a, n)
/* the 128- and 256-bit halves without AVX512DQ: through the double view */
#define VF_VIA_D(f, x)                                                                                        \
    _mm512_castpd_ps(_mm512_insertf64x4(                                                                      \
        _mm512_castps_pd(_mm512_castps256_ps512(_mm512_cvtpd_ps(f(_mm512_cvtps_pd(_mm512_castps512_ps256(x)))))), \
        _mm256_castps_pd(_mm512_cvtpd_ps(f(_mm512_cvtps_pd(                                                   \
            _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)))))), 1))
/* clang-format on */
#include "base/mathfn_body.h"

#endif
