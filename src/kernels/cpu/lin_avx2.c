/* Matrix products in order c16 with AVX2. The sixteen accumulators are two registers, those of even inputs and those of
 * odd ones, because a register of 16-bit words splits into these for a shift and a mask. So a packed group of sixteen x
 * holds elements 0, 2, .. 14, then 1, 3, .. 15, and so do widened weights and accumulators; `sum` knows. */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <immintrin.h>

#define IN static inline __attribute__((always_inline))

enum { FEW_PANEL = 512 }; /* inputs that three to six rows walk at a time */

typedef struct pair {
    __m256 even, odd;
} pair;

IN size_t weight_bytes(pl_format f)
{
    return f == PL_FMT_F32 ? 4 : f == PL_FMT_BF16 ? 2 : 1;
}

/* Groups of sixteen weights in a cache line. */
IN int groups_a_line(pl_format f)
{
    return f == PL_FMT_F32 ? 1 : f == PL_FMT_BF16 ? 2 : 4;
}

/* Sixteen bf16 words. */
IN pair split(__m256i v)
{
    return (pair){.even = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)),
                  .odd = _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000)))};
}

/* Sixteen weights; FP8 still without its scale: E4M3 bits at a bf16's place are the value times 2^-120. */
IN pair load16(pl_format f, const unsigned char *p)
{
    if (f == PL_FMT_F32) {
        __m256 a = _mm256_loadu_ps((const float *)(const void *)p);
        __m256 b = _mm256_loadu_ps((const float *)(const void *)(p + 32));
        /* lanes 0 2 8 10 | 4 6 12 14, then its middle quarters change places */
        __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)),
                odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
        return (pair){.even = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8)),
                      .odd = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8))};
    }
    if (f == PL_FMT_BF16)
        return split(_mm256_loadu_si256((const __m256i *)(const void *)p));
    __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    return split(_mm256_and_si256(_mm256_slli_epi16(v, 4), _mm256_set1_epi16((short)0x87f0)));
}

/* The first n < 16 of them, then zeros; reads no further. */
IN pair load_some(pl_format f, const unsigned char *p, int n)
{
    unsigned char some[64] = {0};
    memcpy(some, p, (size_t)n * weight_bytes(f));
    return load16(f, some);
}

IN pair load_up_to(pl_format f, const unsigned char *p, int n)
{
    return n >= 16 ? load16(f, p) : load_some(f, p, n);
}

/* 2^(byte - 127), times the 2^120 that load16 leaves out. */
IN __m256 fp8_scale(unsigned char byte)
{
    return _mm256_castsi256_ps(_mm256_set1_epi32((int)(((uint32_t)byte + 120) << 23)));
}

IN pair scaled(pair w, __m256 s)
{
    return (pair){.even = _mm256_mul_ps(w.even, s), .odd = _mm256_mul_ps(w.odd, s)};
}

IN pair multiply_add(pair x, pair w, pair a)
{
    return (pair){.even = _mm256_fmadd_ps(x.even, w.even, a.even), .odd = _mm256_fmadd_ps(x.odd, w.odd, a.odd)};
}

IN void store(float *to, pair v)
{
    _mm256_storeu_ps(to, v.even);
    _mm256_storeu_ps(to + 8, v.odd);
}

static void pack(float *to, const pl_bf16 *x, int in)
{
    for (int k = 0; k < in; k += 16)
        store(to + k, load_up_to(PL_FMT_BF16, (const unsigned char *)(x + k), in - k));
}

/* The tree 8-4-2-1: i and i + 8 are lanes i/2 and i/2 + 4 of the same register. */
IN float tree(pair a)
{
    __m128 e = _mm_add_ps(_mm256_castps256_ps128(a.even), _mm256_extractf128_ps(a.even, 1));
    __m128 o = _mm_add_ps(_mm256_castps256_ps128(a.odd), _mm256_extractf128_ps(a.odd, 1));
    e = _mm_add_ps(e, _mm_movehl_ps(e, e));
    o = _mm_add_ps(o, _mm_movehl_ps(o, o));
    e = _mm_add_ss(e, _mm_movehdup_ps(e));
    return _mm_cvtss_f32(_mm_add_ss(e, _mm_add_ss(o, _mm_movehdup_ps(o))));
}

/* One line (64 bytes) of weights of each of `outs` neighbouring outputs with each of `rows` rows, from input k. An
 * FP8 block's scale goes to x: c16 wants x * w, and powers of two move freely as long as nothing overflows, which
 * pl__lin_block made sure of. */
IN void few_line(pl_format f, int rows, int outs, pair (*acc)[4], const unsigned char *q, size_t stride,
                 const unsigned char *scale, const float *const *x, size_t k)
{
    size_t size = weight_bytes(f);
#pragma GCC unroll 4
    for (int i = 0; i < groups_a_line(f); i++, q += 16 * size) {
        pair v[2];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            const float *xr = x[r] + k + i * 16;
            v[r] = (pair){_mm256_loadu_ps(xr), _mm256_loadu_ps(xr + 8)};
            if (f == PL_FMT_FP8)
                v[r] = scaled(v[r], fp8_scale(scale[i / 2]));
        }
#pragma GCC unroll 4
        for (int j = 0; j < outs; j++) {
            pair w = load16(f, q + (size_t)j * stride);
            if (i == 0)
                pl__near(q + (size_t)j * stride);
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++)
                acc[r][j] = multiply_add(v[r], w, acc[r][j]);
        }
    }
}

/* The inputs behind the last whole line. */
IN void few_rest(pl_format f, int rows, int outs, pair (*acc)[4], const unsigned char *p, size_t stride,
                 const unsigned char *scale, const float *const *x, int k, int in)
{
    for (; k < in; k += 16)
#pragma GCC unroll 4
        for (int j = 0; j < outs; j++) {
            pair w = load_up_to(f, p + (size_t)j * stride + (size_t)k * weight_bytes(f), in - k);
            if (f == PL_FMT_FP8)
                w = scaled(w, fp8_scale(scale[k / 32]));
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++)
                acc[r][j] =
                    multiply_add((pair){_mm256_loadu_ps(x[r] + k), _mm256_loadu_ps(x[r] + k + 8)}, w, acc[r][j]);
        }
}

IN void few_group(pl_format f, int rows, int outs, float (*y)[PL__OUTS], int at, const pl_mat *w, int o,
                  const float *const *x)
{
    size_t size = weight_bytes(f), stride = (size_t)w->in * size;
    const unsigned char *p = w->data + (size_t)o * stride, *scale = NULL;
    int lines = (int)(stride / PL__LINE), a_line = PL__LINE / (int)size;
    pair acc[2][4];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < outs; j++)
            acc[r][j] = (pair){_mm256_setzero_ps(), _mm256_setzero_ps()};
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32);
    for (int line = 0; line < lines; line++) {
        pl__ahead(p + (size_t)outs * stride, line, outs);
        few_line(f, rows, outs, acc, p + (size_t)line * PL__LINE, stride, f == PL_FMT_FP8 ? scale + line * 2 : NULL, x,
                 (size_t)line * (size_t)a_line);
    }
    few_rest(f, rows, outs, acc, p, stride, scale, x, lines * a_line, w->in);
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < outs; j++)
            y[r][at + j] = tree(acc[r][j]);
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

/* Inputs k .. end - 1 of one output with three to six rows: the accumulators are twelve registers at most, x is read
 * from the first cache as it is used. */
IN void panel_output(pl_format f, int rows, pair *acc, const unsigned char *p, const unsigned char *scale,
                     const float *const *x, int k, int end)
{
    pair a[6];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
        a[r] = acc[r];
    for (; k < end; k += 16) {
        pair w = load_up_to(f, p + (size_t)k * weight_bytes(f), end - k);
        if (f == PL_FMT_FP8)
            w = scaled(w, fp8_scale(scale[k / 32]));
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++)
            a[r] = multiply_add((pair){_mm256_loadu_ps(x[r] + k), _mm256_loadu_ps(x[r] + k + 8)}, w, a[r]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
        acc[r] = a[r];
}

/* Three to six rows: panel by panel, so that x stays in the first cache; what follows these outputs is meanwhile
 * asked for. */
IN void few_panels(pl_format f, int rows, float (*y)[PL__OUTS], const pl_mat *w, int o, int count,
                   const float *const *x)
{
    size_t size = weight_bytes(f), stride = (size_t)w->in * size;
    const unsigned char *p = w->data + (size_t)o * stride, *scale = NULL, *next = p + (size_t)count * stride;
    const float *xr[6];
    pair acc[PL__OUTS][6];
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32);
    for (int r = 0; r < rows; r++)
        xr[r] = x[r];
    memset(acc, 0, sizeof acc);
    for (int k = 0; k < w->in; k += FEW_PANEL) {
        int end = w->in - k < FEW_PANEL ? w->in : k + FEW_PANEL;
        for (int j = 0; j < count; j++, next += (size_t)(end - k) * size) {
            pl__ahead_bytes(next, (size_t)(end - k) * size);
            panel_output(f, rows, acc[j], p + (size_t)j * stride, scale, xr, k, end);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < count; j++)
            y[r][j] = tree(acc[j][r]);
}

/* Rows times outputs: as many accumulators as leave registers for x and a weight. */
IN void few(pl_format f, float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)
{
    switch (rows) {
    case 1: few_of(f, 1, 4, y, w, o, count, x); break;
    case 2: few_of(f, 2, 2, y, w, o, count, x); break;
    case 3: few_panels(f, 3, y, w, o, count, x); break;
    case 4: few_panels(f, 4, y, w, o, count, x); break;
    case 5: few_panels(f, 5, y, w, o, count, x); break;
    default: few_panels(f, 6, y, w, o, count, x); break;
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
        pair a = load16(f, p), b = load16(f, p + 16 * size);
        if (f == PL_FMT_FP8) {
            __m256 s = fp8_scale(*scale++);
            a = scaled(a, s);
            b = scaled(b, s);
        }
        store(tile, a);
        store(tile + PL__TILE * 16, b);
    }
    for (; left > 0; left -= 16, p += 16 * size, tile += PL__TILE * 16) {
        pair v = load_up_to(f, p, left);
        store(tile, f == PL_FMT_FP8 ? scaled(v, fp8_scale(*scale)) : v);
    }
}

/* One half (even or odd) of the accumulators: with both, twelve would not stay in registers. */
IN void tile_half(int rows, float *acc, const float *const *x, const float *tile, int n, bool fresh)
{
    __m256 a[3][4];
    const float *xr[3];
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++) {
        xr[r] = x[r];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            a[r][j] = fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(acc + (r * PL__TILE + j) * 16);
    }
    for (int k = 0; k < n; k += 16, tile += 64) {
        __m256 v[3];
#pragma GCC unroll 3
        for (int r = 0; r < rows; r++)
            v[r] = _mm256_loadu_ps(xr[r] + k);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m256 w = _mm256_loadu_ps(tile + j * 16);
#pragma GCC unroll 3
            for (int r = 0; r < rows; r++)
                a[r][j] = _mm256_fmadd_ps(v[r], w, a[r][j]);
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            _mm256_storeu_ps(acc + (r * PL__TILE + j) * 16, a[r][j]);
}

/* The tree l += l + 4, + 2, + 1 over the lanes of four registers at once. */
IN __m128 reduce(__m256 a, __m256 b, __m256 c, __m256 d)
{
    a = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    c = _mm256_add_ps(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    a = _mm256_add_ps(_mm256_shuffle_ps(a, c, 0x44), _mm256_shuffle_ps(a, c, 0xee));
    a = _mm256_add_ps(a, _mm256_permute_ps(a, 0xb1));
    return _mm_blend_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1), 10);
}

IN __m128 one_nan(__m128 v)
{
    return _mm_blendv_ps(v, _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000)), _mm_cmpunord_ps(v, v));
}

/* The sums of a row: i and i + 8, + 4, + 2 lie in the same half, and the halves are 0 and 1 in the end. */
IN __m128 four_sums(const float *acc)
{
    __m128 half[2];
    for (int h = 0; h < 2; h++, acc += 8)
        half[h] = reduce(_mm256_loadu_ps(acc), _mm256_loadu_ps(acc + 16), _mm256_loadu_ps(acc + 32),
                         _mm256_loadu_ps(acc + 48));
    return one_nan(_mm_add_ps(half[0], half[1]));
}

static void tile_rows(float *acc, const float *const *x, int rows, const float *tile, int n, const pl__part *part)
{
    for (int half = 0; half < 16; half += 8) {
        const float *xr[3] = {x[0] + half, x[rows > 1 ? 1 : 0] + half, x[rows > 2 ? 2 : 0] + half};
        if (rows == 3)
            tile_half(3, acc + half, xr, tile + half, n, part->first);
        else if (rows == 2)
            tile_half(2, acc + half, xr, tile + half, n, part->first);
        else
            tile_half(1, acc + half, xr, tile + half, n, part->first);
    }
    for (int r = 0; part->last && r < rows; r++)
        _mm_storeu_ps(part->y + (size_t)r * part->stride, four_sums(acc + r * PL__TILE * PL__LANES));
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

const pl__lin_c16 pl__c16_avx2 = {
    .few_rows = 6,
    .tile_rows = 3,
    .panel = 512,
    .pack = pack,
    .few = {few_bf16, few_f32, few_fp8},
    .widen = {widen_bf16, widen_f32, widen_fp8},
    .tile = tile_rows,
};
