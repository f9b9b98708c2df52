/* Opening and closing the CPU backend, and its memory. */
#include "kernels/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

struct pl__block {
    pl__block *next;
    void *data;
};

static const char *const table_names[] = {"cpu scalar", "cpu avx2", "cpu avx512", "cpu neon"};

static void cpu_close(pl_kernels *k)
{
    pl__cpu *c = k->self;
    if (!c)
        return;
    while (c->blocks) {
        pl__block *b = c->blocks;
        c->blocks = b->next;
        free(b->data);
        free(b);
    }
    free(c);
    memset(k, 0, sizeof *k);
}

static pl_status cpu_reserve(pl_kernels *k, size_t bytes, const char *what, void **out, pl_error *err)
{
    pl__cpu *c = k->self;
    *out = NULL;
    size_t size = pl__lines(bytes ? bytes : 1);
    pl__block *b = malloc(sizeof *b);
    void *raw = size <= PTRDIFF_MAX ? aligned_alloc(64, size) : NULL; /* beyond, sanitizers abort */
    if (!b || !raw) {
        free(b);
        free(raw);
        return pl_fail(err, PL_ENOMEM, "no memory for %s: %zu bytes", what, bytes);
    }
    memset(raw, 0, size); /* touched now: what the plan printed is resident, and no launch waits for a page */
    *b = (pl__block){.next = c->blocks, .data = raw};
    c->blocks = b;
    *out = raw;
    return PL_OK;
}

static void cpu_copy(pl_kernels *k, void *to, const void *from, size_t bytes)
{
    (void)k;
    if (bytes)
        memmove(to, from, bytes);
}

static pl_status cpu_weights(pl_kernels *k, const pl_mat *in, pl_mat *out, pl_error *err)
{
    (void)k;
    (void)err;
    *out = *in;
    return PL_OK;
}

static const pl__vec *vec_of(pl__isa isa)
{
#if defined(__x86_64__)
    if (isa == PL__ISA_AVX2)
        return &pl__vec_avx2;
    if (isa == PL__ISA_AVX512)
        return &pl__vec_avx512;
#elif defined(__aarch64__)
    if (isa == PL__ISA_NEON)
        return &pl__vec_neon;
#endif
    (void)isa;
    return &pl__vec_scalar;
}

static pl__need plan(const pl_kernel_limits *l, int threads)
{
    pl__need need = {0};
    pl__rows_need(l, threads, &need);
    pl__attention_need(l, threads, &need);
    pl__index_need(l, threads, &need);
    pl__lin_need(l, threads, &need);
    pl__moe_need(l, threads, &need);
    return need;
}

uint64_t pl_cpu_scratch_bytes(const pl_kernel_limits *limits, int threads)
{
    pl__need need = plan(limits, threads);
    return pl__plus(pl__lines(need.shared), pl__times((size_t)threads, pl__lines(need.thread)));
}

static pl_status reserve_scratch(pl_kernels *k, pl_error *err)
{
    pl__cpu *c = k->self;
    void *p;
    c->need = plan(&c->limits, c->threads);
    PL_TRY(cpu_reserve(k, c->need.shared, "the kernels' scratch", &p, err));
    c->shared = p;
    PL_TRY(cpu_reserve(k, sizeof(unsigned char *) * (size_t)c->threads, "the kernels' scratch", &p, err));
    c->mine = p;
    for (int i = 0; i < c->threads; i++) {
        PL_TRY(cpu_reserve(k, c->need.thread, "the kernels' scratch of a thread", &p, err));
        c->mine[i] = p;
    }
    return PL_OK;
}

static void fill_table(pl_kernels *k)
{
    k->close = cpu_close;
    k->reserve = cpu_reserve;
    k->upload = cpu_copy;
    k->download = cpu_copy;
    k->weights = cpu_weights;
    k->embed = pl__cpu_embed;
    k->gather = pl__cpu_gather;
    k->hc_coef = pl__cpu_hc_coef;
    k->collapse = pl__cpu_collapse;
    k->expand = pl__cpu_expand;
    k->stream_mean = pl__cpu_stream_mean;
    k->rmsnorm = pl__cpu_rmsnorm;
    k->quant8 = pl__cpu_quant8;
    k->quant4 = pl__cpu_quant4;
    k->rope = pl__cpu_rope;
    k->lin = pl__cpu_lin;
    k->lin_groups = pl__cpu_lin_groups;
    k->add = pl__cpu_add;
    k->ring_put = pl__cpu_ring_put;
    k->ring_get = pl__cpu_ring_get;
    k->window_put = pl__cpu_window_put;
    k->attention = pl__cpu_attention;
    k->block_attention = pl__cpu_block_attention;
    k->pair_put = pl__cpu_pair_put;
    k->pair_latent = pl__cpu_pair_latent;
    k->entry_put = pl__cpu_entry_put;
    k->key_put = pl__cpu_key_put;
    k->index_select = pl__cpu_index_select;
    k->engram_rows = pl__cpu_engram_rows;
    k->engram_gate = pl__cpu_engram_gate;
    k->route = pl__cpu_route;
    k->moe = pl__cpu_moe;
    k->argmax = pl__cpu_argmax;
}

pl_status pl_cpu_kernels(pl_kernels *k, const pl_kernel_limits *limits, pl_pool *pool, const char *isa, pl_error *err)
{
    memset(k, 0, sizeof *k);
    pl__isa level;
    PL_TRY(pl__isa_pick(isa ? isa : "auto", &level, err));
    pl__cpu *c = calloc(1, sizeof *c);
    if (!c)
        return pl_fail(err, PL_ENOMEM, "no memory for the CPU backend");
    c->isa = level;
    c->extra = level == PL__ISA_AVX512 ? pl__isa_extra() : 0;
    c->pool = pool;
    c->threads = pl_pool_threads(pool);
    c->limits = *limits;
    c->vec = vec_of(level);
    c->math = pl_rowmath_for(pl__isa_name(level));
    k->self = c;
    k->name = table_names[level];
    fill_table(k);
    pl_status status = reserve_scratch(k, err);
    if (status != PL_OK)
        cpu_close(k);
    return status;
}
