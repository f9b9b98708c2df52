/* What generation_config.json of a folder says, as a source of defaults. */
#include "api/defaults.h"

#include "base/check.h"
#include "base/file.h"

#include <stdio.h>

static pl_status from(const char *json, pl_defaults *d, pl_generation *g, pl_error *err)
{
    char dir[64], path[96];
    make_folder(dir);
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    assert_int_equal(pl_file_put(path, json, strlen(json), err), PL_OK);
    pl_status status = pl_defaults_from_dir(d, dir, g, err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    return status;
}

static void fields_are_read(void **state)
{
    (void)state;
    pl_defaults d;
    pl_generation g;
    pl_error err;
    assert_int_equal(
        from("{\"temperature\": 0.6, \"top_p\": 0.95, \"top_k\": 20, \"min_p\": 0.01, \"repetition_penalty\": "
             "1.05, \"thinking\": false, \"eos_token_id\": [7, 3], \"do_sample\": true, \"other\": [1]}",
             &d, &g, &err),
        PL_OK);
    const pl_sampling *v = &d.sampling.value;
    assert_int_equal(d.sampling.has,
                     PL_HAS_TEMPERATURE | PL_HAS_TOP_P | PL_HAS_TOP_K | PL_HAS_MIN_P | PL_HAS_REPETITION);
    assert_true(v->temperature == 0.6f && v->top_p == 0.95f && v->top_k == 20 && v->min_p == 0.01f);
    assert_true(v->repetition_penalty == 1.05f);
    assert_int_equal(d.thinking, 0);
    assert_true(g.eos_count == 2 && g.eos[0] == 7 && g.eos[1] == 3);
    assert_int_equal(from("{\"do_sample\": false, \"temperature\": 0.7, \"thinking\": true}", &d, &g, &err), PL_OK);
    assert_true((d.sampling.has & PL_HAS_TEMPERATURE) && d.sampling.value.temperature == 0);
    assert_int_equal(d.thinking, 1);
}

static void what_is_not_there_is_not_said(void **state)
{
    (void)state;
    pl_defaults d;
    pl_generation g;
    pl_error err;
    assert_int_equal(from("{\"eos_token_id\": null, \"temperature\": null, \"thinking\": null}", &d, &g, &err), PL_OK);
    assert_true(d.sampling.has == 0 && d.thinking == -1 && d.effort == 0 && d.max_tokens == 0 && g.eos_count == 0);
    assert_int_equal(pl_defaults_from_dir(&d, "/nowhere", &g, &err), PL_OK);
    assert_true(d.sampling.has == 0 && d.thinking == -1);
    assert_int_equal(pl_defaults_from_dir(&d, "models/nano", &g, &err), PL_OK);
    assert_int_equal(d.thinking, 0);
    assert_true(g.eos_count == 1 && g.eos[0] == 1);
}

static void a_wrong_file_says_nothing_and_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *param;
    } cases[] = {{"{\"temperature\": 2.5}", "temperature"},
                 {"{\"eos_token_id\": \"1\"}", "eos_token_id"},
                 {"{\"top_p\": 0.5, \"top_p\": 0.6}", ""},
                 {"{", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_defaults d;
        pl_generation g;
        pl_error err;
        assert_int_equal(from(cases[i].json, &d, &g, &err), PL_EFORMAT);
        assert_string_equal(err.param, cases[i].param);
        assert_non_null(strstr(err.message, "generation_config.json"));
        assert_true(d.sampling.has == 0 && d.thinking == -1 && g.eos_count == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(what_is_not_there_is_not_said),
        cmocka_unit_test(a_wrong_file_says_nothing_and_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
