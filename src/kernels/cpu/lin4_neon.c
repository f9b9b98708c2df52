/* Matrix products in order d8 with NEON: a block of 32 codes is a register of bytes, a run of eight one of its
 * dwords; the sixteen accumulators are four registers, one a block of the chunk. */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <arm_neon.h>

#define IN static inline __attribute__((always_inline))

typedef struct codes {
    int8x16_t even, odd; /* twice the values: bytes of elements 0, 2, 4, 6 (1, 3, 5, 7) of each run */
} codes;

IN codes decode(const unsigned char *p)
{
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    uint8x16_t v = vld1q_u8(p);
    int8x16_t value = vld1q_s8(twice);
    return (codes){.even = vqtbl1q_s8(value, vandq_u8(v, vdupq_n_u8(15))), .odd = vqtbl1q_s8(value, vshrq_n_u8(v, 4))};
}

/* The words of pl__wchunk.hi: elements (0, 4), (1, 5), (2, 6), (3, 7) of each run, times 512. */
IN void words(int16x8_t w[4], codes c)
{
    int16x8_t even = vreinterpretq_s16_s8(c.even), odd = vreinterpretq_s16_s8(c.odd);
    int16x8_t upper = vdupq_n_s16((int16_t)0xff00);
    w[0] = vshlq_n_s16(even, 8);
    w[1] = vshlq_n_s16(odd, 8);
    w[2] = vandq_s16(even, upper);
    w[3] = vandq_s16(odd, upper);
}

/* And back: what lo needs. */
IN codes from_words(const int16x8_t w[4])
{
    uint16x8_t even = vreinterpretq_u16_s16(w[0]), odd = vreinterpretq_u16_s16(w[1]);
    return (codes){
        .even = vreinterpretq_s8_u16(vorrq_u16(vshrq_n_u16(even, 8), vreinterpretq_u16_s16(w[2]))),
        .odd = vreinterpretq_s8_u16(vorrq_u16(vshrq_n_u16(odd, 8), vreinterpretq_u16_s16(w[3]))),
    };
}

/* The integer sums of the four runs of block b. */
IN int32x4_t dot(const pl__xchunk *x, int b, const int16x8_t w[4], bool lo)
{
    int32x4_t low = vdupq_n_s32(0), high = low;
    for (int i = 0; i < 4; i++) {
        int16x8_t v = vld1q_s16(x->hi[i][4 * b]);
        low = vmlal_s16(low, vget_low_s16(v), vget_low_s16(w[i]));
        high = vmlal_s16(high, vget_high_s16(v), vget_high_s16(w[i]));
    }
    int32x4_t t = vpaddq_s32(low, high);
    if (!lo)
        return t;
    codes c = from_words(w);
    int8x16_t even = vreinterpretq_s8_u8(vld1q_u8(x->even[4 * b]));
    int8x16_t odd = vreinterpretq_s8_u8(vld1q_u8(x->odd[4 * b]));
    int16x8_t first = vmull_s8(vget_low_s8(even), vget_low_s8(c.even));
    int16x8_t second = vmull_s8(vget_high_s8(even), vget_high_s8(c.even));
    first = vmlal_s8(first, vget_low_s8(odd), vget_low_s8(c.odd));
    second = vmlal_s8(second, vget_high_s8(odd), vget_high_s8(c.odd));
    return vaddq_s32(vshrq_n_s32(t, 5), vpaddq_s32(vpaddlq_s16(first), vpaddlq_s16(second)));
}

IN float32x4_t accumulate(float32x4_t acc, int32x4_t t, const pl__xchunk *x, int b, float32x4_t scale)
{
    return vfmaq_f32(acc, vmulq_f32(vcvtq_f32_s32(t), vld1q_f32(x->scale + 4 * b)), scale);
}

IN float32x4_t scale_of(unsigned char byte)
{
    return vdupq_n_f32(pl_f32_from_bits((uint32_t)byte << 23));
}

static float sum(const float *acc)
{
    float32x4_t four =
        vaddq_f32(vaddq_f32(vld1q_f32(acc), vld1q_f32(acc + 8)), vaddq_f32(vld1q_f32(acc + 4), vld1q_f32(acc + 12)));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* `blocks` (four, or fewer at a row's end) blocks of a chunk of one output. */
IN void row_chunk(float32x4_t acc[4], const unsigned char *code, const unsigned char *scale, const pl__xchunk *x,
                  bool lo, int blocks)
{
    for (int b = 0; b < blocks; b++) {
        int16x8_t w[4];
        words(w, decode(code + 16 * b));
        acc[b] = accumulate(acc[b], dot(x, b, w, lo), x, b, scale_of(scale[b]));
    }
}

static void row(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const pl__xchunk *const *xs,
                const unsigned char *const *los, int rows)
{
    (void)rows; /* 1 */
    const pl__xchunk *x = xs[0];
    const unsigned char *lo = los[0];
    size_t stride = (size_t)w->in / 2, scales_stride = (size_t)w->in / 32;
    int whole = w->in / PL__CHUNK, rest = w->in % PL__CHUNK / 32;
    for (int j = 0; j < count; j++) {
        const unsigned char *code = w->data + (size_t)(o + j) * stride;
        const unsigned char *scale = w->scale + (size_t)(o + j) * scales_stride;
        float32x4_t acc[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
        float a[PL__LANES];
        for (int c = 0; c < whole; c++) {
            pl__ahead(code + stride, c, 1);
            if (lo[c])
                row_chunk(acc, code + c * 64, scale + c * 4, x + c, true, 4);
            else
                row_chunk(acc, code + c * 64, scale + c * 4, x + c, false, 4);
        }
        if (rest)
            row_chunk(acc, code + whole * 64, scale + whole * 4, x + whole, lo[whole], rest);
        for (int b = 0; b < 4; b++)
            vst1q_f32(a + 4 * b, acc[b]);
        y[0][j] = sum(a);
    }
}

static void widen(pl__wchunk *tile, int j, const pl_mat *w, int o, int from, int n)
{
    const unsigned char *code = w->data + (size_t)o * ((size_t)w->in / 2) + (size_t)from * 64;
    const unsigned char *scale = w->scale + (size_t)o * ((size_t)w->in / 32) + (size_t)from * 4;
    tile += j;
    for (int c = 0; c < n; c++, tile += PL__TILE, code += 64, scale += 4) {
        int blocks = (w->in - (from + c) * PL__CHUNK) / 32;
        memset(tile, 0, sizeof *tile);
        for (int b = 0; b < 4 && b < blocks; b++) {
            int16x8_t hi[4];
            words(hi, decode(code + 16 * b));
            for (int i = 0; i < 4; i++)
                vst1q_s16(tile->hi[i][4 * b], hi[i]);
            vst1q_f32(tile->scale + 4 * b, scale_of(scale[b]));
        }
    }
}

IN void tile_chunk(float32x4_t (*a)[4], const pl__xchunk *x, const pl__wchunk *w, bool lo)
{
    for (int j = 0; j < PL__TILE; j++)
        for (int b = 0; b < 4; b++) {
            int16x8_t hi[4];
            for (int i = 0; i < 4; i++)
                hi[i] = vld1q_s16(w[j].hi[i][4 * b]);
            a[j][b] = accumulate(a[j][b], dot(x, b, hi, lo), x, b, vld1q_f32(w[j].scale + 4 * b));
        }
}

static void tile_row(float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, int rows,
                     const pl__wchunk *tile, int n, const pl__part *part)
{
    float32x4_t a[PL__TILE][4];
    for (int j = 0; j < PL__TILE; j++)
        for (int b = 0; b < 4; b++)
            a[j][b] = part->first ? vdupq_n_f32(0) : vld1q_f32(acc + j * PL__LANES + 4 * b);
    for (int c = 0; c < n;) { /* two loops: see row_group of lin4_avx2.c */
        for (; c < n && !lo[0][c]; c++)
            tile_chunk(a, x[0] + c, tile + c * PL__TILE, false);
        for (; c < n && lo[0][c]; c++)
            tile_chunk(a, x[0] + c, tile + c * PL__TILE, true);
    }
    for (int j = 0; j < PL__TILE; j++)
        for (int b = 0; b < 4; b++)
            vst1q_f32(acc + j * PL__LANES + 4 * b, a[j][b]);
    pl__finish(part, acc, rows, sum); /* rows: 1 */
}

const pl__lin_d8 pl__d8_neon = {
    .few_rows = 1,
    .tile_rows = 1,
    .pack = pl__pack_chunk,
    .few = row,
    .widen = widen,
    .tile = tile_row,
};
