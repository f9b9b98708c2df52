/* Norms, activation rounding, rotation, and the few plain loops over rows. */
#include "kernels/cpu/cpu.h"

typedef struct row_job {
    const pl__vec *vec;
    pl_bf16 *y;
    const pl_bf16 *x, *g;
    size_t dim;
    float eps;
} row_job;

static void norm_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const row_job *j = arg;
    const pl_bf16 *x = j->x + row * j->dim;
    j->vec->norm(j->y + row * j->dim, x, j->g, j->vec->inv_rms(x, j->dim, j->eps), j->dim);
}

void pl__cpu_rmsnorm(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_bf16 *g, int rows, int dim, float eps)
{
    pl__cpu *c = pl__cpu_of(k);
    row_job j = {.vec = c->vec, .y = y, .x = x, .g = g, .dim = (size_t)dim, .eps = eps};
    pl__each(c, (size_t)rows, (size_t)rows * j.dim, norm_row, &j);
}

static void quant8_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const row_job *j = arg;
    j->vec->round_q8(j->y + row * j->dim, NULL, NULL, j->x + row * j->dim, j->dim);
}

void pl__cpu_quant8(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    row_job j = {.vec = c->vec, .y = y, .x = x, .dim = (size_t)dim};
    pl__each(c, (size_t)rows, (size_t)rows * j.dim, quant8_row, &j);
}

static void quant4_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const row_job *j = arg;
    j->vec->round_q4e8(j->y + row * j->dim, NULL, NULL, j->x + row * j->dim, j->dim);
}

void pl__cpu_quant4(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    row_job j = {.vec = c->vec, .y = y, .x = x, .dim = (size_t)dim};
    pl__each(c, (size_t)rows, (size_t)rows * j.dim, quant4_row, &j);
}

/* ---- rotation --------------------------------------------------------------------------------------------------- */

void pl__angles(const pl_rowmath *math, float *cosine, float *sine, const pl_rope *rope, int32_t pos, bool inverse)
{
    size_t pairs = (size_t)rope->dims / 2;
    for (size_t i = 0; i < pairs; i++)
        sine[i] = (float)pos * rope->freq[i];
    math->map(PL_ROW_COS, cosine, sine, pairs);
    math->map(PL_ROW_SIN, sine, sine, pairs);
    for (size_t i = 0; i < pairs && inverse; i++)
        sine[i] = -sine[i];
}

typedef struct rope_job {
    pl__cpu *c;
    pl_bf16 *x;
    const int32_t *pos;
    int heads;
    size_t dim;
    const pl_rope *rope;
    bool inverse;
} rope_job;

static void rope_row(void *arg, size_t row, int thread)
{
    const rope_job *j = arg;
    int pairs = j->rope->dims / 2;
    float *cosine = (float *)(void *)j->c->mine[thread], *sine = cosine + pairs;
    pl__angles(j->c->math, cosine, sine, j->rope, j->pos[row], j->inverse);
    pl_bf16 *x = j->x + row * (size_t)j->heads * j->dim + j->dim - (size_t)j->rope->dims;
    for (int h = 0; h < j->heads; h++)
        j->c->vec->rotate(x + (size_t)h * j->dim, cosine, sine, pairs);
}

void pl__cpu_rope(pl_kernels *k, pl_bf16 *x, const int32_t *pos, int rows, int heads, int dim, const pl_rope *rope,
                  bool inverse)
{
    pl__cpu *c = pl__cpu_of(k);
    rope_job j = {.c = c, .x = x, .pos = pos, .heads = heads, .dim = (size_t)dim, .rope = rope, .inverse = inverse};
    pl__each(c, (size_t)rows, (size_t)rows * (size_t)(heads + 8) * (size_t)rope->dims, rope_row, &j);
}

/* ---- plain loops ------------------------------------------------------------------------------------------------ */

enum { PIECE = 16384 };

typedef struct add_job {
    const pl__vec *vec;
    float *y;
    const float *a, *b;
    size_t count;
} add_job;

static void add_piece(void *arg, size_t task, int thread)
{
    (void)thread;
    const add_job *j = arg;
    size_t from = task * PIECE, n = j->count - from < PIECE ? j->count - from : PIECE;
    j->vec->add(j->y + from, j->a + from, j->b + from, n);
}

void pl__cpu_add(pl_kernels *k, float *y, const float *a, const float *b, size_t count)
{
    pl__cpu *c = pl__cpu_of(k);
    add_job j = {.vec = c->vec, .y = y, .a = a, .b = b, .count = count};
    pl__each(c, (count + PIECE - 1) / PIECE, count, add_piece, &j);
}

typedef struct argmax_job {
    const pl__vec *vec;
    int32_t *id;
    const float *x;
    int count;
} argmax_job;

static void argmax_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const argmax_job *j = arg;
    j->id[row] = j->vec->argmax(j->x + row * (size_t)j->count, j->count);
}

void pl__cpu_argmax(pl_kernels *k, int32_t *id, const float *x, int rows, int count)
{
    pl__cpu *c = pl__cpu_of(k);
    argmax_job j = {.vec = c->vec, .id = id, .x = x, .count = count};
    pl__each(c, (size_t)rows, (size_t)rows * (size_t)count, argmax_row, &j);
}
