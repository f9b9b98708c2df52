/* The requests of a cell. */
#include "base/check.h"
#include "bench/cell.h"

static const pl_bench_set sets[2] = {
    {.name = "one", .prompt = {{"a", "A\n\"", false}, {"b", "B", true}}, .n = 2},
    {.name = "two", .prompt = {{"c", "C", false}, {"d", "D", false}, {"e", "E", false}}, .n = 3},
};
static const pl_bench_plan plan = {.model = "m", .label = "", .tokens = 7, .reps = 1, .seed = 100, .seeded = true};

static json_t *body(const pl_bench_plan *p, const pl_bench_cell *cell, int i, bool draft)
{
    char *text = pl_bench_body(p, cell, i, p->tokens, draft);
    assert_non_null(text);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static void greedy(void **state)
{
    (void)state;
    pl_bench_cell cell = {.set = sets, .sets = 1, .name = "one", .temperature = 0, .streams = 3};
    json_t *json = body(&plan, &cell, 0, true);
    assert_string_equal(json_string_value(json_object_get(json, "prompt")), "A\n\"");
    assert_int_equal(json_integer_value(json_object_get(json, "max_tokens")), 7);
    assert_true(json_is_true(json_object_get(json, "ignore_eos")));
    assert_true(json_is_true(json_object_get(json, "stream")));
    assert_true(json_is_true(json_object_get(json_object_get(json, "stream_options"), "include_usage")));
    assert_true(json_number_value(json_object_get(json, "temperature")) == 0);
    assert_null(json_object_get(json, "seed"));
    assert_null(json_object_get(json, "top_k"));
    assert_null(json_object_get(json, "draft"));
    json_decref(json);
    json = body(&plan, &cell, 1, false);
    json_t *message = json_array_get(json_object_get(json, "messages"), 0);
    assert_string_equal(json_string_value(json_object_get(message, "content")), "B");
    assert_true(json_is_false(json_object_get(json_object_get(json, "chat_template_kwargs"), "thinking")));
    assert_true(json_is_false(json_object_get(json, "draft")));
    json_decref(json);
}

static void sampled(void **state)
{
    (void)state;
    static const struct {
        const char *prompt; /* NULL: the chat one */
        int seed;
    } alone[] = {{"A\n\"", 100}, {NULL, 101}, {"A\n\"", 102}},
      mixed[] = {{"A\n\"", 100}, {"C", 100}, {NULL, 101}, {"D", 101},
                 {"A\n\"", 102}, {"E", 102}, {NULL, 103}, {"C", 103}};
    for (int kind = 0; kind < 2; kind++) {
        pl_bench_cell cell = {.set = sets, .sets = kind + 1, .name = "x", .temperature = 0.5, .streams = 8};
        for (int i = 0; i < (kind ? 8 : 3); i++) {
            json_t *json = body(&plan, &cell, i, true);
            const char *prompt = json_string_value(json_object_get(json, "prompt"));
            const char *expected = kind ? mixed[i].prompt : alone[i].prompt;
            assert_int_equal(prompt != NULL, expected != NULL);
            if (prompt)
                assert_string_equal(prompt, expected);
            assert_int_equal(json_integer_value(json_object_get(json, "seed")), kind ? mixed[i].seed : alone[i].seed);
            assert_int_equal(json_integer_value(json_object_get(json, "top_k")), 20);
            assert_true(json_number_value(json_object_get(json, "top_p")) == 0.95);
            json_decref(json);
        }
    }
    pl_bench_plan unseeded = plan;
    unseeded.seeded = false;
    pl_bench_cell cell = {.set = sets, .sets = 1, .name = "one", .temperature = 1, .streams = 1};
    json_t *json = body(&unseeded, &cell, 0, true);
    assert_null(json_object_get(json, "seed"));
    json_decref(json);
}

static void a_server_that_is_not_there(void **state)
{
    (void)state;
    pl_bench_url url;
    pl_error err;
    pl_bench_result result;
    assert_int_equal(pl_bench_url_read(&url, "http://127.0.0.1:1", &err), PL_OK);
    pl_bench_plan p = plan;
    p.url = &url;
    p.reps = 2;
    p.limit_s = 5;
    p.alone = true;
    pl_bench_cell cell = {.set = sets, .sets = 1, .name = "one", .temperature = 0, .streams = 3};
    assert_int_equal(pl_bench_cell_run(&p, &cell, &result, &err), PL_OK);
    assert_int_equal(result.verdict, PL_BENCH_FAILED);
    assert_int_equal(result.failed, 6);
    assert_int_equal(result.unverified, 6);
    assert_string_equal(result.digest, "");
    assert_true(json_is_null(json_object_get(result.line, "aggregate_tps")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(result.line, "alone"), "unverified")), 6);
    assert_int_equal(json_array_size(json_object_get(result.line, "errors")), 4);
    pl_bench_result_free(&result);
    cell.streams = 0;
    assert_fails(PL_EINVAL, &err, pl_bench_cell_run(&p, &cell, &result, &err));
    pl_bench_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy),
        cmocka_unit_test(sampled),
        cmocka_unit_test(a_server_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
