/* The reference's unit vectors, and memory shaped as the operations want it. */
#ifndef PL_TESTS_KERNELS_OPS_FIXTURE_H
#define PL_TESTS_KERNELS_OPS_FIXTURE_H

#include "mat_fixture.h"

#include <string.h>

/* tests/vectors/tiny-a/unit/NAME; *count elements of `size` bytes. Free it. */
static inline void *unit(const char *name, size_t size, int *count)
{
    char path[256];
    snprintf(path, sizeof path, "tests/vectors/tiny-a/unit/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long bytes = ftell(f);
    rewind(f);
    assert_true(bytes > 0 && (size_t)bytes % size == 0);
    void *data = exact((size_t)bytes);
    assert_int_equal(fread(data, 1, (size_t)bytes, f), (size_t)bytes);
    fclose(f);
    *count = (int)((size_t)bytes / size);
    return data;
}

/* The same with the count it must have */
static inline void *unit_of(const char *name, size_t size, int count)
{
    int n;
    void *data = unit(name, size, &n);
    assert_int_equal(n, count);
    return data;
}
static inline pl_bf16 *unit_bf16(const char *name, int count)
{
    return unit_of(name, sizeof(pl_bf16), count);
}
static inline float *unit_f32(const char *name, int count)
{
    return unit_of(name, sizeof(float), count);
}
static inline int32_t *unit_i32(const char *name, int count)
{
    return unit_of(name, sizeof(int32_t), count);
}
static inline unsigned char *unit_u8(const char *name, int count)
{
    return unit_of(name, 1, count);
}

/* How many of n bfloat16 differ, and by how many units in the last place at most */
typedef struct bf_diff {
    int differ, worst;
} bf_diff;
static inline int bf_order(pl_bf16 v)
{
    return v & 0x8000 ? -(v & 0x7fff) : v;
}
static inline bf_diff bf_compare(const pl_bf16 *got, const pl_bf16 *want, int n)
{
    bf_diff d = {0};
    for (int i = 0; i < n; i++) {
        int e = abs(bf_order(got[i]) - bf_order(want[i]));
        d.differ += e > 0;
        d.worst = e > d.worst ? e : d.worst;
    }
    return d;
}

static inline float f32_worst(const float *got, const float *want, int n)
{
    float worst = 0;
    for (int i = 0; i < n; i++) {
        float e = fabsf(got[i] - want[i]);
        worst = e <= worst ? worst : e; /* a NaN stays */
    }
    return worst;
}

/* Limits wide enough for every test here */
static inline pl_kernel_limits ops_limits(void)
{
    return (pl_kernel_limits){.rows = 64,
                              .slots = 8,
                              .hidden = 512,
                              .streams = 4,
                              .heads = 16,
                              .head_dim = 128,
                              .rope_dim = 64,
                              .max_in = 2048,
                              .max_out = 2048,
                              .per_token = 8,
                              .experts = 400,
                              .inter = 128,
                              .window = 64,
                              .topk = 256,
                              .index_heads = 8,
                              .index_dim = 128,
                              .context = 4096,
                              .block = 8};
}

/* Runs `fn` on every instruction set of this machine, with one thread. */
static inline void on_every_isa(void (*fn)(pl_kernels *k))
{
    pl_kernel_limits limits = ops_limits();
    for (int i = 0; i < KIT_ISAS; i++) {
        kit t;
        if (!kit_open(&t, kit_isas[i], 1, &limits))
            continue;
        fn(&t.k);
        kit_close(&t);
    }
}

/* One launch of `rows` rows, each in its slot or all in one; free nothing, it lies in the struct. */
enum { OPS_ROWS = 64 };
typedef struct ops_launch {
    pl_launch launch;
    pl_span span[OPS_ROWS];
    int32_t slot[OPS_ROWS], pos[OPS_ROWS];
} ops_launch;
static inline void launch_start(ops_launch *l)
{
    l->launch = (pl_launch){.span = l->span, .slot = l->slot, .pos = l->pos};
}
static inline void launch_span(ops_launch *l, int slot, int pos, int rows)
{
    pl_launch *to = &l->launch;
    assert_true(to->rows + rows <= OPS_ROWS);
    l->span[to->spans++] = (pl_span){slot, pos, rows};
    for (int i = 0; i < rows; i++, to->rows++) {
        l->slot[to->rows] = slot;
        l->pos[to->rows] = pos + i;
    }
}

#endif
