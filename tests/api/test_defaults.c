/* generation_config.json: what is read, what is refused. */
#include "api/defaults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_status parse(const char *json, pl_defaults *d, int32_t *eos, pl_error *err)
{
    return pl_defaults_parse(d, json, strlen(json), "here.json", eos, err);
}

static void fields_are_read(void **state)
{
    (void)state;
    pl_defaults d;
    pl_error err;
    int32_t eos = -1;
    assert_int_equal(
        parse("{\"temperature\": 0.6, \"top_p\": 0.95, \"top_k\": 20, \"min_p\": 0.01, \"repetition_penalty\": "
              "1.05, \"thinking\": false, \"eos_token_id\": 7, \"do_sample\": true, \"other\": [1]}",
              &d, &eos, &err),
        PL_OK);
    const pl_sampling *v = &d.sampling.value;
    assert_int_equal(d.sampling.has,
                     PL_HAS_TEMPERATURE | PL_HAS_TOP_P | PL_HAS_TOP_K | PL_HAS_MIN_P | PL_HAS_REPETITION);
    assert_true(v->temperature == 0.6f && v->top_p == 0.95f && v->top_k == 20 && v->min_p == 0.01f);
    assert_true(v->repetition_penalty == 1.05f);
    assert_int_equal(d.thinking, 0);
    assert_int_equal(eos, 7);
}

static void what_is_not_there_is_not_said(void **state)
{
    (void)state;
    pl_defaults d;
    pl_error err;
    int32_t eos = 3;
    assert_int_equal(parse("{\"eos_token_id\": [1, 2], \"temperature\": null, \"thinking\": null}", &d, &eos, &err),
                     PL_OK);
    assert_int_equal(d.sampling.has, 0);
    assert_int_equal(d.thinking, -1);
    assert_int_equal(d.effort, 0);
    assert_int_equal(eos, 3);
    assert_int_equal(pl_defaults_from_dir(&d, "/nowhere", &eos, &err), PL_OK);
    assert_int_equal(d.sampling.has, 0);
    assert_int_equal(pl_defaults_from_dir(&d, "models/nano", &eos, &err), PL_OK);
    assert_int_equal(d.thinking, 0);
    assert_int_equal(eos, 1);
}

static void no_sampling_is_temperature_0(void **state)
{
    (void)state;
    pl_defaults d;
    pl_error err;
    int32_t eos;
    assert_int_equal(parse("{\"do_sample\": false, \"temperature\": 0.7, \"top_k\": -1}", &d, &eos, &err), PL_OK);
    assert_true(d.sampling.value.temperature == 0);
    assert_int_equal(d.sampling.value.top_k, 0);
}

static void values_out_of_range_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *param;
    } cases[] = {
        {"{\"temperature\": 3}", "temperature"},
        {"{\"temperature\": \"1\"}", "temperature"},
        {"{\"top_p\": 0}", "top_p"},
        {"{\"top_k\": 1.5}", "top_k"},
        {"{\"top_k\": -2}", "top_k"},
        {"{\"min_p\": -0.1}", "min_p"},
        {"{\"repetition_penalty\": 0}", "repetition_penalty"},
        {"{\"thinking\": 1}", "thinking"},
        {"{\"do_sample\": \"no\"}", "do_sample"},
        {"[]", ""},
        {"{", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_defaults d;
        pl_error err;
        int32_t eos;
        assert_int_equal(parse(cases[i].json, &d, &eos, &err), PL_EFORMAT);
        assert_string_equal(err.param, cases[i].param);
        assert_non_null(strstr(err.message, "here.json"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(what_is_not_there_is_not_said),
        cmocka_unit_test(no_sampling_is_temperature_0),
        cmocka_unit_test(values_out_of_range_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
