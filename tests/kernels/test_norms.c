/* RMS norm and rotation against the reference's unit vectors. */
#include "ops_fixture.h"

static void norm_matches(pl_kernels *k)
{
    enum { ROWS = 7, DIM = 256, N = ROWS * DIM };
    pl_bf16 *x = unit_bf16("rmsnorm.x.bf16", N), *g = unit_bf16("rmsnorm.g.bf16", DIM);
    pl_bf16 *want = unit_bf16("rmsnorm.y.bf16", N), y[N];
    k->rmsnorm(k, y, x, g, ROWS, DIM, 1e-20f);
    bf_diff d = bf_compare(y, want, N);
    print_message("%s: rmsnorm: %d of %d differ, by %d at most\n", k->name, d.differ, N, d.worst);
    assert_int_equal(d.differ, 0);
    k->rmsnorm(k, x, x, g, ROWS, DIM, 1e-20f);
    assert_memory_equal(x, y, sizeof y);
    free(x), free(g), free(want);
}

static void rotation_matches(pl_kernels *k, const char *table, bool inverse)
{
    enum { ROWS = 15, DIM = 64, N = ROWS * DIM };
    char name[64];
    snprintf(name, sizeof name, "rope.%s.freq_gpu.f32", table);
    float *freq = unit_f32(name, DIM / 2);
    snprintf(name, sizeof name, "rope.%s.%s.bf16", table, inverse ? "yinv" : "y");
    pl_bf16 *want = unit_bf16(name, N), *x = unit_bf16("rope.x.bf16", N);
    int32_t *pos = unit_i32("rope.pos.i32", ROWS);
    pl_rope rope = {.dims = DIM, .freq = freq};
    k->rope(k, x, pos, ROWS, 1, DIM, &rope, inverse);
    bf_diff d = bf_compare(x, want, N);
    print_message("%s: rope %s%s: %d of %d differ, by %d at most\n", k->name, table, inverse ? " inverse" : "",
                  d.differ, N, d.worst);
    assert_int_equal(d.differ, 0);
    free(freq), free(want), free(x), free(pos);
}

static void rotations_match(pl_kernels *k)
{
    rotation_matches(k, "plain", false);
    rotation_matches(k, "plain", true);
    rotation_matches(k, "yarn", false);
    rotation_matches(k, "yarn", true);
}

/* Only the last dims of each head turn, and the inverse turns back to within bfloat16's rounding. */
static void rotation_is_partial(pl_kernels *k)
{
    enum { HEADS = 3, DIM = 96, ROPE = 32, ROWS = 4 };
    pl_bf16 x[ROWS * HEADS * DIM], y[ROWS * HEADS * DIM];
    float freq[ROPE / 2];
    int32_t pos[ROWS] = {0, 1, 77, 1000000};
    for (int i = 0; i < ROPE / 2; i++)
        freq[i] = 1.0f / (float)(i + 1);
    for (int i = 0; i < ROWS * HEADS * DIM; i++)
        x[i] = y[i] = pl_bf16_from_f32(1 + 0.01f * (float)(i % 50));
    pl_rope rope = {.dims = ROPE, .freq = freq};
    k->rope(k, y, pos, ROWS, HEADS, DIM, &rope, false);
    for (int v = 0; v < ROWS * HEADS; v++)
        assert_memory_equal(x + v * DIM, y + v * DIM, (DIM - ROPE) * sizeof *x);
    assert_memory_equal(x, y, (size_t)HEADS * DIM * sizeof *x); /* position 0 */
    assert_memory_not_equal(x + HEADS * DIM, y + HEADS * DIM, (size_t)HEADS * DIM * sizeof *x);
    k->rope(k, y, pos, ROWS, HEADS, DIM, &rope, true);
    for (int i = 0; i < ROWS * HEADS * DIM; i++)
        assert_true(fabsf(pl_bf16_to_f32(x[i]) - pl_bf16_to_f32(y[i])) <= 0.03f);
}

static void test_norm(void **state)
{
    (void)state;
    on_every_isa(norm_matches);
}
static void test_rope(void **state)
{
    (void)state;
    on_every_isa(rotations_match);
}
static void test_partial(void **state)
{
    (void)state;
    on_every_isa(rotation_is_partial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norm), cmocka_unit_test(test_rope),
                                       cmocka_unit_test(test_partial)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
