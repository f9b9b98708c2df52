/* Engram: the gated addition against the reference, table rows, skipped rows. */
#include "ops_fixture.h"

static void gate_matches(pl_kernels *k)
{
    enum { ROWS = 6, S = 4, D = 96, N = ROWS * S * D };
    pl_bf16 *h = unit_bf16("engram.h.bf16", N), *key = unit_bf16("engram.key.bf16", N);
    pl_bf16 *value = unit_bf16("engram.value.bf16", ROWS * D), *want = unit_bf16("engram.out.bf16", N);
    pl_bf16 *qw = unit_bf16("engram.qw.bf16", S * D), *kw = unit_bf16("engram.kw.bf16", S * D);
    pl_bf16 kv[ROWS * (S + 1) * D], before[N];
    for (int r = 0; r < ROWS; r++) {
        memcpy(kv + r * (S + 1) * D, key + r * S * D, S * D * sizeof *kv);
        memcpy(kv + (r * (S + 1) + S) * D, value + r * D, D * sizeof *kv);
    }
    memcpy(before, h, sizeof before);
    k->engram_gate(k, h, kv, qw, kw, NULL, ROWS, S, D, 1e-20f);
    bf_diff d = bf_compare(h, want, N);
    print_message("%s: gate: %d of %d differ, by %d at most\n", k->name, d.differ, N, d.worst);
    assert_int_equal(d.differ, 0);
    unsigned char skip[ROWS] = {0, 1, 0, 0, 1, 0};
    pl_bf16 again[N];
    memcpy(again, before, sizeof again);
    k->engram_gate(k, again, kv, qw, kw, skip, ROWS, S, D, 1e-20f);
    for (int r = 0; r < ROWS; r++)
        assert_memory_equal(again + r * S * D, (skip[r] ? before : h) + r * S * D, S * D * sizeof *h);
    free(h), free(key), free(value), free(want), free(qw), free(kw);
}

static void rows_are_read(pl_kernels *k)
{
    enum { TABLE = 40, D = 64, COLS = 3, ROWS = 4 };
    unsigned char *codes = exact(TABLE * D), *scales = exact(TABLE * D / 32);
    for (int i = 0; i < TABLE * D; i++)
        codes[i] = (unsigned char)(rng_to(2) * 128 + rng_to(127));
    for (int i = 0; i < TABLE * D / 32; i++)
        scales[i] = (unsigned char)(100 + rng_to(40));
    int64_t id[ROWS * COLS] = {0, TABLE - 1};
    for (int i = 2; i < ROWS * COLS; i++)
        id[i] = rng_to(TABLE);
    pl_bf16 x[ROWS * COLS * D];
    float *value = unit_f32("table.e4m3.f32", 256);
    k->engram_rows(k, x, codes, scales, D, id, COLS, ROWS);
    for (int i = 0; i < ROWS * COLS; i++)
        for (int c = 0; c < D; c++) {
            size_t at = (size_t)id[i] * D + (size_t)c;
            float want = ldexpf(value[codes[at]], scales[at / 32] - 127);
            assert_true(pl_bf16_to_f32(x[i * D + c]) == want);
        }
    free(codes), free(scales), free(value);
}

static void test_gate(void **state)
{
    (void)state;
    on_every_isa(gate_matches);
}
static void test_rows(void **state)
{
    (void)state;
    on_every_isa(rows_are_read);
}

int main(void)
{
    rng_start("engram gate");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gate), cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
