/* Compressed groups: the latent of a pair, entries and index keys (model spec 3.4). */
#include "kernels/cpu/cpu.h"

#include <string.h>

typedef struct group_job {
    pl__cpu *c;
    pl_bf16 *lat;
    const pl_ring *pairs;
    const pl_entries *entries;
    const pl_bf16 *from;
    const pl_rope *rope;
    const pl_groups *groups;
    size_t dim;
} group_job;

static void latent_group(void *arg, size_t g, int thread)
{
    (void)thread;
    const group_job *j = arg;
    int slot = j->groups->slot[g], pos = j->groups->index[g] * j->groups->ratio;
    const void *first = pl__ring_at(j->pairs, slot, pos), *second = pl__ring_at(j->pairs, slot, pos + 1);
    j->c->vec->pair_latent(j->lat + g * j->dim, first, second, j->dim);
}

void pl__cpu_pair_latent(pl_kernels *k, pl_bf16 *lat, const pl_ring *pairs, int dim, const pl_groups *groups)
{
    group_job j = {.c = pl__cpu_of(k), .lat = lat, .pairs = pairs, .groups = groups, .dim = (size_t)dim};
    pl__each(j.c, (size_t)groups->count, (size_t)groups->count * j.dim * 4, latent_group, &j);
}

/* A copy of the row, rotated at the group's first token, in this thread's scratch */
static const pl_bf16 *rotated(const group_job *j, size_t g, int thread)
{
    int pairs = j->rope->dims / 2;
    float *cosine = (float *)(void *)j->c->mine[thread], *sine = cosine + pairs;
    pl_bf16 *x = (pl_bf16 *)(void *)(sine + pairs);
    memcpy(x, j->from + g * j->dim, j->dim * sizeof *x);
    pl__angles(j->c->math, cosine, sine, j->rope, j->groups->index[g] * j->groups->ratio, false);
    j->c->vec->rotate(x + j->dim - (size_t)j->rope->dims, cosine, sine, pairs);
    return x;
}

static void entry_group(void *arg, size_t g, int thread)
{
    const group_job *j = arg;
    const pl_bf16 *x = rotated(j, g, thread);
    unsigned char *to = pl__entry_at(j->entries, j->groups->slot[g], j->groups->index[g], pl_entry_bytes((int)j->dim));
    j->c->vec->round_q4e4(NULL, to, to + j->dim / 2, x, j->dim);
}

void pl__cpu_entry_put(pl_kernels *k, const pl_entries *entries, const pl_bf16 *lat, int dim, const pl_rope *rope,
                       const pl_groups *groups)
{
    group_job j = {
        .c = pl__cpu_of(k), .entries = entries, .from = lat, .rope = rope, .groups = groups, .dim = (size_t)dim};
    pl__each(j.c, (size_t)groups->count, (size_t)groups->count * j.dim * 4, entry_group, &j);
}

static void key_group(void *arg, size_t g, int thread)
{
    const group_job *j = arg;
    const pl_bf16 *x = rotated(j, g, thread);
    unsigned char *to = pl__key_at(j->entries, j->groups->slot[g], j->groups->index[g], pl_key_bytes((int)j->dim));
    j->c->vec->round_q4e8(NULL, to, to + j->dim / 2, x, j->dim);
}

void pl__cpu_key_put(pl_kernels *k, const pl_entries *entries, const pl_bf16 *key, int dim, const pl_rope *rope,
                     const pl_groups *groups)
{
    group_job j = {
        .c = pl__cpu_of(k), .entries = entries, .from = key, .rope = rope, .groups = groups, .dim = (size_t)dim};
    pl__each(j.c, (size_t)groups->count, (size_t)groups->count * j.dim * 4, key_group, &j);
}
