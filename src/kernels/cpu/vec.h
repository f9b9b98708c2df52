/* v16: sixteen float32 lanes, the one vector type of the CPU operations. One array in scalar code, two registers in
 * AVX2, one in AVX-512, four in NEON; a file that includes this defines PL__V16_SCALAR, _AVX2, _AVX512 or _NEON first.
 *
 * Sixteen because every dot product here has sixteen accumulators: element k goes to lane k mod 16 by one fused
 * multiply-add, and v16_sum adds lanes l and l+8, then l and l+4, l+2, l+1 (docs/architecture.md, "Summation orders").
 * Every function is one IEEE operation a lane, so an operation written with v16 has the same bits everywhere.
 *
 * PL__TA x PL__TB: how many accumulators a register tile of products holds (rows of A x rows of B); PL__TI: how many
 * heads of an index query go side by side. */
#ifndef PL_KERNELS_CPU_VEC_H
#define PL_KERNELS_CPU_VEC_H

#include "base/bf16.h"
#include "base/mathfn.h"

#define PL__IN static inline __attribute__((always_inline, unused))

#if defined(PL__V16_AVX512)
/* ---- AVX-512 ---------------------------------------------------------------------------------------------------- */
#include <immintrin.h>

#include "base/mathfn_avx512.h"

enum { PL__TA = 4, PL__TB = 4, PL__TI = 4 };
typedef __m512 v16;

PL__IN v16 v16_zero(void)
{
    return _mm512_setzero_ps();
}
PL__IN v16 v16_set1(float f)
{
    return _mm512_set1_ps(f);
}
PL__IN v16 v16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
PL__IN void v16_store(float *p, v16 v)
{
    _mm512_storeu_ps(p, v);
}
PL__IN v16 v16_load_bf(const pl_bf16 *p)
{
    __m512i u = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
}
PL__IN v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}
PL__IN v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}
PL__IN v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}
PL__IN v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* a > b ? a : b, so b where either is a NaN */
PL__IN v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}
PL__IN v16 v16_exp(v16 a)
{
    return pl_expf_avx512(a);
}
PL__IN __m512i v16__bf_bits(v16 v)
{
    __m512i u = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
}
/* Each lane rounded to bfloat16 as pl_bf16_from_f32 does, kept as a float */
PL__IN v16 v16_round_bf(v16 v)
{
    return _mm512_castsi512_ps(_mm512_and_si512(v16__bf_bits(v), _mm512_set1_epi32((int)0xffff0000)));
}
PL__IN void v16_store_bf(pl_bf16 *p, v16 v)
{
    __m256i h = _mm512_cvtepi32_epi16(_mm512_srli_epi32(v16__bf_bits(v), 16));
    _mm256_storeu_si256((__m256i *)p, h);
}
PL__IN __m256 v16__half(v16 v)
{
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

/* sixteen nibbles of eight bytes, in element order */
PL__IN __m128i v16__nibbles(const unsigned char *p)
{
    __m128i b = _mm_loadl_epi64((const __m128i *)p), low = _mm_set1_epi8(15);
    return _mm_unpacklo_epi8(_mm_and_si128(b, low), _mm_and_si128(_mm_srli_epi16(b, 4), low));
}
PL__IN __m128i v16__twice_e2m1(__m128i nibbles)
{
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    return _mm_shuffle_epi8(table, nibbles);
}
/* Twice the E2M1 values of sixteen packed elements (eight bytes, low nibble first) */
PL__IN v16 v16_twice_e2m1(const unsigned char *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v16__twice_e2m1(v16__nibbles(p))));
}
/* 64 packed bytes at p: p[i] becomes 12 + twice the value of its low nibble, p[64 + i] of its high one */
PL__IN void v16_spread_e2m1(unsigned char *p)
{
    const __m512i table =
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    __m512i b = _mm512_loadu_si512(p), low = _mm512_set1_epi8(15);
    _mm512_storeu_si512(p, _mm512_shuffle_epi8(table, _mm512_and_si512(b, low)));
    _mm512_storeu_si512(p + 64, _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(b, 4), low)));
}
/* For each of `heads` (at most 4) queries: lane l is the sum over eight quads of k[quad][l][0..3] * q[quad][0..3], less
 * the bias. k at most 24, |q| at most 12: a 16-bit lane, two products a quad, holds at most 8 * 2 * 24 * 12 = 4608. */
PL__IN void v16_idot(v16 *out, int heads, const unsigned char *k, const int8_t *q, size_t q_stride, const int32_t *bias,
                     size_t bias_stride)
{
    __m512i acc[4];
    for (int h = 0; h < heads; h++)
        acc[h] = _mm512_setzero_si512();
    for (int i = 0; i < 8; i++) {
        __m512i ks = _mm512_loadu_si512(k + 64 * i);
        for (int h = 0; h < heads; h++) {
            int32_t quad;
            memcpy(&quad, q + (size_t)h * q_stride + 4 * i, 4);
            acc[h] = _mm512_add_epi16(acc[h], _mm512_maddubs_epi16(ks, _mm512_set1_epi32(quad)));
        }
    }
    for (int h = 0; h < heads; h++) {
        acc[h] = _mm512_madd_epi16(acc[h], _mm512_set1_epi16(1));
        out[h] = _mm512_cvtepi32_ps(_mm512_sub_epi32(acc[h], _mm512_set1_epi32(bias[(size_t)h * bias_stride])));
    }
}

#elif defined(PL__V16_AVX2)
/* ---- AVX2 + FMA ------------------------------------------------------------------------------------------------- */
#include <immintrin.h>

#include "base/mathfn_avx2.h"

enum { PL__TA = 2, PL__TB = 2, PL__TI = 4 };
typedef struct v16 {
    __m256 lo, hi;
} v16;

PL__IN v16 v16_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
PL__IN v16 v16_set1(float f)
{
    __m256 v = _mm256_set1_ps(f);
    return (v16){v, v};
}
PL__IN v16 v16_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
PL__IN void v16_store(float *p, v16 v)
{
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}
PL__IN __m256 v16__widen(const pl_bf16 *p)
{
    __m256i u = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}
PL__IN v16 v16_load_bf(const pl_bf16 *p)
{
    return (v16){v16__widen(p), v16__widen(p + 8)};
}
PL__IN v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
PL__IN v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
PL__IN v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
PL__IN v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
PL__IN v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
PL__IN v16 v16_exp(v16 a)
{
    return (v16){pl_expf_avx2(a.lo), pl_expf_avx2(a.hi)};
}
PL__IN __m256i v16__bf_bits(__m256 v)
{
    __m256i u = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(r), _mm256_castsi256_ps(quiet), nan));
}
PL__IN v16 v16_round_bf(v16 v)
{
    const __m256i top = _mm256_set1_epi32((int)0xffff0000);
    return (v16){_mm256_castsi256_ps(_mm256_and_si256(v16__bf_bits(v.lo), top)),
                 _mm256_castsi256_ps(_mm256_and_si256(v16__bf_bits(v.hi), top))};
}
PL__IN void v16_store_bf(pl_bf16 *p, v16 v)
{
    __m256i lo = _mm256_srli_epi32(v16__bf_bits(v.lo), 16), hi = _mm256_srli_epi32(v16__bf_bits(v.hi), 16);
    __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8);
    _mm256_storeu_si256((__m256i *)p, h);
}
PL__IN __m256 v16__half(v16 v)
{
    return _mm256_add_ps(v.lo, v.hi);
}

/* sixteen nibbles of eight bytes, in element order */
PL__IN __m128i v16__nibbles(const unsigned char *p)
{
    __m128i b = _mm_loadl_epi64((const __m128i *)p), low = _mm_set1_epi8(15);
    return _mm_unpacklo_epi8(_mm_and_si128(b, low), _mm_and_si128(_mm_srli_epi16(b, 4), low));
}
PL__IN __m128i v16__twice_e2m1(__m128i nibbles)
{
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    return _mm_shuffle_epi8(table, nibbles);
}
PL__IN v16 v16_twice_e2m1(const unsigned char *p)
{
    __m128i c = v16__twice_e2m1(v16__nibbles(p));
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(c)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(c, 8)))};
}
PL__IN void v16_spread_e2m1(unsigned char *p)
{
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    const __m256i low = _mm256_set1_epi8(15);
    for (int i = 0; i < 64; i += 32) {
        __m256i b = _mm256_loadu_si256((const __m256i *)(p + i));
        __m256i odd = _mm256_and_si256(_mm256_srli_epi16(b, 4), low);
        _mm256_storeu_si256((__m256i *)(p + i), _mm256_shuffle_epi8(table, _mm256_and_si256(b, low)));
        _mm256_storeu_si256((__m256i *)(p + 64 + i), _mm256_shuffle_epi8(table, odd));
    }
}
PL__IN void v16_idot(v16 *out, int heads, const unsigned char *k, const int8_t *q, size_t q_stride, const int32_t *bias,
                     size_t bias_stride)
{
    __m256i lo[4], hi[4], one = _mm256_set1_epi16(1);
    for (int h = 0; h < heads; h++)
        lo[h] = hi[h] = _mm256_setzero_si256();
    for (int i = 0; i < 8; i++) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(k + 64 * i));
        __m256i high = _mm256_loadu_si256((const __m256i *)(k + 64 * i + 32));
        for (int h = 0; h < heads; h++) {
            int32_t quad;
            memcpy(&quad, q + (size_t)h * q_stride + 4 * i, 4);
            __m256i qs = _mm256_set1_epi32(quad);
            lo[h] = _mm256_add_epi16(lo[h], _mm256_maddubs_epi16(low, qs));
            hi[h] = _mm256_add_epi16(hi[h], _mm256_maddubs_epi16(high, qs));
        }
    }
    for (int h = 0; h < heads; h++) {
        __m256i less = _mm256_set1_epi32(bias[(size_t)h * bias_stride]);
        out[h].lo = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_madd_epi16(lo[h], one), less));
        out[h].hi = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_madd_epi16(hi[h], one), less));
    }
}

#elif defined(PL__V16_NEON)
/* ---- NEON ------------------------------------------------------------------------------------------------------- */
#include <arm_neon.h>

#include "base/mathfn_neon.h"

enum { PL__TA = 2, PL__TB = 2, PL__TI = 1 };
typedef struct v16 {
    float32x4_t v[4];
} v16;

#define PL__EACH4(expr)                                                                                                \
    v16 r;                                                                                                             \
    for (int i = 0; i < 4; i++)                                                                                        \
        r.v[i] = (expr);                                                                                               \
    return r

PL__IN v16 v16_set1(float f)
{
    PL__EACH4(vdupq_n_f32(f));
}
PL__IN v16 v16_zero(void)
{
    return v16_set1(0.0f);
}
PL__IN v16 v16_load(const float *p)
{
    PL__EACH4(vld1q_f32(p + 4 * i));
}
PL__IN void v16_store(float *p, v16 v)
{
    for (int i = 0; i < 4; i++)
        vst1q_f32(p + 4 * i, v.v[i]);
}
PL__IN v16 v16_load_bf(const pl_bf16 *p)
{
    PL__EACH4(vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}
PL__IN v16 v16_add(v16 a, v16 b)
{
    PL__EACH4(vaddq_f32(a.v[i], b.v[i]));
}
PL__IN v16 v16_mul(v16 a, v16 b)
{
    PL__EACH4(vmulq_f32(a.v[i], b.v[i]));
}
PL__IN v16 v16_div(v16 a, v16 b)
{
    PL__EACH4(vdivq_f32(a.v[i], b.v[i]));
}
PL__IN v16 v16_fma(v16 a, v16 b, v16 c)
{
    PL__EACH4(vfmaq_f32(c.v[i], a.v[i], b.v[i]));
}
PL__IN v16 v16_max(v16 a, v16 b)
{
    PL__EACH4(vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]));
}
PL__IN v16 v16_exp(v16 a)
{
    PL__EACH4(pl_expf_neon(a.v[i]));
}
PL__IN uint32x4_t v16__bf_bits(float32x4_t v)
{
    uint32x4_t u = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t r = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    return vbslq_u32(vceqq_f32(v, v), r, vorrq_u32(u, vdupq_n_u32(0x400000)));
}
PL__IN v16 v16_round_bf(v16 v)
{
    PL__EACH4(vreinterpretq_f32_u32(vandq_u32(v16__bf_bits(v.v[i]), vdupq_n_u32(0xffff0000))));
}
PL__IN void v16_store_bf(pl_bf16 *p, v16 v)
{
    for (int i = 0; i < 4; i++)
        vst1_u16(p + 4 * i, vshrn_n_u32(v16__bf_bits(v.v[i]), 16));
}
PL__IN float v16_sum(v16 v)
{
    float32x4_t q = vaddq_f32(vaddq_f32(v.v[0], v.v[2]), vaddq_f32(v.v[1], v.v[3]));
    float32x2_t d = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}

PL__IN v16 v16_twice_e2m1(const unsigned char *p)
{
    static const int8_t values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    uint8x8_t b = vld1_u8(p);
    uint8x8x2_t pair = vzip_u8(vand_u8(b, vdup_n_u8(15)), vshr_n_u8(b, 4));
    int8x16_t c = vqtbl1q_s8(vld1q_s8(values), vcombine_u8(pair.val[0], pair.val[1]));
    int16x8_t lo = vmovl_s8(vget_low_s8(c)), hi = vmovl_s8(vget_high_s8(c));
    return (v16){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(lo))),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(hi)))}};
}
PL__IN void v16_spread_e2m1(unsigned char *p)
{
    static const uint8_t values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    uint8x16_t table = vld1q_u8(values);
    for (int i = 0; i < 64; i += 16) {
        uint8x16_t b = vld1q_u8(p + i);
        vst1q_u8(p + i, vqtbl1q_u8(table, vandq_u8(b, vdupq_n_u8(15))));
        vst1q_u8(p + 64 + i, vqtbl1q_u8(table, vshrq_n_u8(b, 4)));
    }
}
/* 16-bit lanes hold one product a quad: pairs are added at the end (at most 8 * 24 * 12 = 2304 a lane) */
PL__IN float32x4_t v16__idot_part(const unsigned char *k, const int8_t *q, int32_t bias)
{
    int16x8_t lo = vdupq_n_s16(0), hi = lo;
    for (int i = 0; i < 8; i++) {
        int32_t quad;
        memcpy(&quad, q + 4 * i, 4);
        int8x16_t qs = vreinterpretq_s8_s32(vdupq_n_s32(quad));
        int8x16_t ks = vreinterpretq_s8_u8(vld1q_u8(k + 64 * i));
        lo = vmlal_s8(lo, vget_low_s8(ks), vget_low_s8(qs));
        hi = vmlal_high_s8(hi, ks, qs);
    }
    int32x4_t sum = vpaddq_s32(vpaddlq_s16(lo), vpaddlq_s16(hi));
    return vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(bias)));
}
PL__IN void v16_idot(v16 *out, int heads, const unsigned char *k, const int8_t *q, size_t q_stride, const int32_t *bias,
                     size_t bias_stride)
{
    for (int h = 0; h < heads; h++)
        for (int part = 0; part < 4; part++)
            out[h].v[part] = v16__idot_part(k + 16 * part, q + (size_t)h * q_stride, bias[(size_t)h * bias_stride]);
}

#else
/* ---- plain C ---------------------------------------------------------------------------------------------------- */
enum { PL__TA = 1, PL__TB = 1, PL__TI = 1 };
typedef struct v16 {
    float l[16];
} v16;

#define PL__EACH16(expr)                                                                                               \
    v16 r;                                                                                                             \
    for (int i = 0; i < 16; i++)                                                                                       \
        r.l[i] = (expr);                                                                                               \
    return r

PL__IN v16 v16_set1(float f)
{
    PL__EACH16(f);
}
PL__IN v16 v16_zero(void)
{
    return v16_set1(0.0f);
}
PL__IN v16 v16_load(const float *p)
{
    PL__EACH16(p[i]);
}
PL__IN void v16_store(float *p, v16 v)
{
    for (int i = 0; i < 16; i++)
        p[i] = v.l[i];
}
PL__IN v16 v16_load_bf(const pl_bf16 *p)
{
    PL__EACH16(pl_bf16_to_f32(p[i]));
}
PL__IN v16 v16_add(v16 a, v16 b)
{
    PL__EACH16(a.l[i] + b.l[i]);
}
PL__IN v16 v16_mul(v16 a, v16 b)
{
    PL__EACH16(a.l[i] * b.l[i]);
}
PL__IN v16 v16_div(v16 a, v16 b)
{
    PL__EACH16(a.l[i] / b.l[i]);
}
PL__IN v16 v16_fma(v16 a, v16 b, v16 c)
{
    PL__EACH16(fmaf(a.l[i], b.l[i], c.l[i]));
}
PL__IN v16 v16_max(v16 a, v16 b)
{
    PL__EACH16(a.l[i] > b.l[i] ? a.l[i] : b.l[i]);
}
PL__IN v16 v16_exp(v16 a)
{
    PL__EACH16(pl_expf(a.l[i]));
}
PL__IN v16 v16_round_bf(v16 v)
{
    PL__EACH16(pl_bf16_to_f32(pl_bf16_from_f32(v.l[i])));
}
PL__IN void v16_store_bf(pl_bf16 *p, v16 v)
{
    for (int i = 0; i < 16; i++)
        p[i] = pl_bf16_from_f32(v.l[i]);
}
PL__IN float v16_sum(v16 v)
{
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            v.l[i] += v.l[i + half];
    return v.l[0];
}
PL__IN v16 v16_twice_e2m1(const unsigned char *p)
{
    static const float values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    PL__EACH16(values[p[i / 2] >> 4 * (i & 1) & 15]);
}
PL__IN void v16_spread_e2m1(unsigned char *p)
{
    static const unsigned char values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    for (int i = 0; i < 64; i++) {
        p[64 + i] = values[p[i] >> 4];
        p[i] = values[p[i] & 15];
    }
}
PL__IN void v16_idot(v16 *out, int heads, const unsigned char *k, const int8_t *q, size_t q_stride, const int32_t *bias,
                     size_t bias_stride)
{
    for (int h = 0; h < heads; h++)
        for (int l = 0; l < 16; l++) {
            int32_t sum = -bias[(size_t)h * bias_stride];
            for (int i = 0; i < 32; i++)
                sum += k[64 * (i / 4) + 4 * l + i % 4] * q[(size_t)h * q_stride + (size_t)i];
            out[h].l[l] = (float)sum;
        }
}
#endif

#if defined(PL__V16_AVX512) || defined(PL__V16_AVX2)
PL__IN float v16_sum(v16 v)
{
    __m256 h = v16__half(v);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
#endif

/* ---- the same everywhere ---------------------------------------------------------------------------------------- */

/* The first n < 16 elements, zeros above: a zero product leaves an accumulator as it is, so a short end of a dot
 * product has the bits of one that stops there. */
PL__IN v16 v16_load_n(const float *p, size_t n)
{
    float t[16] = {0};
    memcpy(t, p, n * sizeof *t);
    return v16_load(t);
}
PL__IN v16 v16_load_bf_n(const pl_bf16 *p, size_t n)
{
    pl_bf16 t[16] = {0};
    memcpy(t, p, n * sizeof *t);
    return v16_load_bf(t);
}
PL__IN void v16_store_bf_n(pl_bf16 *p, v16 v, size_t n)
{
    pl_bf16 t[16];
    v16_store_bf(t, v);
    memcpy(p, t, n * sizeof *t);
}

#endif
