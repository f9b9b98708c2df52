/* The router's choice against the reference: ids exact, weights to the last places. */
#include "base/mathfn.h"
#include "ops_fixture.h"

static void choice_matches(pl_kernels *k)
{
    enum { ROWS = 10, E = 96, P = 6 };
    float *logits = unit_f32("gate.logits.f32", ROWS * E), *bias = unit_f32("gate.bias.f32", E);
    float *want = unit_f32("gate.w.f32", ROWS * P), weight[ROWS * P];
    int32_t *ids = unit_i32("gate.ids.i32", ROWS * P), id[ROWS * P];
    k->route(k, id, weight, logits, bias, ROWS, E, P, true, 1.0f, 1.5f);
    assert_memory_equal(id, ids, sizeof id);
    float worst = f32_worst(weight, want, ROWS * P);
    print_message("%s: weights: largest difference %.3g\n", k->name, (double)worst);
    assert_true(worst <= 2e-7f);
    free(logits), free(bias), free(want), free(ids);
}

static void variants(pl_kernels *k)
{
    float logits[4] = {1, 3, 2, 3}, bias[4] = {0}, weight[4];
    int32_t id[4];
    float score = sqrtf(pl_softplusf(3.0f / 2));
    k->route(k, id, weight, logits, bias, 1, 4, 1, true, 2.0f, 1.5f); /* one expert: not normalised */
    assert_int_equal(id[0], 1);
    assert_true(weight[0] == score * 1.5f);
    k->route(k, id, weight, logits, bias, 1, 4, 2, false, 2.0f, 1.5f);
    assert_true(id[0] == 1 && id[1] == 3 && weight[1] == score * 1.5f);
    bias[0] = 100; /* chosen by the bias, weighed without it */
    k->route(k, id, weight, logits, bias, 1, 4, 1, true, 2.0f, 1.0f);
    assert_int_equal(id[0], 0);
    assert_true(weight[0] == sqrtf(pl_softplusf(0.5f)));
}

/* Whatever the logits, ids are valid and distinct: they index the experts. */
static void ids_are_always_valid(pl_kernels *k)
{
    enum { E = 20, P = 8 };
    for (int round = 0; round < 200; round++) {
        float logits[E], bias[E] = {0}, weight[P];
        int32_t id[P];
        static const float odd[] = {NAN, INFINITY, -INFINITY, 0, 1};
        for (int e = 0; e < E; e++)
            logits[e] = odd[round ? rng_to(5) : 0];
        k->route(k, id, weight, logits, bias, 1, E, P, true, 1.0f, 1.5f);
        for (int i = 0; i < P; i++) {
            assert_in_range(id[i], 0, E - 1);
            for (int j = 0; j < i; j++)
                assert_true(id[i] != id[j]);
        }
    }
}

static void test_choice(void **state)
{
    (void)state;
    on_every_isa(choice_matches);
}
static void test_variants(void **state)
{
    (void)state;
    on_every_isa(variants);
    on_every_isa(ids_are_always_valid);
}

int main(void)
{
    rng_start("route");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choice), cmocka_unit_test(test_variants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
