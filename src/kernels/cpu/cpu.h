/* The CPU backend: what its files share. One file a family of operations (stream.c, norm.c, ring.c, attention.c,
 * compress.c, index.c, engram.c, route.c; matrices in lin*.c and moe.c). Loops over rows, slots and threads are written
 * once there; what must be fast inside a row is in the table pl__vec, compiled once an instruction set from
 * ops_*.inc. */
#ifndef PL_KERNELS_CPU_CPU_H
#define PL_KERNELS_CPU_CPU_H

#include "base/rowmath.h"
#include "kernels/cpu/vecops.h"
#include "kernels/kernels.h"

typedef enum pl__isa { PL__ISA_SCALAR, PL__ISA_AVX2, PL__ISA_AVX512, PL__ISA_NEON } pl__isa;

/* Extensions beyond the level, for files that dispatch further. Only ever set together with PL__ISA_AVX512. */
typedef enum pl__cpu_extra { PL__EXTRA_VNNI = 1, PL__EXTRA_VBMI = 2, PL__EXTRA_BF16 = 4 } pl__cpu_extra;

/* Bytes of scratch an operation wants: one block for the launch, and one a thread. Both are 64-byte aligned, hold
 * anything, and belong to the running operation alone (operations never overlap). */
typedef struct pl__need {
    size_t shared, thread;
} pl__need;

typedef struct pl__block pl__block;

typedef struct pl__cpu {
    pl__isa isa;
    unsigned extra; /* of pl__cpu_extra */
    pl_pool *pool;
    int threads;
    pl_kernel_limits limits;
    const pl__vec *vec;
    const pl_rowmath *math; /* exp and friends of the same instruction set */
    unsigned char *shared;  /* need.shared bytes */
    unsigned char **mine;   /* [threads], need.thread bytes each */
    pl__need need;
    pl__block *blocks; /* all memory handed out, freed by close */
} pl__cpu;

static inline pl__cpu *pl__cpu_of(pl_kernels *k)
{
    return k->self;
}

/* isa.c: what this machine, its operating system and this build can do. */
bool pl__isa_has(pl__isa isa);
unsigned pl__isa_extra(void);
const char *pl__isa_name(pl__isa isa);
/* "auto" or a name; PL_EINVAL naming the choices. */
pl_status pl__isa_pick(const char *name, pl__isa *isa, pl_error *err);

/* Sizes: SIZE_MAX where the product or sum does not fit, so that the reservation fails cleanly. */
static inline size_t pl__times(size_t a, size_t b)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}
static inline size_t pl__plus(size_t a, size_t b)
{
    size_t r;
    return __builtin_add_overflow(a, b, &r) ? SIZE_MAX : r;
}
/* Round up to whole cache lines. */
static inline size_t pl__lines(size_t bytes)
{
    return bytes > SIZE_MAX - 63 ? SIZE_MAX : (bytes + 63) & ~(size_t)63;
}

/* Run the tasks on the pool, or here in order when the whole loop (`work`, roughly elements touched) is too small to be
 * worth waking it. Results never depend on which. */
static inline void pl__each(pl__cpu *c, size_t tasks, size_t work, pl_task_fn *fn, void *arg)
{
    if (work >= 16384) {
        pl_pool_run(c->pool, tasks, fn, arg);
        return;
    }
    for (size_t i = 0; i < tasks; i++)
        fn(arg, i, 0);
}

/* Scratch planning: each raises `need` to what its operations want. */
void pl__attention_need(const pl_kernel_limits *l, int threads, pl__need *need);
void pl__index_need(const pl_kernel_limits *l, int threads, pl__need *need);
void pl__rows_need(const pl_kernel_limits *l, int threads, pl__need *need);
void pl__lin_need(const pl_kernel_limits *l, int threads, pl__need *need);
void pl__moe_need(const pl_kernel_limits *l, int threads, pl__need *need);
static inline void pl__need_raise(pl__need *need, size_t shared, size_t thread)
{
    need->shared = shared > need->shared ? shared : need->shared;
    need->thread = thread > need->thread ? thread : need->thread;
}

/* Address of the entry or key j of a slot; the page must be there. */
static inline unsigned char *pl__entry_at(const pl_entries *e, int slot, int j, size_t bytes)
{
    return e->page[(size_t)slot * (size_t)e->pages + (size_t)(j / e->per_page)] + e->entry_offset +
           (size_t)(j % e->per_page) * bytes;
}
static inline unsigned char *pl__key_at(const pl_entries *e, int slot, int j, size_t bytes)
{
    return e->page[(size_t)slot * (size_t)e->pages + (size_t)(j / e->per_page)] + e->key_offset +
           (size_t)(j % e->per_page) * bytes;
}
static inline unsigned char *pl__ring_at(const pl_ring *r, int slot, int pos)
{
    return r->data + ((size_t)slot * (size_t)r->length + (size_t)(pos % r->length)) * r->row_bytes;
}

/* Cosines and sines of a rope table at a position; the sines negated for the inverse rotation. */
void pl__angles(const pl_rowmath *math, float *cosine, float *sine, const pl_rope *rope, int32_t pos, bool inverse);

/* From the products m[(2+s)*s] of one row and r = 1 / rms of its stream to its coefficients, in place (model spec
 * 3.2). */
void pl__hc_finish(const pl_rowmath *math, float *m, float r, const float *scale, const float *base, int s, int iters,
                   float eps);

/* The operations, as kernels.h says. */
void pl__cpu_embed(pl_kernels *k, pl_bf16 *h, float *pre, const pl_mat *embed, const int32_t *token, int rows,
                   int streams);
void pl__cpu_gather(pl_kernels *k, pl_bf16 *y, const pl_mat *table, const int32_t *id, int rows);
void pl__cpu_hc_coef(pl_kernels *k, float *coef, const pl_bf16 *h, const pl_mat *fn, const float *scale,
                     const float *base, int rows, int streams, int dim, int iters, float hc_eps, float norm_eps);
void pl__cpu_collapse(pl_kernels *k, pl_bf16 *y, const pl_bf16 *h, const float *a, int a_stride, int rows, int streams,
                      int dim);
void pl__cpu_expand(pl_kernels *k, pl_bf16 *h, const pl_bf16 *y, const float *coef, int rows, int streams, int dim);
void pl__cpu_stream_mean(pl_kernels *k, pl_bf16 *y, size_t y_stride, const pl_bf16 *h, int rows, int streams, int dim);
void pl__cpu_rmsnorm(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_bf16 *g, int rows, int dim, float eps);
void pl__cpu_quant8(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim);
void pl__cpu_quant4(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim);
void pl__cpu_rope(pl_kernels *k, pl_bf16 *x, const int32_t *pos, int rows, int heads, int dim, const pl_rope *rope,
                  bool inverse);
void pl__cpu_lin(pl_kernels *k, void *y, size_t y_stride, pl_out out, const pl_bf16 *x, size_t x_stride,
                 const pl_mat *w, int rows);
void pl__cpu_lin_groups(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_mat *w, int groups, int rows);
void pl__cpu_add(pl_kernels *k, float *y, const float *a, const float *b, size_t count);
void pl__cpu_ring_put(pl_kernels *k, const pl_ring *ring, const void *x, const pl_launch *launch);
void pl__cpu_ring_get(pl_kernels *k, void *x, const pl_ring *ring, const pl_launch *launch);
void pl__cpu_window_put(pl_kernels *k, const pl_ring *ring, const pl_bf16 *kv, int dim, const pl_launch *launch);
void pl__cpu_attention(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                       const pl_entries *entries, const pl_lists *lists, const float *sink, int heads, int dim,
                       float scale, const pl_launch *launch);
void pl__cpu_block_attention(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                             const pl_bf16 *kv, const float *sink, int heads, int dim, float scale,
                             const pl_launch *launch);
void pl__cpu_pair_put(pl_kernels *k, const pl_ring *pairs, const float *kv, const float *gate, int dim,
                      const pl_launch *launch);
void pl__cpu_pair_latent(pl_kernels *k, pl_bf16 *lat, const pl_ring *pairs, int dim, const pl_groups *groups);
void pl__cpu_entry_put(pl_kernels *k, const pl_entries *entries, const pl_bf16 *lat, int dim, const pl_rope *rope,
                       const pl_groups *groups);
void pl__cpu_key_put(pl_kernels *k, const pl_entries *entries, const pl_bf16 *key, int dim, const pl_rope *rope,
                     const pl_groups *groups);
void pl__cpu_index_select(pl_kernels *k, const pl_lists *lists, int topk, const pl_bf16 *q, const pl_bf16 *w,
                          float w_scale, const pl_entries *entries, int heads, int dim, const pl_candidates *publish,
                          const pl_candidates *within, const pl_launch *launch);
void pl__cpu_engram_rows(pl_kernels *k, pl_bf16 *x, const unsigned char *codes, const unsigned char *scales, int dim,
                         const int64_t *id, int cols, int rows);
void pl__cpu_engram_gate(pl_kernels *k, pl_bf16 *h, const pl_bf16 *kv, const pl_bf16 *q_weight, const pl_bf16 *k_weight,
                         const unsigned char *skip, int rows, int streams, int dim, float eps);
void pl__cpu_route(pl_kernels *k, int32_t *id, float *weight, const float *logits, const float *bias, int rows,
                   int experts, int per_token, bool norm, float temp, float scale);
void pl__cpu_moe(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const int32_t *id, const float *weight,
                 const pl_experts *e, int rows, int dim);
void pl__cpu_argmax(pl_kernels *k, int32_t *id, const float *x, int rows, int count);

#endif
