/* Matrix products in order d8 with AVX-512: a chunk of 128 codes is one register of bytes, a run of eight one of its
 * dwords, so the sixteen accumulators are one register. Included by lin4_avx512.c and lin4_vnni_avx512.c, which differ
 * in how four pairs (or quads) of integers are multiplied and added: D8_PAIRS(t, a, b) int16, D8_QUADS(t, u8, s8). */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <immintrin.h>

#define IN D8_TARGET static inline __attribute__((always_inline))

typedef struct codes {
    __m512i even, odd; /* twice the values: bytes of elements 0, 2, 4, 6 (1, 3, 5, 7) of each run */
} codes;

IN codes decode(__m512i v)
{
    __asm__("" : "+v"(v)); /* one load, in a register: compilers fold it into both uses, which doubles split lines */
    const __m512i value =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    const __m512i nibble = _mm512_set1_epi8(15);
    return (codes){.even = _mm512_shuffle_epi8(value, _mm512_and_si512(v, nibble)),
                   .odd = _mm512_shuffle_epi8(value, _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble))};
}

/* The words of pl__wchunk.hi: elements (0, 4), (1, 5), (2, 6), (3, 7) of each run, times 512. */
IN void words(__m512i w[4], codes c)
{
    const __m512i upper = _mm512_set1_epi16((short)0xff00);
    w[0] = _mm512_slli_epi16(c.even, 8);
    w[1] = _mm512_slli_epi16(c.odd, 8);
    w[2] = _mm512_and_si512(c.even, upper);
    w[3] = _mm512_and_si512(c.odd, upper);
}

/* And back: what lo needs. */
IN codes from_words(const __m512i w[4])
{
    return (codes){.even = _mm512_or_si512(_mm512_srli_epi16(w[0], 8), w[2]),
                   .odd = _mm512_or_si512(_mm512_srli_epi16(w[1], 8), w[3])};
}

/* 2^(byte - 127) of four scale bytes, each for the four runs of its block. */
IN __m512 scales(uint32_t four)
{
    const __m512i spread = _mm512_set_epi32(0x03808080, 0x03808080, 0x03808080, 0x03808080, 0x02808080, 0x02808080,
                                            0x02808080, 0x02808080, 0x01808080, 0x01808080, 0x01808080, 0x01808080,
                                            (int)0x00808080, (int)0x00808080, (int)0x00808080, (int)0x00808080);
    return _mm512_castsi512_ps(_mm512_srli_epi32(_mm512_shuffle_epi8(_mm512_set1_epi32((int)four), spread), 1));
}

IN uint32_t four_bytes(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* The last chunk of a row may be short: zeros and scales of 1 then, and no read beyond. */
IN void load_chunk(__m512i *v, uint32_t *scale, const unsigned char *code, const unsigned char *s, int left)
{
    if (left >= PL__CHUNK) {
        *v = _mm512_loadu_si512(code);
        *scale = four_bytes(s);
        return;
    }
    unsigned char some[4] = {127, 127, 127, 127};
    for (int i = 0; i < left / 32; i++)
        some[i] = s[i];
    *v = _mm512_maskz_loadu_epi8(((__mmask64)1 << (left / 2)) - 1, code);
    *scale = four_bytes(some);
}

IN __m512i dot_hi(const __m512i x[4], const __m512i w[4])
{
    __m512i t = D8_PAIRS(_mm512_setzero_si512(), x[0], w[0]);
    t = D8_PAIRS(t, x[1], w[1]);
    t = D8_PAIRS(t, x[2], w[2]);
    return D8_PAIRS(t, x[3], w[3]);
}

IN __m512i add_lo(__m512i t, __m512i even, __m512i odd, codes c)
{
    t = D8_QUADS(_mm512_srai_epi32(t, 5), even, c.even);
    return D8_QUADS(t, odd, c.odd);
}

IN __m512 accumulate(__m512 acc, __m512i t, __m512 xs, __m512 ws)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(t), xs), ws, acc);
}

IN void load_hi(__m512i x[4], const pl__xchunk *c)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        x[i] = _mm512_loadu_si512(c->hi[i]);
}

enum { OUTS = 8 }; /* outputs that one row of x is multiplied with at a time */

/* Chunk c of `outs` neighbouring outputs, of which `left` inputs. */
IN void row_chunk(int outs, __m512 *acc, const unsigned char *code, size_t stride, const unsigned char *scale,
                  size_t scales_stride, const pl__xchunk *x, int c, bool lo, int left)
{
    __m512i xi[4];
    pl__ahead(code + (size_t)outs * stride, c, outs);
    code += (size_t)c * PL__LINE;
    scale += (size_t)c * 4;
    x += c;
    __m512 xs = _mm512_loadu_ps(x->scale);
    load_hi(xi, x);
#pragma GCC unroll 8
    for (int j = 0; j < outs; j++) {
        __m512i v, w[4];
        uint32_t four;
        pl__near(code + (size_t)j * stride);
        load_chunk(&v, &four, code + (size_t)j * stride, scale + (size_t)j * scales_stride, left);
        codes bytes = decode(v);
        words(w, bytes);
        __m512i t = dot_hi(xi, w);
        if (lo)
            t = add_lo(t, _mm512_loadu_si512(x->even), _mm512_loadu_si512(x->odd), bytes);
        acc[j] = accumulate(acc[j], t, xs, scales(four));
    }
}

D8_TARGET static float sum(const float *acc)
{
    __m256 a = _mm256_add_ps(_mm256_loadu_ps(acc), _mm256_loadu_ps(acc + 8));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

IN void row_group(int outs, float *y, const pl_mat *w, int o, const pl__xchunk *x, const unsigned char *lo)
{
    size_t stride = (size_t)w->in / 2, scales_stride = (size_t)w->in / 32;
    const unsigned char *code = w->data + (size_t)o * stride, *scale = w->scale + (size_t)o * scales_stride;
    int whole = w->in / PL__CHUNK;
    __m512 acc[OUTS];
#pragma GCC unroll 8
    for (int j = 0; j < outs; j++)
        acc[j] = _mm512_setzero_ps();
    /* Two loops taking turns, not a branch in one: a compiler would work out what both sides share before the
     * branch, more than the registers hold. */
    for (int c = 0; c < whole;) {
        for (; c < whole && !lo[c]; c++)
            row_chunk(outs, acc, code, stride, scale, scales_stride, x, c, false, PL__CHUNK);
        for (; c < whole && lo[c]; c++)
            row_chunk(outs, acc, code, stride, scale, scales_stride, x, c, true, PL__CHUNK);
    }
    if (w->in % PL__CHUNK)
        row_chunk(outs, acc, code, stride, scale, scales_stride, x, whole, lo[whole], w->in % PL__CHUNK);
#pragma GCC unroll 8
    for (int j = 0; j < outs; j++) {
        float a[PL__LANES];
        _mm512_storeu_ps(a, acc[j]);
        y[j] = sum(a);
    }
}

/* Chunk c of two neighbouring outputs with two to six rows. */
IN void pair_chunk(int rows, __m512 (*acc)[2], const unsigned char *code, size_t stride, const unsigned char *scale,
                   size_t scales_stride, const pl__xchunk *const *x, const unsigned char *const *lo, int c, int left)
{
    __m512i w[2][4];
    __m512 ws[2];
    pl__ahead(code + OUTS * stride, c, 2);
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        __m512i v;
        uint32_t four;
        const unsigned char *at = code + (size_t)j * stride + (size_t)c * PL__LINE;
        pl__near(at);
        load_chunk(&v, &four, at, scale + (size_t)j * scales_stride + (size_t)c * 4, left);
        words(w[j], decode(v));
        ws[j] = scales(four);
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        const pl__xchunk *xc = x[r] + c;
        __m512i xi[4];
        load_hi(xi, xc);
        __m512i t = dot_hi(xi, w[0]), u = dot_hi(xi, w[1]);
        if (lo[r][c]) {
            __m512i even = _mm512_loadu_si512(xc->even), odd = _mm512_loadu_si512(xc->odd);
            t = add_lo(t, even, odd, from_words(w[0]));
            u = add_lo(u, even, odd, from_words(w[1]));
        }
        __m512 xs = _mm512_loadu_ps(xc->scale);
        acc[r][0] = accumulate(acc[r][0], t, xs, ws[0]);
        acc[r][1] = accumulate(acc[r][1], u, xs, ws[1]);
    }
}

/* Outputs o and o + 1 (the same one twice at a block's end: then the second result is not stored). */
IN void pair_group(int rows, float (*y)[PL__OUTS], int at, int outs, const pl_mat *w, int o, const pl__xchunk *const *x,
                   const unsigned char *const *lo)
{
    size_t stride = (size_t)w->in / 2, scales_stride = (size_t)w->in / 32;
    const unsigned char *code = w->data + (size_t)o * stride, *scale = w->scale + (size_t)o * scales_stride;
    int whole = w->in / PL__CHUNK;
    const pl__xchunk *xr[6];
    const unsigned char *lr[6];
    __m512 acc[6][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        xr[r] = x[r];
        lr[r] = lo[r];
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    }
    if (outs == 1)
        stride = scales_stride = 0;
    for (int c = 0; c < whole; c++)
        pair_chunk(rows, acc, code, stride, scale, scales_stride, xr, lr, c, PL__CHUNK);
    if (w->in % PL__CHUNK)
        pair_chunk(rows, acc, code, stride, scale, scales_stride, xr, lr, whole, w->in % PL__CHUNK);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < outs; j++) {
            float a[PL__LANES];
            _mm512_storeu_ps(a, acc[r][j]);
            y[r][at + j] = sum(a);
        }
}

D8_TARGET static void few(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const pl__xchunk *const *x,
                          const unsigned char *const *lo, int rows)
{
    int j = 0;
    for (; rows == 1 && j + OUTS <= count; j += OUTS)
        row_group(OUTS, y[0] + j, w, o + j, x[0], lo[0]);
    for (; rows == 1 && j < count; j++)
        row_group(1, y[0] + j, w, o + j, x[0], lo[0]);
    for (int n; j < count; j += n) {
        n = count - j > 1 ? 2 : 1;
        switch (rows) {
        case 2: pair_group(2, y, j, n, w, o + j, x, lo); break;
        case 3: pair_group(3, y, j, n, w, o + j, x, lo); break;
        case 4: pair_group(4, y, j, n, w, o + j, x, lo); break;
        case 5: pair_group(5, y, j, n, w, o + j, x, lo); break;
        default: pair_group(6, y, j, n, w, o + j, x, lo); break;
        }
    }
}

D8_TARGET static void widen(pl__wchunk *tile, int j, const pl_mat *w, int o, int from, int n)
{
    const unsigned char *code = w->data + (size_t)o * ((size_t)w->in / 2) + (size_t)from * 64;
    const unsigned char *scale = w->scale + (size_t)o * ((size_t)w->in / 32) + (size_t)from * 4;
    tile += j;
    for (int c = 0; c < n; c++, tile += PL__TILE, code += 64, scale += 4) {
        __m512i v, hi[4];
        uint32_t four;
        load_chunk(&v, &four, code, scale, w->in - (from + c) * PL__CHUNK);
        pl__near(code);
        words(hi, decode(v));
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm512_storeu_si512(tile->hi[i], hi[i]);
        _mm512_storeu_ps(tile->scale, scales(four));
    }
}

/* Bit r: row r has a lo in chunk c. */
IN int kind_of(const unsigned char *const *lo, int rows, int c)
{
    return lo[0][c] | (rows > 1 ? lo[1][c] << 1 : 0);
}

/* Chunk c of a tile, of that kind. */
IN void tile_chunk(int rows, __m512 (*a)[PL__TILE], const pl__xchunk *const *xs, int c, const pl__wchunk *w, int kind)
{
    const pl__xchunk *x[2] = {xs[0] + c, rows > 1 ? xs[1] + c : NULL};
    w += c * PL__TILE;
    __m512i xi[2][4];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        load_hi(xi[r], x[r]);
#pragma GCC unroll 4
    for (int j = 0; j < PL__TILE; j++) {
        __m512i hi[4];
        __m512 ws = _mm512_loadu_ps(w[j].scale);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            hi[i] = _mm512_loadu_si512(w[j].hi[i]);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            __m512i t = dot_hi(xi[r], hi);
            if (kind >> r & 1)
                t = add_lo(t, _mm512_loadu_si512(x[r]->even), _mm512_loadu_si512(x[r]->odd), from_words(hi));
            a[r][j] = accumulate(a[r][j], t, _mm512_loadu_ps(x[r]->scale), ws);
        }
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

IN void tile_of(int rows, float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, const pl__wchunk *w,
                int n, const pl__part *part)
{
    __m512 a[2][PL__TILE];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < PL__TILE; j++)
            a[r][j] = part->first ? _mm512_setzero_ps() : _mm512_loadu_ps(acc + (r * PL__TILE + j) * PL__LANES);
    for (int c = 0; c < n;) { /* a loop a kind: see row_group */
        for (; c < n && kind_of(lo, rows, c) == 0; c++)
            tile_chunk(rows, a, x, c, w, 0);
        for (; c < n && kind_of(lo, rows, c) == 1; c++)
            tile_chunk(rows, a, x, c, w, 1);
        for (; c < n && rows > 1 && kind_of(lo, rows, c) == 2; c++)
            tile_chunk(rows, a, x, c, w, 2);
        for (; c < n && rows > 1 && kind_of(lo, rows, c) == 3; c++)
            tile_chunk(rows, a, x, c, w, 3);
    }
    if (part->last) {
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            _mm_storeu_ps(part->y + (size_t)r * part->stride, four_sums(a[r][0], a[r][1], a[r][2], a[r][3]));
        return;
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < PL__TILE; j++)
            _mm512_storeu_ps(acc + (r * PL__TILE + j) * PL__LANES, a[r][j]);
}

D8_TARGET static void tile_rows(float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, int rows,
                                const pl__wchunk *tile, int n, const pl__part *part)
{
    if (rows == 2)
        tile_of(2, acc, x, lo, tile, n, part);
    else
        tile_of(1, acc, x, lo, tile, n, part);
}

const pl__lin_d8 D8_TABLE = {
    .few_rows = 6,
    .tile_rows = 2,
    .pack = pl__pack_chunk_avx2,
    .few = few,
    .widen = widen,
    .tile = tile_rows,
};
