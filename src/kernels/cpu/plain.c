/* Matrices and experts in plain C, in the order of the fast ones; only built where those are not there. */
#include "kernels/cpu/cpu.h"

#include "base/mathfn.h"

static float weight_at(const pl_mat *w, int o, int i)
{
    static const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    size_t at = (size_t)o * (size_t)w->in + (size_t)i;
    float v, f;
    switch (w->format) {
    case PL_FMT_BF16: return pl_bf16_to_f32(((const pl_bf16 *)(const void *)w->data)[at]);
    case PL_FMT_F32: memcpy(&f, w->data + at * 4, 4); return f;
    case PL_FMT_FP8: {
        unsigned c = w->data[at], m = c & 0x7f;
        v = m < 8 ? (float)m * 0x1p-9f : ldexpf(1 + (float)(m & 7) / 8, (int)(m >> 3) - 7);
        int s = w->scale[(size_t)(o / 32) * (size_t)((w->in + 31) / 32) + (size_t)(i / 32)];
        return ldexpf(c & 0x80 ? -v : v, s - 127);
    }
    case PL_FMT_FP4: {
        unsigned c = w->data[at / 2] >> 4 * (at & 1) & 15;
        return ldexpf(c & 8 ? -e2m1[c & 7] : e2m1[c & 7], w->scale[at / 32] - 127);
    }
    }
    return 0;
}

static float dot(const pl_bf16 *x, const pl_mat *w, int o)
{
    float acc[16] = {0};
    for (int i = 0; i < w->in; i++)
        acc[i % 16] = fmaf(pl_bf16_to_f32(x[i]), weight_at(w, o, i), acc[i % 16]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            acc[i] += acc[i + half];
    return acc[0];
}

__attribute__((weak)) void pl__cpu_lin(pl_kernels *k, void *y, size_t y_stride, pl_out out, const pl_bf16 *x,
                                       size_t x_stride, const pl_mat *w, int rows)
{
    (void)k;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < w->out; o++) {
            float v = dot(x + (size_t)r * x_stride, w, o);
            size_t at = (size_t)r * y_stride + (size_t)o;
            if (out == PL_OUT_F32)
                ((float *)y)[at] = v;
            else
                ((pl_bf16 *)y)[at] = pl_bf16_from_f32(v);
        }
}

__attribute__((weak)) void pl__cpu_lin_groups(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_mat *w, int groups,
                                              int rows)
{
    (void)k;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < w->out; o++) {
            int g = o / (w->out / groups);
            y[(size_t)r * (size_t)w->out + (size_t)o] =
                pl_bf16_from_f32(dot(x + ((size_t)r * (size_t)groups + (size_t)g) * (size_t)w->in, w, o));
        }
}

static void expert(const pl__cpu *c, float *sum, const pl_bf16 *x, const pl_mat *w1, const pl_mat *w2, const pl_mat *w3,
                   float weight, float limit)
{
    pl_bf16 *t = (pl_bf16 *)(void *)c->mine[0];
    for (int i = 0; i < w1->out; i++) {
        float a = pl_bf16_to_f32(pl_bf16_from_f32(dot(x, w1, i))), b = pl_bf16_to_f32(pl_bf16_from_f32(dot(x, w3, i)));
        a = a > limit ? limit : a;
        b = b > limit ? limit : b < -limit ? -limit : b;
        t[i] = pl_bf16_from_f32(weight * (pl_siluf(a) * b));
    }
    c->vec->round_q8(t, NULL, NULL, t, (size_t)w1->out);
    for (int o = 0; o < w2->out; o++)
        sum[o] += pl_bf16_to_f32(pl_bf16_from_f32(dot(t, w2, o)));
}

__attribute__((weak)) void pl__cpu_moe(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const int32_t *id,
                                       const float *weight, const pl_experts *e, int rows, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    float *sum = (float *)(void *)c->shared;
    for (int r = 0; r < rows; r++) {
        const pl_bf16 *xr = x + (size_t)r * (size_t)dim;
        memset(sum, 0, (size_t)dim * sizeof *sum);
        for (int i = 0; i < e->experts; i++)
            for (int p = 0; p < e->per_token; p++)
                if (id[r * e->per_token + p] == i)
                    expert(c, sum, xr, &e->w1[i], &e->w2[i], &e->w3[i], weight[r * e->per_token + p], e->limit);
        expert(c, sum, xr, &e->shared_w1, &e->shared_w2, &e->shared_w3, 1.0f, e->limit);
        for (int d = 0; d < dim; d++)
            y[(size_t)r * (size_t)dim + (size_t)d] = pl_bf16_from_f32(sum[d]);
    }
}

__attribute__((weak)) void pl__lin_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    (void)threads;
    pl__need_raise(need, 4 * (size_t)l->max_out, 4 * (size_t)l->max_out);
}
__attribute__((weak)) void pl__moe_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    pl__lin_need(l, threads, need);
}
