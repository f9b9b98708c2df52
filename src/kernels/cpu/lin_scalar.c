/* Matrix products without vector instructions: the orders of lin.h as plain loops. */
#include "kernels/cpu/lin.h"

#include <math.h>

static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}; /* E2M1 values times 2 */

static void pack(float *to, const pl_bf16 *x, int in)
{
    int k = 0;
    for (; k < in; k++)
        to[k] = pl_bf16_to_f32(x[k]);
    for (; k % PL__LANES; k++)
        to[k] = 0;
}

/* An E4M3 code's bits as a float32 are its value times 2^-120; scale makes it whole and applies the block's. */
static float fp8_value(unsigned char code, unsigned char scale)
{
    uint32_t bits = (code & 128u) << 24 | (code & 127u) << 20;
    return pl_f32_from_bits(bits) * pl_f32_from_bits(((uint32_t)scale + 120) << 23);
}

static void widen16(float to[PL__LANES], pl_format format, const pl_mat *w, int o, int k)
{
    size_t at = (size_t)o * (size_t)w->in + (size_t)k;
    int n = w->in - k < PL__LANES ? w->in - k : PL__LANES;
    const unsigned char *scale = NULL;
    if (format == PL_FMT_FP8)
        scale = w->scale + (size_t)(o / 32) * (((size_t)w->in + 31) / 32) + (size_t)k / 32;
    for (int i = 0; i < PL__LANES; i++) {
        to[i] = 0;
        if (i >= n)
            continue;
        if (format == PL_FMT_FP8) {
            to[i] = fp8_value(w->data[at + (size_t)i], *scale);
        } else if (format == PL_FMT_F32) {
            memcpy(&to[i], w->data + (at + (size_t)i) * 4, 4);
        } else {
            pl_bf16 b;
            memcpy(&b, w->data + (at + (size_t)i) * 2, 2);
            to[i] = pl_bf16_to_f32(b);
        }
    }
}

static float sum(const float *acc)
{
    float a[PL__LANES];
    memcpy(a, acc, sizeof a);
    for (int step = PL__LANES / 2; step; step /= 2)
        for (int i = 0; i < step; i++)
            a[i] += a[i + step];
    return a[0];
}

static void row(pl_format format, float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *x)
{
    for (int j = 0; j < count; j++) {
        float a[PL__LANES] = {0}, v[PL__LANES];
        for (int k = 0; k < w->in; k += PL__LANES) {
            widen16(v, format, w, o + j, k);
            for (int i = 0; i < PL__LANES; i++)
                a[i] = fmaf(x[k + i], v[i], a[i]);
        }
        y[0][j] = sum(a);
    }
}

static void widen(pl_format format, float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    for (int k = 0; k < n; k += PL__LANES)
        widen16(tile + (size_t)(k / PL__LANES * PL__TILE + j) * PL__LANES, format, w, o, from + k);
}

static void tile_rows(float *acc, const float *const *x, int rows, const float *tile, int n, const pl__part *part)
{
    if (part->first)
        memset(acc, 0, (size_t)rows * PL__TILE * PL__LANES * sizeof *acc);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PL__TILE; j++) {
            float *a = acc + (size_t)(r * PL__TILE + j) * PL__LANES;
            for (int k = 0; k < n; k += PL__LANES)
                for (int i = 0; i < PL__LANES; i++)
                    a[i] = fmaf(x[r][k + i], tile[(k / PL__LANES * PL__TILE + j) * PL__LANES + i], a[i]);
        }
    pl__finish(part, acc, rows, sum);
}

static void widen_chunk(pl__wchunk *to, const pl_mat *w, int o, int c)
{
    const unsigned char *code = w->data + (size_t)o * (size_t)(w->in / 2) + (size_t)c * (PL__CHUNK / 2);
    const unsigned char *scale = w->scale + (size_t)o * (size_t)(w->in / 32) + (size_t)c * (PL__CHUNK / 32);
    int runs = (w->in - c * PL__CHUNK) / 8;
    memset(to, 0, sizeof *to);
    for (int l = 0; l < PL__LANES; l++) {
        to->scale[l] = 1;
        if (l >= runs)
            continue;
        to->scale[l] = pl_f32_from_bits((uint32_t)scale[l / 4] << 23);
        for (int i = 0; i < 8; i++) {
            unsigned byte = code[4 * l + i / 2];
            to->hi[i % 4][l][i / 4] = (int16_t)(256 * twice[i & 1 ? byte >> 4 : byte & 15]);
        }
    }
}

static void dot_chunk(float a[PL__LANES], const pl__xchunk *x, bool lo, const pl__wchunk *w)
{
    for (int l = 0; l < PL__LANES; l++) {
        int32_t t = 0;
        for (int i = 0; i < 4; i++)
            t += x->hi[i][l][0] * w->hi[i][l][0] + x->hi[i][l][1] * w->hi[i][l][1];
        if (lo) {
            t /= 32; /* exact: a multiple of 256 */
            for (int i = 0; i < 8; i++)
                t += (i & 1 ? x->odd : x->even)[l][i / 2] * (w->hi[i % 4][l][i / 4] / 256);
        }
        a[l] = fmaf((float)t * x->scale[l], w->scale[l], a[l]);
    }
}

static void row4(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const pl__xchunk *const *x,
                 const unsigned char *const *lo, int rows)
{
    (void)rows; /* 1 */
    for (int j = 0; j < count; j++) {
        float a[PL__LANES] = {0};
        pl__wchunk chunk;
        for (int c = 0; c < (int)pl__chunks(w->in); c++) {
            widen_chunk(&chunk, w, o + j, c);
            dot_chunk(a, x[0] + c, lo[0][c], &chunk);
        }
        y[0][j] = sum(a);
    }
}

static void widen4(pl__wchunk *tile, int j, const pl_mat *w, int o, int from, int n)
{
    for (int c = 0; c < n; c++)
        widen_chunk(tile + c * PL__TILE + j, w, o, from + c);
}

static void tile4(float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, int rows,
                  const pl__wchunk *tile, int n, const pl__part *part)
{
    if (part->first)
        memset(acc, 0, (size_t)rows * PL__TILE * PL__LANES * sizeof *acc);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < PL__TILE; j++)
            for (int c = 0; c < n; c++)
                dot_chunk(acc + (size_t)(r * PL__TILE + j) * PL__LANES, x[r] + c, lo[r][c], tile + c * PL__TILE + j);
    pl__finish(part, acc, rows, sum);
}

static void row_bf16(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)
{
    (void)rows; /* 1 */
    row(PL_FMT_BF16, y, w, o, count, x[0]);
}
static void row_f32(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)
{
    (void)rows; /* 1 */
    row(PL_FMT_F32, y, w, o, count, x[0]);
}
static void row_fp8(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x, int rows)
{
    (void)rows; /* 1 */
    row(PL_FMT_FP8, y, w, o, count, x[0]);
}
static void widen_bf16(float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    widen(PL_FMT_BF16, tile, j, w, o, from, n);
}
static void widen_f32(float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    widen(PL_FMT_F32, tile, j, w, o, from, n);
}
static void widen_fp8(float *tile, int j, const pl_mat *w, int o, int from, int n)
{
    widen(PL_FMT_FP8, tile, j, w, o, from, n);
}

const pl__lin_c16 pl__c16_scalar = {
    .few_rows = 1,
    .tile_rows = 8,
    .panel = 512,
    .pack = pack,
    .few = {row_bf16, row_f32, row_fp8},
    .widen = {widen_bf16, widen_f32, widen_fp8},
    .tile = tile_rows,
};
const pl__lin_d8 pl__d8_scalar = {
    .few_rows = 1,
    .tile_rows = 8,
    .pack = pl__pack_chunk,
    .few = row4,
    .widen = widen4,
    .tile = tile4,
};
