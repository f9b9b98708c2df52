/* Matrix products in order c16 with NEON: the sixteen accumulators are four registers, in natural order. */
#include "kernels/cpu/lin.h"
#include "kernels/cpu/lin_ahead.h"

#include <arm_neon.h>

#define IN static inline __attribute__((always_inline))

typedef struct quad {
    float32x4_t v[4];
} quad;

IN size_t weight_bytes(pl_format f)
{
    return f == PL_FMT_F32 ? 4 : f == PL_FMT_BF16 ? 2 : 1;
}

/* Groups of sixteen weights in a cache line. */
IN int groups_a_line(pl_format f)
{
    return f == PL_FMT_F32 ? 1 : f == PL_FMT_BF16 ? 2 : 4;
}

IN void split(float32x4_t to[2], uint16x8_t v)
{
    to[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16));
    to[1] = vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(v), 16));
}

/* E4M3 bits at a bf16's place are the value times 2^-120; the block's scale sets that right. */
IN uint16x8_t fp8_words(int8x8_t codes)
{
    return vreinterpretq_u16_s16(vandq_s16(vshlq_n_s16(vmovl_s8(codes), 4), vdupq_n_s16((int16_t)0x87f0)));
}

/* Sixteen weights; FP8 still without its scale. */
IN quad load16(pl_format f, const unsigned char *p)
{
    quad q;
    if (f == PL_FMT_F32) {
        for (int i = 0; i < 4; i++)
            q.v[i] = vreinterpretq_f32_u8(vld1q_u8(p + 16 * i));
    } else if (f == PL_FMT_BF16) {
        split(q.v, vreinterpretq_u16_u8(vld1q_u8(p)));
        split(q.v + 2, vreinterpretq_u16_u8(vld1q_u8(p + 16)));
    } else {
        int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(p));
        split(q.v, fp8_words(vget_low_s8(codes)));
        split(q.v + 2, fp8_words(vget_high_s8(codes)));
    }
    return q;
}

/* The first n of them when they are fewer than sixteen, then zeros; reads no further. */
IN quad load_up_to(pl_format f, const unsigned char *p, int n)
{
    unsigned char some[64] = {0};
    if (n >= 16)
        return load16(f, p);
    memcpy(some, p, (size_t)n * weight_bytes(f));
    return load16(f, some);
}

/* 2^(byte - 127), times the 2^120 that load16 leaves out. */
IN float fp8_scale(unsigned char byte)
{
    return pl_f32_from_bits(((uint32_t)byte + 120) << 23);
}

IN quad scaled(quad q, float s)
{
    for (int i = 0; i < 4; i++)
        q.v[i] = vmulq_n_f32(q.v[i], s);
    return q;
}

IN quad load_x(const float *x)
{
    return (quad){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

IN void store(float *to, quad q)
{
    for (int i = 0; i < 4; i++)
        vst1q_f32(to + 4 * i, q.v[i]);
}

IN quad multiply_add(quad x, quad w, quad a)
{
    for (int i = 0; i < 4; i++)
        a.v[i] = vfmaq_f32(a.v[i], x.v[i], w.v[i]);
    return a;
}

static void pack(float *to, const pl_bf16 *x, int in)
{
    for (int k = 0; k < in; k += 16)
        store(to + k, load_up_to(PL_FMT_BF16, (const unsigned char *)(x + k), in - k));
}

IN float tree(quad a)
{
    float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static float sum(const float *acc)
{
    return tree(load_x(acc));
}

/* One row, four neighbouring outputs at a time. An FP8 block's scale goes to x (see pl__lin_block for when it may). */
IN void row_group(pl_format f, int outs, float *y, const pl_mat *w, int o, const float *x)
{
    size_t size = weight_bytes(f), stride = (size_t)w->in * size;
    const unsigned char *p = w->data + (size_t)o * stride, *scale = NULL;
    quad acc[4];
    for (int j = 0; j < outs; j++)
        acc[j] = (quad){{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32);
    for (int k = 0, group = 0; k < w->in; k += 16, group++) {
        quad xk = load_x(x + k);
        if (group % groups_a_line(f) == 0)
            pl__ahead(p + (size_t)outs * stride, group / groups_a_line(f), outs);
        if (f == PL_FMT_FP8)
            xk = scaled(xk, fp8_scale(scale[k / 32]));
        for (int j = 0; j < outs; j++)
            acc[j] = multiply_add(xk, load_up_to(f, p + (size_t)j * stride + (size_t)k * size, w->in - k), acc[j]);
    }
    for (int j = 0; j < outs; j++)
        y[j] = tree(acc[j]);
}

IN void few(pl_format f, float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *x)
{
    int j = 0;
    for (; j + 4 <= count; j += 4)
        row_group(f, 4, y[0] + j, w, o + j, x);
    for (; j < count; j++)
        row_group(f, 1, y[0] + j, w, o + j, x);
}

IN void widen(pl_format f, float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    size_t size = weight_bytes(f);
    const unsigned char *p = w->data + ((size_t)o * (size_t)w->in + (size_t)from) * size, *scale = NULL;
    if (f == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32) + from / 32;
    tile += (size_t)j * 16;
    for (int k = 0; k < n; k += 16, p += 16 * size, tile += PL__TILE * 16) {
        quad v = load_up_to(f, p, w->in - from - k);
        store(tile, f == PL_FMT_FP8 ? scaled(v, fp8_scale(scale[k / 32])) : v);
    }
}

/* A quarter of the accumulators (four of the sixteen): sixteen registers hold those of four rows and four outputs. */
IN void tile_quarter(int rows, float *acc, const float *const *x, const float *tile, int n, bool fresh)
{
    float32x4_t a[4][4];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < 4; j++)
            a[r][j] = fresh ? vdupq_n_f32(0) : vld1q_f32(acc + (r * PL__TILE + j) * 16);
    for (int k = 0; k < n; k += 16, tile += 64) {
        float32x4_t w[4] = {vld1q_f32(tile), vld1q_f32(tile + 16), vld1q_f32(tile + 32), vld1q_f32(tile + 48)};
        for (int r = 0; r < rows; r++) {
            float32x4_t v = vld1q_f32(x[r] + k);
            for (int j = 0; j < 4; j++)
                a[r][j] = vfmaq_f32(a[r][j], v, w[j]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < 4; j++)
            vst1q_f32(acc + (r * PL__TILE + j) * 16, a[r][j]);
}

static void tile_rows(float *acc, const float *const *x, int rows, const float *tile, int n, const pl__part *part)
{
    for (int at = 0; at < 16; at += 4) {
        const float *xr[4];
        for (int r = 0; r < 4; r++)
            xr[r] = x[r < rows ? r : 0] + at;
        switch (rows) {
        case 1: tile_quarter(1, acc + at, xr, tile + at, n, part->first); break;
        case 2: tile_quarter(2, acc + at, xr, tile + at, n, part->first); break;
        case 3: tile_quarter(3, acc + at, xr, tile + at, n, part->first); break;
        default: tile_quarter(4, acc + at, xr, tile + at, n, part->first); break;
        }
    }
    pl__finish(part, acc, rows, sum);
}

/* The functions of the table: one format each. */
#define FORMAT(name, format)                                                                                           \
    static void few_##name(float(*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)    \
    {                                                                                                                  \
        (void)rows; /* 1 */                                                                                            \
        few(format, y, w, o, count, x[0]);                                                                             \
    }                                                                                                                  \
    static void widen_##name(float *t, int j, const pl_mat *w, int o, int from, int n)                                 \
    {                                                                                                                  \
        widen(format, t, j, w, o, from, n);                                                                            \
    }
FORMAT(bf16, PL_FMT_BF16)
FORMAT(f32, PL_FMT_F32)
FORMAT(fp8, PL_FMT_FP8)

const pl__lin_c16 pl__c16_neon = {
    .few_rows = 1,
    .tile_rows = 4,
    .panel = 512,
    .pack = pack,
    .few = {few_bf16, few_f32, few_fp8},
    .widen = {widen_bf16, widen_f32, widen_fp8},
    .tile = tile_rows,
};
