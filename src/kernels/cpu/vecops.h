/* The inner parts of the operations: one table an instruction set, all made from the same source (ops_*_body.h over v16
 * of vec.h) and equal in every bit. A function works on one row, or on a tile of one row's data; it knows no
 * threads. */
#ifndef PL_KERNELS_CPU_VECOPS_H
#define PL_KERNELS_CPU_VECOPS_H

#include "base/bf16.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of index queries ready for pl__vec.index_tile: integers are twice the E2M1 values. Blocks are 32 elements. */
typedef struct pl__index_query {
    const int8_t
        *code; /* [heads][blocks][8][4]: quad 2i holds elements 8i, +2, +4, +6 of the block, quad 2i+1 the odd */
    const int32_t *bias; /* [heads][blocks]: 12 times the sum of the block's integers */
    const float *scale;  /* [heads][blocks]: a quarter of the block's scale */
    const float *weight; /* [heads] */
    int heads, blocks;
} pl__index_query;

/* Sixteen index keys, transposed: lane l belongs to key l. */
enum { PL__KEY_LANES = 16 };
typedef struct pl__key_tile {
    const unsigned char *code; /* [blocks][8][16][4]: quads as above, twice the E2M1 value + 12 */
    const float *scale;        /* [blocks][16] */
} pl__key_tile;

typedef struct pl__vec {
    /* y = x, n elements */
    void (*widen)(float *y, const pl_bf16 *x, size_t n);
    /* y = bf(x), n elements */
    void (*narrow)(pl_bf16 *y, const float *x, size_t n);
    /* 1 / sqrt(mean(x^2) + eps) */
    float (*inv_rms)(const pl_bf16 *x, size_t n, float eps);
    /* y = bf(g * (x * r)) */
    void (*norm)(pl_bf16 *y, const pl_bf16 *x, const pl_bf16 *g, float r, size_t n);
    /* y = bf(sum_j a[j] h[j]) over `streams` rows of h */
    void (*collapse)(pl_bf16 *y, const pl_bf16 *h, const float *a, int streams, size_t dim);
    /* h[k] = bf(b[k] y + sum_i m[i][k] h[i]) for elements from .. from + n - 1 of each stream */
    void (*expand)(pl_bf16 *h, const pl_bf16 *y, const float *b, const float *m, int streams, size_t dim);
    void (*stream_mean)(pl_bf16 *y, const pl_bf16 *h, int streams, size_t dim);
    /* y[row * y_stride + o] = x[row] . w[o], order c16 */
    void (*dots)(float *y, size_t y_stride, const pl_bf16 *x, int rows, const float *w, int outs, size_t n);
    void (*add)(float *y, const float *a, const float *b, size_t n);
    /* the lower index of the largest; 0 when none is above -inf */
    int (*argmax)(const float *x, int n);

    /* sum[0..2] = h.h, key.key, sum of h * (qw * kw) * key, order c16 */
    void (*gate_sums)(float sum[3], const pl_bf16 *h, const pl_bf16 *key, const pl_bf16 *qw, const pl_bf16 *kw,
                      size_t n);
    /* h = bf(h + gate * value) */
    void (*gate_add)(pl_bf16 *h, const pl_bf16 *value, float gate, size_t n);
    /* y = bf(e4m3 * 2^(scale - 127)), scale a byte per 32 */
    void (*fp8_row)(pl_bf16 *y, const unsigned char *code, const unsigned char *scale, size_t n);

    /* Roundings of model spec 3.0 in groups of 32 (q8, q4e8) or 16 (q4e4); n a multiple of the group. Each writes what
     * is asked for: y the values, code and scale the packed form of kernels.h; y or (code and scale) may be NULL. */
    void (*round_q8)(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n);
    void (*round_q4e8)(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n);
    void (*round_q4e4)(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n);
    /* Packed rows to floats */
    void (*unpack_window)(float *y, const unsigned char *row, size_t dim);
    void (*unpack_entry)(float *y, const unsigned char *row, size_t dim);
    /* (a, b) -> bf(a c - b s), bf(a s + b c) for adjacent pairs */
    void (*rotate)(pl_bf16 *x, const float *cosine, const float *sine, int pairs);

    /* lat = bf(softmax of the two gates . kv), a token's row is kv then gate */
    void (*pair_latent)(pl_bf16 *lat, const float *first, const float *second, size_t dim);

    /* s[h * stride + j] = (q[h] . k[j]) * scale, order c16; dim % 16 == 0 */
    void (*scores)(float *s, size_t stride, const float *q, int heads, const float *k, int n, int dim, float scale);
    /* s -> bf(exp(s - max)) in place, den[h] = sum of the unrounded + exp(sink[h] - max) */
    void (*softmax)(float *s, size_t stride, int heads, int n, const float *sink, float *den);
    /* o[h][c] = bf(sum_j p[h * stride + j] v[j][c] / den[h]), j ascending */
    void (*values)(pl_bf16 *o, const float *p, size_t stride, const float *den, int heads, const float *v, int n,
                   int dim);

    /* Transpose sixteen packed keys (blocks of 32) into the arrays of a pl__key_tile */
    void (*key_tile)(unsigned char *code, float *scale, const unsigned char *const key[PL__KEY_LANES], int blocks);
    /* score[16] of the tile's keys, model spec 3.5; block sums are exact, added in block order */
    void (*index_tile)(pl_bf16 *score, const pl__index_query *q, const pl__key_tile *tile);
} pl__vec;

extern const pl__vec pl__vec_scalar;
#if defined(__x86_64__)
extern const pl__vec pl__vec_avx2, pl__vec_avx512;
#elif defined(__aarch64__)
extern const pl__vec pl__vec_neon;
#endif

#endif
