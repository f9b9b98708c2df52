/* The trained checkpoint against the official outputs: greedy text, logits and drafts. */
#include "model/support.h"

#include <jansson.h>
#include <math.h>

enum { BLOCK = 5 };
static const float MARGIN = 0.6f;

static fixture nano;

static int32_t *ids_of(json_t *array, int *count)
{
    *count = (int)json_array_size(array);
    int32_t *ids = malloc(sizeof *ids * (size_t)*count);
    for (int i = 0; i < *count; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, (size_t)i));
    return ids;
}

typedef struct tally {
    double max, sum, lse_max;
    int values, rows, flips, drafts, draft_flips;
} tally;

static double log_sum_exp(const float *row, int count)
{
    double max = row[best_of(row, count)], sum = 0;
    for (int i = 0; i < count; i++)
        sum += exp((double)row[i] - max);
    return max + log(sum);
}

static void check_rows(const char *name, const int32_t *tokens, int rows, tally *t)
{
    char path[128];
    int v = pl_model_config(nano.model)->vocab_size;
    snprintf(path, sizeof path, "tests/vectors/nano/%s.top8.f32", name);
    float *top = load_f32(path, (size_t)rows * 8);
    snprintf(path, sizeof path, "tests/vectors/nano/%s.top8_id.i32", name);
    int32_t *id = load_i32(path, (size_t)rows * 8);
    snprintf(path, sizeof path, "tests/vectors/nano/%s.lse.f32", name);
    float *lse = load_f32(path, (size_t)rows);
    float *all = malloc(sizeof *all * (size_t)rows * (size_t)v);
    pl_model_reset(nano.model, 0);
    run_rows(nano.model, tokens, 0, rows, all);
    for (int r = 0; r < rows; r++) {
        const float *row = all + (size_t)r * (size_t)v;
        for (int i = 0; i < 8; i++) {
            double e = fabs((double)row[id[r * 8 + i]] - (double)top[r * 8 + i]);
            t->max = e <= t->max ? t->max : e;
            t->sum += e;
            t->values++;
        }
        double e = fabs(log_sum_exp(row, v) - (double)lse[r]);
        t->lse_max = e <= t->lse_max ? t->lse_max : e;
        bool flip = best_of(row, v) != id[r * 8];
        if (flip && top[r * 8] - top[r * 8 + 1] > MARGIN)
            fail_msg("%s position %d: arg-max %d, reference %d, margin %.3f", name, r, best_of(row, v), id[r * 8],
                     (double)(top[r * 8] - top[r * 8 + 1]));
        t->flips += flip;
        t->rows++;
    }
    free(top), free(id), free(lse), free(all);
}

static void check_drafts(const char *name, const int32_t *tokens, json_t *cases, tally *t)
{
    pl_error err;
    size_t i;
    json_t *one;
    pl_model_reset(nano.model, 0);
    json_array_foreach(cases, i, one)
    {
        int n, slot = 0, count = (int)json_integer_value(json_object_get(one, "p")) + 1;
        int32_t *want = ids_of(json_object_get(one, "drafts"), &n);
        assert_int_equal(n, BLOCK);
        run_rows(nano.model, tokens, pl_model_len(nano.model, 0), count, NULL);
        assert_int_equal(pl_drafter_ingest(nano.model, &slot, &count, 1, &err), PL_OK);
        pl_ask ask = {.anchor = (int32_t)json_integer_value(json_object_get(one, "anchor"))};
        pl_proposal got;
        assert_int_equal(pl_drafter_propose(nano.model, &ask, 1, NULL, NULL, &got, &err), PL_OK);
        for (int r = 0; r < BLOCK; r++, t->drafts++) {
            double conf = json_real_value(json_array_get(json_object_get(one, "conf"), (size_t)r));
            if (got.draft[r] != want[r]) {
                if (got.margin[r] > MARGIN)
                    fail_msg("%s after %d row %d: draft %d, reference %d, margin %.3f", name, count - 1, r,
                             got.draft[r], want[r], (double)got.margin[r]);
                t->draft_flips++;
                break; /* the chain goes on from another token */
            }
            if (!(fabs((double)got.confidence[r] - conf) <= 0.75))
                fail_msg("%s after %d row %d: confidence %.3f, reference %.3f", name, count - 1, r,
                         (double)got.confidence[r], conf);
        }
        free(want);
    }
}

static void the_trained_checkpoint_matches(void **state)
{
    (void)state;
    json_error_t error;
    json_t *root = json_load_file("tests/vectors/nano/cases.json", 0, &error), *one;
    assert_non_null(root);
    const char *name;
    tally t = {0};
    json_object_foreach(root, name, one)
    {
        int n, g, rows = (int)json_integer_value(json_object_get(one, "rows"));
        int32_t *ids = ids_of(json_object_get(one, "ids"), &n);
        int32_t *greedy = ids_of(json_object_get(one, "greedy"), &g);
        assert_int_equal(n + g, rows);
        int32_t *tokens = malloc(sizeof *tokens * (size_t)rows);
        memcpy(tokens, ids, sizeof *tokens * (size_t)n);
        memcpy(tokens + n, greedy, sizeof *tokens * (size_t)g);
        check_rows(name, tokens, rows, &t);
        check_drafts(name, tokens, json_object_get(one, "drafts"), &t);
        free(ids), free(greedy), free(tokens);
    }
    print_message(
        "%d rows: best-8 logits differ by at most %.3f, %.4f on average; log-sum-exp by %.3f; %d arg-max flips; "
        "%d of %d draft chains part\n",
        t.rows, t.max, t.sum / t.values, t.lse_max, t.flips, t.draft_flips, t.drafts);
    assert_true(t.rows > 300);
    assert_true(t.sum / t.values <= 0.08);
    assert_true(t.max <= 1.8);
    assert_true(t.flips <= t.rows / 40);
    json_decref(root);
}

static int open_nano(void **state)
{
    (void)state;
    open_fixture(&nano, NANO, (pl_model_settings){.threads = 1, .context = 512});
    return 0;
}

static int close_nano(void **state)
{
    (void)state;
    close_fixture(&nano);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_trained_checkpoint_matches)};
    return cmocka_run_group_tests(tests, open_nano, close_nano);
}
