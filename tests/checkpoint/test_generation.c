/* generation_config.json: what it may say, and how a wrong one is refused. */
#include "base/check.h"
#include "base/file.h"
#include "checkpoint/generation.h"

static pl_generation parsed(const char *json)
{
    pl_generation g;
    pl_error err;
    if (pl_generation_parse(&g, json, strlen(json), "test", &err) != PL_OK)
        fail_msg("%s: %s", json, err.message);
    return g;
}

static void fields_are_read(void **state)
{
    (void)state;
    pl_generation g = parsed("{\"temperature\":0.6,\"top_k\":20,\"top_p\":0.95,\"min_p\":0,\"repetition_penalty\":1,"
                             "\"thinking\":false,\"do_sample\":true,\"max_length\":\"any\",\"eos_token_id\":[1,2]}");
    assert_int_equal(g.has, PL_GEN_TEMPERATURE | PL_GEN_TOP_K | PL_GEN_TOP_P | PL_GEN_MIN_P | PL_GEN_REPETITION |
                                PL_GEN_THINKING);
    assert_true(g.temperature == 0.6f && g.top_k == 20 && g.top_p == 0.95f && g.min_p == 0 &&
                g.repetition_penalty == 1);
    assert_false(g.thinking);
    assert_true(g.eos_count == 2 && g.eos[0] == 1 && g.eos[1] == 2);
    g = parsed("{\"eos_token_id\":7}");
    assert_true(g.eos_count == 1 && g.eos[0] == 7);
    g = parsed("{\"eos_token_id\":[5,5,0,5]}");
    assert_true(g.eos_count == 2 && g.eos[0] == 5 && g.eos[1] == 0);
    assert_int_equal(parsed("{\"eos_token_id\":null}").eos_count, 0);
    assert_int_equal(parsed("{}").has, 0);
    assert_int_equal(parsed("{\"temperature\":null,\"thinking\":null,\"top_k\":null,\"do_sample\":null}").has, 0);
    assert_true(parsed("{\"thinking\":true}").thinking);
    assert_int_equal(parsed("{\"top_k\":-1}").top_k, 0);
    g = parsed("{\"do_sample\":false,\"temperature\":0.6}");
    assert_true((g.has & PL_GEN_TEMPERATURE) && g.temperature == 0);
    g = parsed("{\"do_sample\":false}");
    assert_true((g.has & PL_GEN_TEMPERATURE) && g.temperature == 0);
    assert_true(parsed("{\"temperature\":1e-60}").temperature == 0);
}

static void wrong_fields_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *param;
    } cases[] = {
        {"{\"temperature\":\"1\"}", "temperature"},
        {"{\"temperature\":-0.1}", "temperature"},
        {"{\"temperature\":2.01}", "temperature"},
        {"{\"temperature\":true}", "temperature"},
        {"{\"temperature\":[1]}", "temperature"},
        {"{\"top_p\":0}", "top_p"},
        {"{\"top_p\":1.01}", "top_p"},
        {"{\"top_p\":1e-60}", "top_p"},
        {"{\"min_p\":-1}", "min_p"},
        {"{\"min_p\":2}", "min_p"},
        {"{\"repetition_penalty\":0}", "repetition_penalty"},
        {"{\"top_k\":1.0}", "top_k"},
        {"{\"top_k\":-2}", "top_k"},
        {"{\"top_k\":4294967296}", "top_k"},
        {"{\"top_k\":\"5\"}", "top_k"},
        {"{\"eos_token_id\":\"1\"}", "eos_token_id"},
        {"{\"eos_token_id\":-1}", "eos_token_id"},
        {"{\"eos_token_id\":1.0}", "eos_token_id"},
        {"{\"eos_token_id\":2147483648}", "eos_token_id"},
        {"{\"eos_token_id\":true}", "eos_token_id"},
        {"{\"eos_token_id\":{}}", "eos_token_id"},
        {"{\"eos_token_id\":[]}", "eos_token_id"},
        {"{\"eos_token_id\":[1,null]}", "eos_token_id"},
        {"{\"eos_token_id\":[[1]]}", "eos_token_id"},
        {"{\"eos_token_id\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}", "eos_token_id"},
        {"{\"do_sample\":0}", "do_sample"},
        {"{\"do_sample\":\"false\"}", "do_sample"},
        {"{\"thinking\":1}", "thinking"},
        {"[]", ""},
        {"3", ""},
        {"", ""},
        {"{", ""},
        {"{}x", ""},
        {"{\"temperature\":1e999}", ""},
        {"{\"temperature\":NaN}", ""},
        {"{\"temperature\":1,\"temperature\":1}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_generation g;
        pl_error err;
        assert_fails(PL_EFORMAT, &err, pl_generation_parse(&g, cases[i].json, strlen(cases[i].json), "test", &err));
        assert_string_equal(err.param, cases[i].param);
        assert_true(g.has == 0 && g.eos_count == 0);
        assert_non_null(strstr(err.message, "test"));
        if (*cases[i].param)
            assert_true(strstr(err.message, cases[i].param) && strstr(err.message, "expected ") &&
                        strstr(err.message, "found "));
    }
}

static void files_may_be_missing_but_not_wrong(void **state)
{
    (void)state;
    pl_generation g;
    pl_error err;
    char dir[64], path[96];
    make_folder(dir);
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    g.has = 99;
    assert_int_equal(pl_generation_load(&g, path, &err), PL_OK);
    assert_int_equal(g.has, 0);
    assert_int_equal(pl_file_put(path, "{\"top_k\":7}", 11, &err), PL_OK);
    assert_int_equal(pl_generation_load(&g, path, &err), PL_OK);
    assert_int_equal(g.top_k, 7);
    assert_int_equal(pl_file_put(path, "\0\0", 2, &err), PL_OK);
    assert_fails(PL_EFORMAT, &err, pl_generation_load(&g, path, &err));
    static char big[(1 << 20) + 1];
    memset(big, ' ', sizeof big);
    assert_int_equal(pl_file_put(path, big, sizeof big, &err), PL_OK);
    assert_fails(PL_ELIMIT, &err, pl_generation_load(&g, path, &err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(pl_generation_load(&g, "models/nano/generation_config.json", &err), PL_OK);
    assert_int_equal(g.has, PL_GEN_TEMPERATURE | PL_GEN_TOP_P | PL_GEN_THINKING);
    assert_true(g.temperature == 1 && g.top_p == 1 && !g.thinking && g.eos_count == 1 && g.eos[0] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(wrong_fields_are_refused_by_name),
        cmocka_unit_test(files_may_be_missing_but_not_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
