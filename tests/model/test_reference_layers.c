/* Each layer alone, from the reference's own input, against the reference's output: the test without a noise floor. */
#include "model/support.h"

#include <math.h>

enum { L = 10, T = 37, S = 4, D = 128 };

/* Positions where a router or index choice hangs by a hair may differ: margins below this. */
static const float HAIR = 1e-3f;

static void note_hairs(bool *hair, const char *path, int per_layer, int layer)
{
    float *m = load_f32(path, (size_t)per_layer * T);
    for (int t = 0; t < T; t++)
        if (fabsf(m[(per_layer == 1 ? 0 : layer) * T + t]) < HAIR)
            hair[t] = true;
    free(m);
}

static void check_layer(int layer, const pl_bf16 *h, const float *pre, const pl_bf16 *got_h, const float *got_pre)
{
    const char *lists[L] = {
        [2] = "L2", [3] = "L2", [4] = "L4", [5] = "L4", [6] = "L6", [7] = "L6", [8] = "L8", [9] = "L8"};
    bool hair[T] = {false};
    note_hairs(hair, TINY "vectors/dbg37.route_margin.f32", L, layer);
    if (lists[layer]) {
        char path[128];
        snprintf(path, sizeof path, TINY "vectors/dbg37.topk_margin.%s.f32", lists[layer]);
        note_hairs(hair, path, 1, 0);
    }
    size_t unequal = 0, all = 0;
    double worst = 0, worst_pre = 0;
    for (int t = 0; t < T; t++) {
        if (hair[t])
            continue;
        size_t at = (size_t)layer * T + (size_t)t;
        for (size_t i = 0; i < S * D; i++, all++) {
            double e =
                fabs((double)pl_bf16_to_f32(got_h[(size_t)t * S * D + i]) - (double)pl_bf16_to_f32(h[at * S * D + i]));
            unequal += e != 0;
            worst = e <= worst ? worst : e;
        }
        for (size_t i = 0; i < S; i++) {
            double e = fabs((double)got_pre[(size_t)t * S + i] - (double)pre[at * S + i]);
            worst_pre = e <= worst_pre ? worst_pre : e;
        }
    }
    print_message("layer %d: %zu of %zu elements differ (%.2f %%), largest %.4f, pre %.2e\n", layer, unequal, all,
                  100.0 * (double)unequal / (double)all, worst, worst_pre);
    assert_true(all > T * S * D / 2);
    assert_true((double)unequal < 0.02 * (double)all);
    assert_true(worst <= 0.06);
    assert_true(worst_pre <= 2e-3);
}

static void run_all(int piece)
{
    fixture f;
    open_fixture(&f, TINY "model", (pl_model_settings){.threads = 1, .context = 64, .piece = piece});
    int count;
    int32_t *tokens = load_prompt("p3", &count);
    assert_int_equal(count, T);
    pl_bf16 *h = load_bf16(TINY "vectors/dbg37.h.bf16", (size_t)L * T * S * D);
    float *pre = load_f32(TINY "vectors/dbg37.pre.f32", (size_t)L * T * S);
    pl_bf16 *got_h = malloc(sizeof *got_h * T * S * D);
    float *got_pre = malloc(sizeof *got_pre * T * S);
    for (int layer = 0; layer < L; layer++) {
        pl_error err;
        if (pl_model_layer(f.model, layer, tokens, T, h, pre, got_h, got_pre, &err) != PL_OK)
            fail_msg("%s", err.message);
        check_layer(layer, h, pre, got_h, got_pre);
    }
    free(tokens), free(h), free(pre), free(got_h), free(got_pre);
    close_fixture(&f);
}

static void every_layer_alone_matches(void **state)
{
    (void)state;
    run_all(64);
}

static void every_layer_alone_matches_in_pieces(void **state)
{
    (void)state;
    run_all(7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_alone_matches),
        cmocka_unit_test(every_layer_alone_matches_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
