/* Matrix products in order c16 with AVX-512: the sixteen accumulators are one register, in natural order. */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <immintrin.h>

#define IN static inline __attribute__((always_inline))

IN size_t weight_bytes(pl_format f)
{
    return f == PL_FMT_F32 ? 4 : f == PL_FMT_BF16 ? 2 : 1;
}

/* Groups of sixteen weights in a cache line. */
IN int groups_a_line(pl_format f)
{
    return f == PL_FMT_F32 ? 1 : f == PL_FMT_BF16 ? 2 : 4;
}

IN __m512 from_fp8(__m128i codes)
{
    /* E4M3 bits at the float's place are the value times 2^-120; the block's scale sets that right */
    __m512i v = _mm512_slli_epi32(_mm512_cvtepi8_epi32(codes), 20);
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int)0x87f00000)));
}

IN __m512 from_bf16(__m256i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

/* Sixteen weights; FP8 still without its scale. */
IN __m512 load16(pl_format f, const unsigned char *p)
{
    if (f == PL_FMT_F32)
        return _mm512_loadu_ps(p);
    if (f == PL_FMT_BF16)
        return from_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return from_fp8(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* The first n < 16 of them, then zeros; reads no further. */
IN __m512 load_some(pl_format f, const unsigned char *p, int n)
{
    __mmask16 m = (__mmask16)((1u << n) - 1);
    if (f == PL_FMT_F32)
        return _mm512_maskz_loadu_ps(m, p);
    if (f == PL_FMT_BF16)
        return from_bf16(_mm256_maskz_loadu_epi16(m, p));
    return from_fp8(_mm_maskz_loadu_epi8(m, p));
}

/* 2^(byte - 127), times the 2^120 that from_fp8 leaves out. */
IN __m512 fp8_scale(unsigned char byte)
{
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)(((uint32_t)byte + 120) << 23)));
}

static void pack(float *to, const pl_bf16 *x, int in)
{
    int k = 0;
    for (; k + 16 <= in; k += 16)
        _mm512_storeu_ps(to + k, load16(PL_FMT_BF16, (const unsigned char *)(x + k)));
    if (k < in)
        _mm512_storeu_ps(to + k, load_some(PL_FMT_BF16, (const unsigned char *)(x + k), in - k));
}

static float sum(const float *acc)
{
    __m256 a = _mm256_add_ps(_mm256_loadu_ps(acc), _mm256_loadu_ps(acc + 8));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* One line (64 bytes) of weights of each of `outs` neighbouring outputs with each of `rows` rows, from input k. An
 * FP8 block's scale goes to x: c16 wants x * w, and powers of two move freely as long as nothing overflows, which
 * pl__lin_block made sure of. */
IN void few_line(pl_format f, int rows, int outs, __m512 (*acc)[8], const unsigned char *q, size_t stride,
                 const unsigned char *scale, const float *const *x, size_t k)
{
    size_t size = weight_bytes(f);
#pragma GCC unroll 8
    for (int j = 0; j < outs; j++)
        pl__near(q + (size_t)j * stride);
#pragma GCC unroll 4
    for (int i = 0; i < groups_a_line(f); i++) {
        __m512 v[6];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            v[r] = _mm512_loadu_ps(x[r] + k + i * 16);
            if (f == PL_FMT_FP8)
                v[r] = _mm512_mul_ps(v[r], fp8_scale(scale[i / 2]));
        }
#pragma GCC unroll 8
        for (int j = 0; j < outs; j++) {
            __m512 w = load16(f, q + (size_t)j * stride + (size_t)i * 16 * size);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                acc[r][j] = _mm512_fmadd_ps(v[r], w, acc[r][j]);
        }
    }
}

/* The inputs behind the last whole line. */
IN void few_rest(pl_format f, int rows, int outs, __m512 (*acc)[8], const unsigned char *p, size_t stride,
                 const unsigned char *scale, const float *const *x, int k, int in)
{
    for (; k < in; k += 16)
#pragma GCC unroll 8
        for (int j = 0; j < outs; j++) {
            const unsigned char *q = p + (size_t)j * stride + (size_t)k * weight_bytes(f);
            __m512 w = in - k < 16 ? load_some(f, q, in - k) : load16(f, q);
            if (f == PL_FMT_FP8)
                w = _mm512_mul_ps(w, fp8_scale(scale[k / 32]));
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++)
                acc[r][j] = _mm512_fmadd_ps(_mm512_loadu_ps(x[r] + k), w, acc[r][j]);
        }
}

IN void few_group(pl_format f, int rows, int outs, float (*y)[PL__OUTS], int at, const pl_mat *w, int o,
                  const float *const *x)
{
    size_t size = weight_bytes(f), stride = (size_t)w->in * size;
    const unsigned char *p = w->data + (size_t)o * stride, *scale = NULL;
    int lines = (int)(stride / PL__LINE), a_line = PL__LINE / (int)size;
    const float *xr[6];
    __m512 acc[6][8];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        xr[r] = x[r];
#pragma GCC unroll 8
        for (int j = 0; j < outs; j++)
            acc[r][j] = _mm512_setzero_ps();
    }
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32);
    for (int line = 0; line < lines; line++) {
        pl__ahead(p + (size_t)outs * stride, line, outs);
        few_line(f, rows, outs, acc, p + (size_t)line * PL__LINE, stride, f == PL_FMT_FP8 ? scale + line * 2 : NULL, xr,
                 (size_t)line * (size_t)a_line);
    }
    few_rest(f, rows, outs, acc, p, stride, scale, xr, lines * a_line, w->in);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int j = 0; j < outs; j++) {
            float a[16];
            _mm512_storeu_ps(a, acc[r][j]);
            y[r][at + j] = sum(a);
        }
}

IN void few_of(pl_format f, int rows, int outs, float (*y)[PL__OUTS], const pl_mat *w, int o, int count,
               const float *const *x)
{
    int j = 0;
    for (; j + outs <= count; j += outs)
        few_group(f, rows, outs, y, j, w, o + j, x);
    for (; j < count; j++)
        few_group(f, rows, 1, y, j, w, o + j, x);
}

/* Rows times outputs: as many accumulators as leave registers for x and a weight. */
IN void few(pl_format f, float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)
{
    switch (rows) {
    case 1: few_of(f, 1, 8, y, w, o, count, x); break;
    case 2: few_of(f, 2, 8, y, w, o, count, x); break;
    case 3: few_of(f, 3, 8, y, w, o, count, x); break;
    case 4: few_of(f, 4, 4, y, w, o, count, x); break;
    case 5: few_of(f, 5, 4, y, w, o, count, x); break;
    default: few_of(f, 6, 4, y, w, o, count, x); break;
    }
}

IN void widen(pl_format f, float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    size_t size = weight_bytes(f);
    const unsigned char *p = w->data + ((size_t)o * (size_t)w->in + (size_t)from) * size, *scale = NULL;
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32) + from / 32;
    tile += (size_t)j * 16;
    int left = w->in - from < n ? w->in - from : n;
    /* blocks of 32 have a scale */
    for (; left >= 32; left -= 32, p += 32 * size, tile += 2 * PL__TILE * 16) {
        __m512 a = load16(f, p), b = load16(f, p + 16 * size);
        if (f == PL_FMT_FP8) {
            __m512 s = fp8_scale(*scale++);
            a = _mm512_mul_ps(a, s);
            b = _mm512_mul_ps(b, s);
        }
        _mm512_storeu_ps(tile, a);
        _mm512_storeu_ps(tile + PL__TILE * 16, b);
    }
    for (; left > 0; left -= 16, p += 16 * size, tile += PL__TILE * 16) {
        __m512 v = left >= 16 ? load16(f, p) : load_some(f, p, left);
        if (f == PL_FMT_FP8)
            v = _mm512_mul_ps(v, fp8_scale(*scale));
        _mm512_storeu_ps(tile, v);
    }
}

/* The four sums of a row of a tile: the tree over all at once, halves side by side. */
IN __m128 four_sums(__m512 a, __m512 b, __m512 c, __m512 d)
{
    /* i += i + 8: eight lanes of each */
    a = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    c = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    /* i += i + 4: four lanes of each, then + 2 and + 1 */
    a = _mm512_add_ps(_mm512_shuffle_f32x4(a, c, 0x88), _mm512_shuffle_f32x4(a, c, 0xdd));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0x4e));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0xb1));
    __m128 v = _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, a));
    return _mm_mask_mov_ps(v, _mm_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000)));
}

IN void tile_of(int rows, float *acc, const float *const *x, const float *tile, int n, const pl__part *part)
{
    __m512 a[6][4];
    const float *xr[6];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        xr[r] = x[r];
#pragma GCC unroll 8
        for (int j = 0; j < 4; j++)
            a[r][j] = part->first ? _mm512_setzero_ps() : _mm512_loadu_ps(acc + (r * PL__TILE + j) * 16);
    }
    for (int k = 0; k < n; k += 16, tile += 64) {
        __m512 w0 = _mm512_loadu_ps(tile), w1 = _mm512_loadu_ps(tile + 16);
        __m512 w2 = _mm512_loadu_ps(tile + 32), w3 = _mm512_loadu_ps(tile + 48);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            __m512 v = _mm512_loadu_ps(xr[r] + k);
            a[r][0] = _mm512_fmadd_ps(v, w0, a[r][0]);
            a[r][1] = _mm512_fmadd_ps(v, w1, a[r][1]);
            a[r][2] = _mm512_fmadd_ps(v, w2, a[r][2]);
            a[r][3] = _mm512_fmadd_ps(v, w3, a[r][3]);
        }
    }
    if (part->last) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            _mm_storeu_ps(part->y + (size_t)r * part->stride, four_sums(a[r][0], a[r][1], a[r][2], a[r][3]));
        return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int j = 0; j < 4; j++)
            _mm512_storeu_ps(acc + (r * PL__TILE + j) * 16, a[r][j]);
}

static void tile_rows(float *acc, const float *const *x, int rows, const float *tile, int n, const pl__part *part)
{
    switch (rows) {
    case 1: tile_of(1, acc, x, tile, n, part); break;
    case 2: tile_of(2, acc, x, tile, n, part); break;
    case 3: tile_of(3, acc, x, tile, n, part); break;
    case 4: tile_of(4, acc, x, tile, n, part); break;
    case 5: tile_of(5, acc, x, tile, n, part); break;
    default: tile_of(6, acc, x, tile, n, part); break;
    }
}

/* The functions of the table: one format each. */
#define FORMAT(name, format)                                                                                           \
    static void few_##name(float(*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)    \
    {                                                                                                                  \
        few(format, y, w, o, count, x, rows);                                                                          \
    }                                                                                                                  \
    static void widen_##name(float *t, int j, const pl_mat *w, int o, int from, int n)                                 \
    {                                                                                                                  \
        widen(format, t, j, w, o, from, n);                                                                            \
    }
FORMAT(bf16, PL_FMT_BF16)
FORMAT(f32, PL_FMT_F32)
FORMAT(fp8, PL_FMT_FP8)

const pl__lin_c16 pl__c16_avx512 = {
    .few_rows = 6,
    .tile_rows = 6,
    .panel = 768,
    .pack = pack,
    .few = {few_bf16, few_f32, few_fp8},
    .widen = {widen_bf16, widen_f32, widen_fp8},
    .tile = tile_rows,
};
