/* Whole-model logits and greedy continuations on tiny-a against the reference, inside its honest tolerance
 * (tests/vectors/tiny-a/README.md): p0-p2 max 0.4, mean 0.05; p3 0.6, 0.05; p4, p5 1.8, 0.08; the arg-max is equal
 * wherever the reference's top-2 margin exceeds 0.6. */
#include "model/support.h"

enum { V = 512, GREEDY = 64 };
static const float MARGIN = 0.6f;

static const struct {
    const char *name;
    int rows;
    double max, mean;
} prompts[] = {{"p0", 1, 0.4, 0.05},  {"p1", 2, 0.4, 0.05},   {"p2", 5, 0.4, 0.05},
               {"p3", 37, 0.6, 0.05}, {"p4", 200, 1.8, 0.08}, {"p5", 43, 1.8, 0.08}};

static fixture tiny;

static char *vector(const char *prompt, const char *what)
{
    static char path[128];
    snprintf(path, sizeof path, TINY "vectors/%s.%s", prompt, what);
    return path;
}

static void check_row(const char *name, int pos, const float *got, const float *want)
{
    int a = best_of(got, V), b = best_of(want, V);
    if (a != b && margin_of(want, V) > MARGIN)
        fail_msg("%s position %d: arg-max %d, reference %d with margin %.3f", name, pos, a, b,
                 (double)margin_of(want, V));
}

static void logits_match(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof prompts / sizeof *prompts; p++) {
        int count, n = prompts[p].rows;
        int32_t *tokens = load_prompt(prompts[p].name, &count);
        int32_t *rows = load_i32(vector(prompts[p].name, "rows.i32"), (size_t)n);
        float *want = load_f32(vector(prompts[p].name, "logits.f32"), (size_t)n * V);
        float *all = malloc(sizeof *all * (size_t)count * V);
        pl_model_reset(tiny.model, 0);
        run_rows(tiny.model, tokens, 0, count, all);
        double max = 0, mean = 0;
        for (int i = 0; i < n; i++) {
            const float *got = all + (size_t)rows[i] * V;
            difference d = compare(got, want + (size_t)i * V, V);
            max = d.max <= max ? max : d.max;
            mean += d.mean / n;
            check_row(prompts[p].name, rows[i], got, want + (size_t)i * V);
        }
        print_message("%s: %d rows, largest difference %.3f, mean %.4f\n", prompts[p].name, n, max, mean);
        assert_true(max <= prompts[p].max);
        assert_true(mean <= prompts[p].mean);
        free(tokens), free(rows), free(want), free(all);
    }
}

/* Feed the reference's own tokens and compare each arg-max, so that one honest flip does not hide the rest. */
static void greedy_matches(void **state)
{
    (void)state;
    int flips = 0;
    for (size_t p = 0; p < sizeof prompts / sizeof *prompts; p++) {
        int count;
        int32_t *tokens = load_prompt(prompts[p].name, &count);
        int32_t *greedy = load_i32(vector(prompts[p].name, "greedy.i32"), GREEDY);
        float *top2 = load_f32(vector(prompts[p].name, "greedy_top2.f32"), 2 * GREEDY);
        pl_model_reset(tiny.model, 0);
        float row[V];
        run_rows(tiny.model, tokens, 0, count - 1, NULL);
        run_rows(tiny.model, tokens, count - 1, count, row);
        for (int i = 0; i < GREEDY; i++) {
            float margin = top2[2 * i] - top2[2 * i + 1];
            if (best_of(row, V) != greedy[i] && margin > MARGIN)
                fail_msg("%s step %d: %d, reference %d with margin %.3f", prompts[p].name, i, best_of(row, V),
                         greedy[i], (double)margin);
            flips += best_of(row, V) != greedy[i];
            pl_run run = {.pos = count + i, .rows = 1, .token = &greedy[i], .want = PL_WANT_LAST};
            pl_error err;
            assert_int_equal(pl_model_forward(tiny.model, &run, 1, NULL, NULL, &err), PL_OK);
            memcpy(row, pl_model_logits(tiny.model, 0), sizeof row);
        }
        free(tokens), free(greedy), free(top2);
    }
    print_message("greedy: %d of %zu arg-max differ, all with margins of at most %.1f\n", flips,
                  GREEDY * sizeof prompts / sizeof *prompts, (double)MARGIN);
    assert_true(flips <= 12); /* the reference's own variants flip up to 10 rows of one prompt */
}

/* One-token decode equals prefill, and the reference's owner-keys decode. */
static void decode_matches_owner_keys(void **state)
{
    (void)state;
    enum { STEPS = 32 };
    int count;
    int32_t *tokens = load_prompt("p3", &count);
    int32_t *greedy = load_i32(vector("p3", "greedy.i32"), GREEDY);
    float *want = load_f32(vector("p3", "decode_owner_keys.f32"), STEPS * V);
    pl_model_reset(tiny.model, 0);
    run_rows(tiny.model, tokens, 0, count, NULL);
    double max = 0, mean = 0;
    for (int i = 0; i < STEPS; i++) {
        float row[V];
        run_rows(tiny.model, greedy - count, count + i, count + i + 1, row);
        difference d = compare(row, want + (size_t)i * V, V);
        max = d.max <= max ? max : d.max;
        mean += d.mean / STEPS;
        check_row("decode", count + i, row, want + (size_t)i * V);
    }
    print_message("decode after p3: largest difference %.3f, mean %.4f\n", max, mean);
    assert_true(max <= 1.8 && mean <= 0.08);
    free(tokens), free(greedy), free(want);
}

static int open_tiny(void **state)
{
    (void)state;
    open_fixture(&tiny, TINY "model", (pl_model_settings){.threads = 1, .context = 512});
    return 0;
}

static int close_tiny(void **state)
{
    (void)state;
    close_fixture(&tiny);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_match),
        cmocka_unit_test(greedy_matches),
        cmocka_unit_test(decode_matches_owner_keys),
    };
    return cmocka_run_group_tests(tests, open_tiny, close_tiny);
}
