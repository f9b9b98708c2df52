/* Where settings come from, their ranges, and the seed of a request that gives none. */
#include "model/sampler_kit.h"

static void the_strongest_source_wins(void **state)
{
    (void)state;
    pl_sampling s;
    assert_false(pl_sampling_resolve(&s, NULL, 0));
    assert_true(s.temperature == 1 && s.top_k == 0 && s.top_p == 1 && s.min_p == 0 && s.repetition_penalty == 1);
    assert_true(s.frequency_penalty == 0 && s.presence_penalty == 0 && s.seed == 0 && s.biases == 0);

    pl_bias bias = {3, 1};
    pl_sampling_part request = {.has = PL_HAS_TEMPERATURE | PL_HAS_SEED, .value = {.temperature = 0, .seed = 9}};
    pl_sampling_part flags = {.has = PL_HAS_TEMPERATURE | PL_HAS_TOP_P, .value = {.temperature = 0.5f, .top_p = 0.9f}};
    pl_sampling_part file = {
        .has = PL_HAS_TEMPERATURE | PL_HAS_TOP_P | PL_HAS_TOP_K | PL_HAS_REPETITION | PL_HAS_MIN_P,
        .value = {.temperature = 0.7f, .top_p = 0.8f, .top_k = 4, .repetition_penalty = 1.5f, .min_p = 0.1f}};
    const pl_sampling_part *all[] = {&request, NULL, &flags, &file};
    request.value.bias = &bias;
    request.value.biases = 1;
    assert_true(pl_sampling_resolve(&s, all, 4));
    assert_true(s.temperature == 0 && s.seed == 9 && s.top_p == 0.9f && s.top_k == 4 && s.repetition_penalty == 1.5f);
    assert_true(s.min_p == 0.1f && s.biases == 1 && s.bias == &bias);
    assert_false(pl_sampling_resolve(&s, all + 1, 3));
    assert_true(s.temperature == 0.5f && s.biases == 0);

    pl_generation g = {.has = PL_GEN_TEMPERATURE | PL_GEN_THINKING, .temperature = 0.25f, .top_p = 0.5f};
    pl_sampling_part from_file = pl_sampling_of_generation(&g);
    const pl_sampling_part *only[] = {&from_file};
    pl_sampling_resolve(&s, only, 1);
    assert_true(s.temperature == 0.25f && s.top_p == 1);
}

static void refused(pl_sampling s, const char *param)
{
    pl_error err;
    assert_fails(PL_EINVAL, &err, pl_sampling_check(&s, 100, &err));
    assert_string_equal(err.param, param);
}

static void ranges_are_checked_by_name(void **state)
{
    (void)state;
    pl_error err;
    pl_sampling s = kit_plain();
    assert_int_equal(pl_sampling_check(&s, 100, &err), PL_OK);
    const float wrong[] = {-1, NAN, INFINITY, -INFINITY, 101};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s = kit_plain();
        s.temperature = wrong[i];
        refused(s, "temperature");
        s = kit_plain();
        s.top_p = wrong[i];
        refused(s, "top_p");
        s = kit_plain();
        s.min_p = wrong[i];
        refused(s, "min_p");
        s = kit_plain();
        s.repetition_penalty = wrong[i];
        refused(s, "repetition_penalty");
        s = kit_plain();
        s.frequency_penalty = wrong[i] == -1 ? -101 : wrong[i];
        refused(s, "frequency_penalty");
        s = kit_plain();
        s.presence_penalty = wrong[i] == -1 ? -101 : wrong[i];
        refused(s, "presence_penalty");
    }
    s = kit_plain();
    s.top_p = 0;
    refused(s, "top_p");
    s = kit_plain();
    s.repetition_penalty = 0;
    refused(s, "repetition_penalty");
    s = kit_plain();
    s.top_k = -1;
    refused(s, "top_k");
    pl_bias bias[2] = {{5, -INFINITY}, {99, 100}};
    s = kit_plain();
    s.bias = bias;
    s.biases = 2;
    assert_int_equal(pl_sampling_check(&s, 100, &err), PL_OK);
    bias[1].token = 100;
    refused(s, "logit_bias");
    bias[1].token = -1;
    refused(s, "logit_bias");
    bias[1].token = 5;
    refused(s, "logit_bias");
    bias[1] = (pl_bias){6, NAN};
    refused(s, "logit_bias");
    bias[1].add = INFINITY;
    refused(s, "logit_bias");
    s.biases = PL_MAX_BIASES + 1;
    refused(s, "logit_bias");
}

static void copies_own_their_biases(void **state)
{
    (void)state;
    pl_error err;
    pl_bias bias[2] = {{1, 2}, {3, 4}};
    pl_sampling s = kit_plain(), copy;
    s.bias = bias;
    s.biases = 2;
    assert_int_equal(pl_sampling_copy(&copy, &s, &err), PL_OK);
    assert_true(copy.bias != bias && copy.biases == 2 && copy.top_p == s.top_p);
    assert_memory_equal(copy.bias, bias, sizeof bias);
    pl_sampling_free(&copy);
    assert_null(copy.bias);
    s.biases = 0;
    assert_int_equal(pl_sampling_copy(&copy, &s, &err), PL_OK);
    assert_null(copy.bias);
    pl_sampling_free(&copy);
}

static uint64_t derived(const int32_t *ids, size_t n, const char *salt)
{
    uint64_t seed = UINT64_MAX;
    pl_error err;
    assert_int_equal(pl_seed_derive(&seed, ids, n, salt, &err), PL_OK);
    assert_true(seed < UINT64_C(1) << 53);
    return seed;
}

static void a_seed_follows_from_prompt_and_salt(void **state)
{
    (void)state;
    const int32_t ids[] = {0, 5, 70000}, others[] = {0, 5, 70001};
    uint64_t seed = derived(ids, 3, NULL);
    assert_true(derived(ids, 3, "") == seed && derived(ids, 3, NULL) == seed);
    assert_true(derived(others, 3, NULL) != seed && derived(ids, 2, NULL) != seed && derived(ids, 3, "x") != seed);
    assert_true(derived(ids, 0, NULL) != derived(ids, 1, NULL));
    assert_true(derived(ids, 3, "random") != derived(ids, 3, "random"));
    /* the same everywhere: SHA-256 of "paceline seed 1", NUL, salt, NUL, ids; the upper 53 of its first 64 bits */
    assert_true(seed == 0x1a9a5a88f57e7e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_strongest_source_wins),
        cmocka_unit_test(ranges_are_checked_by_name),
        cmocka_unit_test(copies_own_their_biases),
        cmocka_unit_test(a_seed_follows_from_prompt_and_salt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
