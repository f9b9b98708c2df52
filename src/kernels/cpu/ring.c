/* Rings of rows by position: window rows, pairs, taps. */
#include "kernels/cpu/cpu.h"

#include <string.h>

/* Of a span longer than the ring only the last rows stay: the first rows to store. */
static int first_kept(const pl_ring *ring, const pl_span *span)
{
    return span->rows > ring->length ? span->rows - ring->length : 0;
}

void pl__cpu_ring_put(pl_kernels *k, const pl_ring *ring, const void *x, const pl_launch *launch)
{
    (void)k;
    const unsigned char *from = x;
    for (int s = 0; s < launch->spans; s++) {
        const pl_span *span = &launch->span[s];
        for (int r = first_kept(ring, span); r < span->rows; r++)
            memcpy(pl__ring_at(ring, span->slot, span->pos + r), from + (size_t)r * ring->row_bytes, ring->row_bytes);
        from += (size_t)span->rows * ring->row_bytes;
    }
}

void pl__cpu_ring_get(pl_kernels *k, void *x, const pl_ring *ring, const pl_launch *launch)
{
    (void)k;
    unsigned char *to = x;
    for (int r = 0; r < launch->rows; r++)
        memcpy(to + (size_t)r * ring->row_bytes, pl__ring_at(ring, launch->slot[r], launch->pos[r]), ring->row_bytes);
}

typedef struct put_job {
    const pl__vec *vec;
    const pl_ring *ring;
    const pl_bf16 *kv;
    const float *a, *b;
    size_t dim;
    const pl_launch *launch;
} put_job;

/* Whether a later row of the launch takes this row's place in the ring */
static bool overwritten(const put_job *j, size_t row)
{
    size_t later = row + (size_t)j->ring->length;
    const pl_launch *l = j->launch;
    return later < (size_t)l->rows && l->slot[later] == l->slot[row];
}

static void window_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const put_job *j = arg;
    if (overwritten(j, row))
        return;
    unsigned char *to = pl__ring_at(j->ring, j->launch->slot[row], j->launch->pos[row]);
    j->vec->round_q8(NULL, to, to + j->dim, j->kv + row * j->dim, j->dim);
}

void pl__cpu_window_put(pl_kernels *k, const pl_ring *ring, const pl_bf16 *kv, int dim, const pl_launch *launch)
{
    pl__cpu *c = pl__cpu_of(k);
    put_job j = {.vec = c->vec, .ring = ring, .kv = kv, .dim = (size_t)dim, .launch = launch};
    pl__each(c, (size_t)launch->rows, (size_t)launch->rows * j.dim, window_row, &j);
}

static void pair_row(void *arg, size_t row, int thread)
{
    (void)thread;
    const put_job *j = arg;
    if (overwritten(j, row))
        return;
    unsigned char *to = pl__ring_at(j->ring, j->launch->slot[row], j->launch->pos[row]);
    size_t bytes = j->dim * sizeof(float);
    memcpy(to, j->a + row * j->dim, bytes);
    memcpy(to + bytes, j->b + row * j->dim, bytes);
}

void pl__cpu_pair_put(pl_kernels *k, const pl_ring *pairs, const float *kv, const float *gate, int dim,
                      const pl_launch *launch)
{
    pl__cpu *c = pl__cpu_of(k);
    put_job j = {.vec = c->vec, .ring = pairs, .a = kv, .b = gate, .dim = (size_t)dim, .launch = launch};
    pl__each(c, (size_t)launch->rows, (size_t)launch->rows * j.dim, pair_row, &j);
}
