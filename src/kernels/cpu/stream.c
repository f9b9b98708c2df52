/* Embedding rows, the residual streams and their hyper-connections (model spec 3.1 and 3.2). */
#include "kernels/cpu/cpu.h"

#include <string.h>

/* Rows of a BF16 matrix are copied as bytes: a checkpoint's tensors need not be aligned. */
static void copy_row(pl_bf16 *y, const pl_mat *table, int32_t id)
{
    size_t bytes = (size_t)table->in * sizeof *y;
    memcpy(y, table->data + (size_t)id * bytes, bytes);
}

void pl__cpu_embed(pl_kernels *k, pl_bf16 *h, float *pre, const pl_mat *embed, const int32_t *token, int rows,
                   int streams)
{
    (void)k;
    size_t dim = (size_t)embed->in;
    for (int r = 0; r < rows; r++) {
        for (int j = 0; j < streams; j++) {
            copy_row(h + ((size_t)r * (size_t)streams + (size_t)j) * dim, embed, token[r]);
            pre[(size_t)r * (size_t)streams + (size_t)j] = j == 0;
        }
    }
}

void pl__cpu_gather(pl_kernels *k, pl_bf16 *y, const pl_mat *table, const int32_t *id, int rows)
{
    (void)k;
    for (int r = 0; r < rows; r++)
        copy_row(y + (size_t)r * (size_t)table->in, table, id[r]);
}

/* ---- coefficients ----------------------------------------------------------------------------------------------- */

enum { ROW_BLOCK = 4 };

static float sum_over(const float *v, int n, int step)
{
    float sum = v[0];
    for (int i = 1; i < n; i++)
        sum += v[i * step];
    return sum;
}

static void divide(float *v, int n, int step, float by)
{
    for (int i = 0; i < n; i++)
        v[i * step] /= by;
}

static void subtract_max(float *v, int n)
{
    float top = v[0];
    for (int i = 1; i < n; i++)
        top = v[i] > top ? v[i] : top;
    for (int i = 0; i < n; i++)
        v[i] -= top;
}

/* Rows, then columns, made to sum to one, `iters` times; the first row step is a softmax. */
static void sinkhorn(const pl_rowmath *math, float *m, int s, int iters, float eps)
{
    for (int i = 0; i < s; i++)
        subtract_max(m + i * s, s);
    math->map(PL_ROW_EXP, m, m, (size_t)(s * s));
    for (int i = 0; i < s; i++) {
        divide(m + i * s, s, 1, sum_over(m + i * s, s, 1));
        for (int j = 0; j < s; j++)
            m[i * s + j] += eps;
    }
    for (int j = 0; j < s; j++)
        divide(m + j, s, s, sum_over(m + j, s, s) + eps);
    for (int t = 1; t < iters; t++) {
        for (int i = 0; i < s; i++)
            divide(m + i * s, s, 1, sum_over(m + i * s, s, 1) + eps);
        for (int j = 0; j < s; j++)
            divide(m + j, s, s, sum_over(m + j, s, s) + eps);
    }
}

void pl__hc_finish(const pl_rowmath *math, float *m, float r, const float *scale, const float *base, int s, int iters,
                   float eps)
{
    for (int i = 0; i < (2 + s) * s; i++)
        m[i] = m[i] * r * scale[i < s ? 0 : i < 2 * s ? 1 : 2] + base[i];
    math->map(PL_ROW_SIGMOID, m, m, (size_t)(2 * s));
    for (int i = 0; i < s; i++) {
        m[i] += eps;
        m[s + i] *= 2.0f;
    }
    sinkhorn(math, m + 2 * s, s, iters, eps);
}

typedef struct coef_job {
    const pl__vec *vec;
    const pl_rowmath *math;
    float *coef;
    const pl_bf16 *h;
    const float *fn, *scale, *base;
    int rows, streams, outs, out_step, row_step, iters;
    size_t width;
    float hc_eps, norm_eps;
} coef_job;

/* Products of some rows with some outputs: all rows of a few outputs when rows are few (the matrix is read once, shared
 * between the threads), else all outputs of a few rows. */
static void coef_dots(void *arg, size_t task, int thread)
{
    (void)thread;
    const coef_job *j = arg;
    int per_row = (j->outs + j->out_step - 1) / j->out_step;
    int row = (int)(task / (size_t)per_row) * j->row_step, out = (int)(task % (size_t)per_row) * j->out_step;
    int rows = j->rows - row < j->row_step ? j->rows - row : j->row_step;
    int outs = j->outs - out < j->out_step ? j->outs - out : j->out_step;
    j->vec->dots(j->coef + (size_t)row * (size_t)j->outs + out, (size_t)j->outs, j->h + (size_t)row * j->width, rows,
                 j->fn + (size_t)out * j->width, outs, j->width);
}

static void coef_finish(void *arg, size_t task, int thread)
{
    (void)thread;
    const coef_job *j = arg;
    float r = j->vec->inv_rms(j->h + task * j->width, j->width, j->norm_eps);
    pl__hc_finish(j->math, j->coef + task * (size_t)j->outs, r, j->scale, j->base, j->streams, j->iters, j->hc_eps);
}

void pl__cpu_hc_coef(pl_kernels *k, float *coef, const pl_bf16 *h, const pl_mat *fn, const float *scale,
                     const float *base, int rows, int streams, int dim, int iters, float hc_eps, float norm_eps)
{
    pl__cpu *c = pl__cpu_of(k);
    coef_job j = {.vec = c->vec,
                  .math = c->math,
                  .coef = coef,
                  .h = h,
                  .fn = (const float *)(const void *)fn->data,
                  .scale = scale,
                  .base = base,
                  .rows = rows,
                  .streams = streams,
                  .outs = (2 + streams) * streams,
                  .iters = iters,
                  .width = (size_t)streams * (size_t)dim,
                  .hc_eps = hc_eps,
                  .norm_eps = norm_eps};
    bool by_rows = rows >= ROW_BLOCK * c->threads;
    j.row_step = by_rows ? ROW_BLOCK : rows;
    j.out_step = by_rows ? j.outs : j.outs / c->threads < 1 ? 1 : j.outs / c->threads > 4 ? 4 : j.outs / c->threads;
    size_t tasks = (size_t)((rows + j.row_step - 1) / j.row_step) * (size_t)((j.outs + j.out_step - 1) / j.out_step);
    size_t work = (size_t)rows * j.width;
    pl__each(c, tasks, work * (size_t)j.outs, coef_dots, &j);
    pl__each(c, (size_t)rows, work, coef_finish, &j);
}

/* ---- mixing ----------------------------------------------------------------------------------------------------- */

typedef struct mix_job {
    const pl__vec *vec;
    pl_bf16 *y, *h;
    const pl_bf16 *from;
    const float *a;
    size_t y_stride, a_stride, width, dim;
    int streams;
} mix_job;

static void collapse_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const mix_job *j = arg;
    j->vec->collapse(j->y + row * j->dim, j->from + row * j->width, j->a + row * j->a_stride, j->streams, j->dim);
}

void pl__cpu_collapse(pl_kernels *k, pl_bf16 *y, const pl_bf16 *h, const float *a, int a_stride, int rows, int streams,
                      int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    mix_job j = {.vec = c->vec,
                 .y = y,
                 .from = h,
                 .a = a,
                 .a_stride = (size_t)a_stride,
                 .dim = (size_t)dim,
                 .width = (size_t)streams * (size_t)dim,
                 .streams = streams};
    pl__each(c, (size_t)rows, (size_t)rows * j.width, collapse_row, &j);
}

static void expand_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const mix_job *j = arg;
    const float *b = j->a + row * j->a_stride + j->streams;
    j->vec->expand(j->h + row * j->width, j->from + row * j->dim, b, b + j->streams, j->streams, j->dim);
}

void pl__cpu_expand(pl_kernels *k, pl_bf16 *h, const pl_bf16 *y, const float *coef, int rows, int streams, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    mix_job j = {.vec = c->vec,
                 .h = h,
                 .from = y,
                 .a = coef,
                 .a_stride = (size_t)((2 + streams) * streams),
                 .dim = (size_t)dim,
                 .width = (size_t)streams * (size_t)dim,
                 .streams = streams};
    pl__each(c, (size_t)rows, (size_t)rows * j.width, expand_row, &j);
}

static void mean_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const mix_job *j = arg;
    j->vec->stream_mean(j->y + row * j->y_stride, j->from + row * j->width, j->streams, j->dim);
}

void pl__cpu_stream_mean(pl_kernels *k, pl_bf16 *y, size_t y_stride, const pl_bf16 *h, int rows, int streams, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    mix_job j = {.vec = c->vec,
                 .y = y,
                 .y_stride = y_stride,
                 .from = h,
                 .dim = (size_t)dim,
                 .width = (size_t)streams * (size_t)dim,
                 .streams = streams};
    pl__each(c, (size_t)rows, (size_t)rows * j.width, mean_row, &j);
}

/* Scratch of the row operations: angles of a rotation and a rotated row, scores of a row's experts. */
void pl__rows_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    (void)threads;
    size_t dim = (size_t)(l->head_dim > l->index_dim ? l->head_dim : l->index_dim);
    pl__need_raise(need, 0, pl__times(4, (size_t)l->rope_dim) + pl__times(2, dim));
    pl__need_raise(need, 0, pl__times(9, (size_t)l->experts));
}
