/* Matrix products in order d8 with AVX2: half a chunk (32 bytes, 64 codes, eight runs) is a register of bytes, a run
 * one of its dwords; the sixteen accumulators are two registers. */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <immintrin.h>

#define IN static inline __attribute__((always_inline))

enum { OUTS = 4 }; /* outputs that one row of x is multiplied with at a time */

typedef struct codes {
    __m256i even, odd; /* twice the values: bytes of elements 0, 2, 4, 6 (1, 3, 5, 7) of each run */
} codes;

IN __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* ---- packing x
 * ------------------------------------------------------------------------------------------------------ */

typedef struct run {
    __m128i hi; /* dwords (0, 4), (1, 5), (2, 6), (3, 7) */
    __m128i lo; /* dwords: bytes 0, 2, 4, 6, then 1, 3, 5, 7 */
    int e;
    bool whole;
} run;

/* As run_integers of lin_pack.c. */
IN run pack_run(const pl_bf16 *x)
{
    const __m128i spread = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)x);
    __m128i size = _mm_and_si128(v, _mm_set1_epi16(0x7fff));
    int top = 0xffff - (_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(size, _mm_set1_epi16(-1)))) & 0xffff);
    run r = {.e = (top >> 7) - 127};
    if (top == 0 || r.e < -100 || r.e > 127)
        return (run){.hi = _mm_setzero_si128(), .lo = _mm_setzero_si128(), .whole = top == 0};
    __m256 f = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
    f = _mm256_mul_ps(f, _mm256_castsi256_ps(_mm256_set1_epi32((17 - r.e + 127) << 23)));
    __m256i n = _mm256_cvttps_epi32(f);
    r.whole = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_cvtepi32_ps(n), f, _CMP_EQ_OQ)) == 255;
    __m256i hi = _mm256_srai_epi32(n, 3), lo = _mm256_and_si256(n, _mm256_set1_epi32(7));
    r.hi = _mm_packs_epi32(_mm256_castsi256_si128(hi), _mm256_extracti128_si256(hi, 1));
    r.hi = _mm_unpacklo_epi16(r.hi, _mm_unpackhi_epi64(r.hi, r.hi));
    r.lo = _mm_packs_epi32(_mm256_castsi256_si128(lo), _mm256_extracti128_si256(lo, 1));
    r.lo = _mm_shuffle_epi8(_mm_packus_epi16(r.lo, r.lo), spread);
    return r;
}

bool pl__pack_chunk_avx2(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x)
{
    int32_t e[PL__LANES];
    bool whole = true;
    __m128i low = _mm_setzero_si128();
    for (int j = 0; j < PL__LANES; j += 4, x += 32) {
        run a = pack_run(x), b = pack_run(x + 8), c = pack_run(x + 16), d = pack_run(x + 24);
        __m128i ab = _mm_unpacklo_epi32(a.hi, b.hi), cd = _mm_unpacklo_epi32(c.hi, d.hi);
        __m128i ab2 = _mm_unpackhi_epi32(a.hi, b.hi), cd2 = _mm_unpackhi_epi32(c.hi, d.hi);
        _mm_storeu_si128((__m128i *)(void *)to->hi[0][j], _mm_unpacklo_epi64(ab, cd));
        _mm_storeu_si128((__m128i *)(void *)to->hi[1][j], _mm_unpackhi_epi64(ab, cd));
        _mm_storeu_si128((__m128i *)(void *)to->hi[2][j], _mm_unpacklo_epi64(ab2, cd2));
        _mm_storeu_si128((__m128i *)(void *)to->hi[3][j], _mm_unpackhi_epi64(ab2, cd2));
        __m128i even_odd = _mm_unpacklo_epi32(a.lo, b.lo), next = _mm_unpacklo_epi32(c.lo, d.lo);
        __m128i even = _mm_unpacklo_epi64(even_odd, next), odd = _mm_unpackhi_epi64(even_odd, next);
        _mm_storeu_si128((__m128i *)(void *)to->even[j], even);
        _mm_storeu_si128((__m128i *)(void *)to->odd[j], odd);
        low = _mm_or_si128(low, _mm_or_si128(even, odd));
        whole &= a.whole & b.whole & c.whole & d.whole;
        e[j] = a.e, e[j + 1] = b.e, e[j + 2] = c.e, e[j + 3] = d.e;
    }
    *lo = !_mm_testz_si128(low, low);
    for (int j = 0; j < PL__LANES; j += 8) {
        __m256i exponent = _mm256_add_epi32(load(e + j), _mm256_set1_epi32(127 - (*lo ? 18 : 23)));
        _mm256_storeu_ps(to->scale + j, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
    }
    return whole;
}

/* ---- one row
 * -------------------------------------------------------------------------------------------------------- */

IN codes decode(__m256i v)
{
    __asm__("" : "+x"(v)); /* one load, in a register: compilers fold it into both uses */
    const __m256i value = _mm256_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12, 0, 1, 2, 3, 4, 6, 8,
                                           12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m256i nibble = _mm256_set1_epi8(15);
    return (codes){.even = _mm256_shuffle_epi8(value, _mm256_and_si256(v, nibble)),
                   .odd = _mm256_shuffle_epi8(value, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble))};
}

/* The words of pl__wchunk.hi: elements (0, 4), (1, 5), (2, 6), (3, 7) of each run, times 512. */
IN void words(__m256i w[4], codes c)
{
    const __m256i upper = _mm256_set1_epi16((short)0xff00);
    w[0] = _mm256_slli_epi16(c.even, 8);
    w[1] = _mm256_slli_epi16(c.odd, 8);
    w[2] = _mm256_and_si256(c.even, upper);
    w[3] = _mm256_and_si256(c.odd, upper);
}

/* And back: what lo needs. */
IN codes from_words(const __m256i w[4])
{
    return (codes){.even = _mm256_or_si256(_mm256_srli_epi16(w[0], 8), w[2]),
                   .odd = _mm256_or_si256(_mm256_srli_epi16(w[1], 8), w[3])};
}

/* 2^(byte - 127) of a chunk's scale bytes 2 * half and 2 * half + 1, each for the four runs of its block. */
IN __m256 scales(const unsigned char *four, int half)
{
    int32_t v;
    memcpy(&v, four, 4);
    const __m256i first = _mm256_setr_epi32((int)0x00808080, (int)0x00808080, (int)0x00808080, (int)0x00808080,
                                            0x01808080, 0x01808080, 0x01808080, 0x01808080);
    const __m256i second = _mm256_setr_epi32(0x02808080, 0x02808080, 0x02808080, 0x02808080, 0x03808080, 0x03808080,
                                             0x03808080, 0x03808080);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(v), half ? second : first);
    return _mm256_castsi256_ps(_mm256_srli_epi32(bytes, 1));
}

IN __m256i dot_hi(const pl__xchunk *x, int half, const __m256i w[4])
{
    __m256i t = _mm256_madd_epi16(load(x->hi[0][half]), w[0]), u = _mm256_madd_epi16(load(x->hi[1][half]), w[1]);
    t = _mm256_add_epi32(t, _mm256_madd_epi16(load(x->hi[2][half]), w[2]));
    u = _mm256_add_epi32(u, _mm256_madd_epi16(load(x->hi[3][half]), w[3]));
    return _mm256_add_epi32(t, u);
}

/* Sums of four stay below 4 * 7 * 12, far from the saturation of maddubs. */
IN __m256i add_lo(__m256i t, const pl__xchunk *x, int half, codes c)
{
    __m256i lo = _mm256_add_epi16(_mm256_maddubs_epi16(load(x->even[half]), c.even),
                                  _mm256_maddubs_epi16(load(x->odd[half]), c.odd));
    return _mm256_add_epi32(_mm256_srai_epi32(t, 5), _mm256_madd_epi16(lo, _mm256_set1_epi16(1)));
}

IN __m256 accumulate(__m256 acc, __m256i t, const pl__xchunk *x, int half, __m256 ws)
{
    __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(t), _mm256_loadu_ps(x->scale + half));
    return _mm256_fmadd_ps(value, ws, acc);
}

/* Chunk c of `outs` neighbouring outputs. */
IN void row_chunk(int outs, __m256 (*acc)[2], const unsigned char *code, size_t stride, const unsigned char *scale,
                  size_t scales_stride, const pl__xchunk *x, int c, bool lo)
{
    pl__ahead(code + (size_t)outs * stride, c, outs);
    code += (size_t)c * PL__LINE;
    scale += (size_t)c * 4;
    x += c;
#pragma GCC unroll 4
    for (int j = 0; j < outs; j++, code += stride, scale += scales_stride) {
        pl__near(code);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            codes v = decode(load(code + 32 * h));
            __m256i w[4];
            words(w, v);
            __m256i t = dot_hi(x, 8 * h, w);
            if (lo)
                t = add_lo(t, x, 8 * h, v);
            acc[j][h] = accumulate(acc[j][h], t, x, 8 * h, scales(scale, h));
        }
    }
}

/* The codes and scales of a row's short last chunk, with zeros and scales of 1 behind them. */
static void copy_tail(unsigned char code[64], unsigned char scale[4], const pl_mat *w, int o)
{
    int from = w->in / PL__CHUNK * PL__CHUNK, left = w->in - from;
    memset(code, 0, 64);
    memset(scale, 127, 4);
    memcpy(code, w->data + (size_t)o * ((size_t)w->in / 2) + from / 2, (size_t)left / 2);
    memcpy(scale, w->scale + (size_t)o * ((size_t)w->in / 32) + from / 32, (size_t)left / 32);
}

IN float tree(__m256 a, __m256 b)
{
    a = _mm256_add_ps(a, b);
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

IN void row_group(int outs, float *y, const pl_mat *w, int o, const pl__xchunk *x, const unsigned char *lo)
{
    size_t stride = (size_t)w->in / 2, scales_stride = (size_t)w->in / 32;
    const unsigned char *code = w->data + (size_t)o * stride, *scale = w->scale + (size_t)o * scales_stride;
    int whole = w->in / PL__CHUNK;
    __m256 acc[OUTS][2];
#pragma GCC unroll 4
    for (int j = 0; j < outs; j++)
        acc[j][0] = acc[j][1] = _mm256_setzero_ps();
    /* Two loops taking turns, not a branch in one: a compiler would work out what both sides share before the
     * branch, more than the registers hold. */
    for (int c = 0; c < whole;) {
        for (; c < whole && !lo[c]; c++)
            row_chunk(outs, acc, code, stride, scale, scales_stride, x, c, false);
        for (; c < whole && lo[c]; c++)
            row_chunk(outs, acc, code, stride, scale, scales_stride, x, c, true);
    }
    if (w->in % PL__CHUNK) {
        unsigned char tail[64], tail_scale[4];
        for (int j = 0; j < outs; j++) {
            copy_tail(tail, tail_scale, w, o + j);
            row_chunk(1, acc + j, tail, 0, tail_scale, 0, x + whole, 0, lo[whole]);
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < outs; j++)
        y[j] = tree(acc[j][0], acc[j][1]);
}

/* Chunk c of one output with two or three rows. */
IN void rows_chunk(int rows, __m256 (*acc)[2], const unsigned char *code, const unsigned char *scale,
                   const pl__xchunk *const *x, const unsigned char *const *lo, int c)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i w[4];
        words(w, decode(load(code + 32 * h)));
        __m256 ws = scales(scale, h);
#pragma GCC unroll 3
        for (int r = 0; r < rows; r++) {
            __m256i t = dot_hi(x[r] + c, 8 * h, w);
            if (lo[r][c])
                t = add_lo(t, x[r] + c, 8 * h, from_words(w));
            acc[r][h] = accumulate(acc[r][h], t, x[r] + c, 8 * h, ws);
        }
    }
}

IN void rows_output(int rows, float (*y)[PL__OUTS], int at, const pl_mat *w, int o, const pl__xchunk *const *x,
                    const unsigned char *const *lo)
{
    size_t stride = (size_t)w->in / 2;
    const unsigned char *code = w->data + (size_t)o * stride, *scale = w->scale + (size_t)o * ((size_t)w->in / 32);
    const unsigned char *next = code + OUTS * stride;
    int whole = w->in / PL__CHUNK;
    __m256 acc[3][2];
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
        acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (int c = 0; c < whole; c++) {
        pl__ahead(next, c, 1);
        rows_chunk(rows, acc, code + (size_t)c * PL__LINE, scale + (size_t)c * 4, x, lo, c);
    }
    if (w->in % PL__CHUNK) {
        unsigned char tail[64], tail_scale[4];
        copy_tail(tail, tail_scale, w, o);
        rows_chunk(rows, acc, tail, tail_scale, x, lo, whole);
    }
#pragma GCC unroll 3
    for (int r = 0; r < rows; r++)
        y[r][at] = tree(acc[r][0], acc[r][1]);
}

static void few(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const pl__xchunk *const *x,
                const unsigned char *const *lo, int rows)
{
    int j = 0;
    for (; rows == 1 && j + OUTS <= count; j += OUTS)
        row_group(OUTS, y[0] + j, w, o + j, x[0], lo[0]);
    for (; j < count; j++)
        if (rows == 1)
            row_group(1, y[0] + j, w, o + j, x[0], lo[0]);
        else if (rows == 2)
            rows_output(2, y, j, w, o + j, x, lo);
        else
            rows_output(3, y, j, w, o + j, x, lo);
}

IN void widen_chunk(pl__wchunk *to, const unsigned char *code, const unsigned char *scale)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i w[4];
        words(w, decode(load(code + 32 * h)));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm256_storeu_si256((__m256i *)(void *)to->hi[i][8 * h], w[i]);
        _mm256_storeu_ps(to->scale + 8 * h, scales(scale, h));
    }
}

static void widen(pl__wchunk *tile, int j, const pl_mat *w, int o, int from, int n)
{
    const unsigned char *code = w->data + (size_t)o * ((size_t)w->in / 2) + (size_t)from * 64;
    const unsigned char *scale = w->scale + (size_t)o * ((size_t)w->in / 32) + (size_t)from * 4;
    int whole = w->in / PL__CHUNK - from < n ? w->in / PL__CHUNK - from : n;
    tile += j;
    for (int c = 0; c < whole; c++, tile += PL__TILE, code += 64, scale += 4) {
        pl__near(code);
        widen_chunk(tile, code, scale);
    }
    if (whole < n) {
        unsigned char tail[64], tail_scale[4];
        copy_tail(tail, tail_scale, w, o);
        widen_chunk(tile, tail, tail_scale);
    }
}

/* ---- several rows
 * ---------------------------------------------------------------------------------------------------- */

/* One row against the four outputs of a tile: the x of half a chunk stays in registers. */
IN void tile_chunk(__m256 (*a)[2], const pl__xchunk *x, const pl__wchunk *w, bool lo)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256i x0 = load(x->hi[0][8 * h]), x1 = load(x->hi[1][8 * h]);
        __m256i x2 = load(x->hi[2][8 * h]), x3 = load(x->hi[3][8 * h]);
#pragma GCC unroll 4
        for (int j = 0; j < PL__TILE; j++) {
            __m256i hi[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                hi[i] = load(w[j].hi[i][8 * h]);
            __m256i t = _mm256_add_epi32(_mm256_add_epi32(_mm256_madd_epi16(x0, hi[0]), _mm256_madd_epi16(x1, hi[1])),
                                         _mm256_add_epi32(_mm256_madd_epi16(x2, hi[2]), _mm256_madd_epi16(x3, hi[3])));
            if (lo)
                t = add_lo(t, x, 8 * h, from_words(hi));
            a[j][h] = accumulate(a[j][h], t, x, 8 * h, _mm256_loadu_ps(w[j].scale + 8 * h));
        }
    }
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

static void tile_row(float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, int rows,
                     const pl__wchunk *tile, int n, const pl__part *part)
{
    (void)rows; /* always 1 */
    __m256 a[PL__TILE][2];
#pragma GCC unroll 4
    for (int j = 0; j < PL__TILE; j++) {
        a[j][0] = part->first ? _mm256_setzero_ps() : _mm256_loadu_ps(acc + j * PL__LANES);
        a[j][1] = part->first ? _mm256_setzero_ps() : _mm256_loadu_ps(acc + j * PL__LANES + 8);
    }
    for (int c = 0; c < n;) { /* two loops: see row_group */
        for (; c < n && !lo[0][c]; c++)
            tile_chunk(a, x[0] + c, tile + c * PL__TILE, false);
        for (; c < n && lo[0][c]; c++)
            tile_chunk(a, x[0] + c, tile + c * PL__TILE, true);
    }
    if (part->last) {
#pragma GCC unroll 4
        for (int j = 0; j < PL__TILE; j++)
            a[j][0] = _mm256_add_ps(a[j][0], a[j][1]);
        _mm_storeu_ps(part->y, one_nan(reduce(a[0][0], a[1][0], a[2][0], a[3][0])));
        return;
    }
#pragma GCC unroll 4
    for (int j = 0; j < PL__TILE; j++) {
        _mm256_storeu_ps(acc + j * PL__LANES, a[j][0]);
        _mm256_storeu_ps(acc + j * PL__LANES + 8, a[j][1]);
    }
}

const pl__lin_d8 pl__d8_avx2 = {
    .few_rows = 3,
    .tile_rows = 1,
    .pack = pl__pack_chunk_avx2,
    .few = few,
    .widen = widen,
    .tile = tile_row,
};
