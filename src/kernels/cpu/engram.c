/* Engram: table rows and the gated addition (model spec 3.6). */
#include "kernels/cpu/cpu.h"

#include "base/mathfn.h"

typedef struct engram_job {
    const pl__vec *vec;
    pl_bf16 *x;
    const unsigned char *codes, *scales, *skip;
    const int64_t *id;
    const pl_bf16 *kv, *q_weight, *k_weight;
    size_t dim;
    int streams;
    float eps, root;
} engram_job;

static void table_row(void *arg, size_t i, int thread)
{
    (void)thread;
    const engram_job *j = arg;
    size_t row = (size_t)j->id[i];
    j->vec->fp8_row(j->x + i * j->dim, j->codes + row * j->dim, j->scales + row * (j->dim / 32), j->dim);
}

void pl__cpu_engram_rows(pl_kernels *k, pl_bf16 *x, const unsigned char *codes, const unsigned char *scales, int dim,
                         const int64_t *id, int cols, int rows)
{
    pl__cpu *c = pl__cpu_of(k);
    engram_job j = {.vec = c->vec, .x = x, .codes = codes, .scales = scales, .id = id, .dim = (size_t)dim};
    /* the rows lie anywhere in a huge mapped table, each lookup may wait for storage: always shared out */
    pl_pool_run(c->pool, (size_t)rows * (size_t)cols, table_row, &j);
}

static void gate_stream(void *arg, size_t task, int thread)
{
    (void)thread;
    const engram_job *j = arg;
    size_t row = task / (size_t)j->streams, s = task % (size_t)j->streams;
    if (j->skip && j->skip[row])
        return;
    const pl_bf16 *kv = j->kv + row * (size_t)(j->streams + 1) * j->dim;
    pl_bf16 *h = j->x + task * j->dim;
    float sum[3], n = (float)j->dim;
    j->vec->gate_sums(sum, h, kv + s * j->dim, j->q_weight + s * j->dim, j->k_weight + s * j->dim, j->dim);
    float rs = (1.0f / sqrtf(sum[0] / n + j->eps)) * (1.0f / sqrtf(sum[1] / n + j->eps));
    float dot = sum[2] * rs * j->root, size = fabsf(dot);
    float gate = pl_sigmoidf(copysignf(sqrtf(size > 1e-6f ? size : 1e-6f), dot));
    j->vec->gate_add(h, kv + (size_t)j->streams * j->dim, gate, j->dim);
}

void pl__cpu_engram_gate(pl_kernels *k, pl_bf16 *h, const pl_bf16 *kv, const pl_bf16 *q_weight, const pl_bf16 *k_weight,
                         const unsigned char *skip, int rows, int streams, int dim, float eps)
{
    pl__cpu *c = pl__cpu_of(k);
    engram_job j = {.vec = c->vec,
                    .x = h,
                    .kv = kv,
                    .q_weight = q_weight,
                    .k_weight = k_weight,
                    .skip = skip,
                    .streams = streams,
                    .dim = (size_t)dim,
                    .eps = eps,
                    .root = (float)(1.0 / sqrt((double)dim))};
    size_t tasks = (size_t)rows * (size_t)streams;
    pl__each(c, tasks, tasks * j.dim * 2, gate_stream, &j);
}
