/* model.safetensors.index.json. */
#include "base/check.h"

#include "checkpoint/index.h"

static pl_status parse(pl_index *index, const char *text, pl_error *err)
{
    return pl_index_parse(index, text, strlen(text), "index", err);
}

static void reads(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_index x;
    const char *text = "{\"metadata\":{\"a\":[{}],\"total_size\": 42 },\"other\":[true,-1.5e3],\"weight_map\":"
                       "{\"x.1\":\"b.safetensors\",\"x.2\":\"a.safetensors\",\"y\":\"b.safetensors\"}}\n";
    assert_int_equal(parse(&x, text, &err), PL_OK);
    assert_int_equal(x.tensors.count, 3);
    assert_int_equal(x.shards.count, 2);
    assert_string_equal(pl__names_at(&x.shards, x.shard_of[pl__names_find(&x.tensors, "y")]), "b.safetensors");
    assert_int_equal(x.total, 42);
    pl_index_free(&x);
    assert_int_equal(parse(&x, "{\"weight_map\":{}}", &err), PL_OK);
    assert_int_equal(x.tensors.count, 0);
    pl_index_free(&x);
    assert_int_equal(parse(&x, "{\"metadata\":{\"total_size\":4.5e3},\"weight_map\":{}}", &err), PL_OK);
    assert_int_equal(x.total, 0);
    pl_index_free(&x);
}

static void refuses(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "expected '{'"},
        {"[]", "expected '{'"},
        {"{}", "expected '\"'"},
        {"{\"metadata\":{}}", "expected a weight_map, found none"},
        {"{\"weight_map\":[]}", "expected '{', found '['"},
        {"{\"weight_map\":{\"a\":1}}", "expected '\"', found '1'"},
        {"{\"weight_map\":{\"a\":\"x.safetensors\",\"a\":\"x.safetensors\"}}", "tensor a: listed twice"},
        {"{\"weight_map\":{},\"weight_map\":{}}", "one weight_map"},
        {"{\"weight_map\":{}} {}", "expected the end"},
        {"{\"weight_map\":{\"a\":\"x.safetensors\"", "expected '}', found the end"},
        {"{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nesting"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err;
        pl_index x;
        assert_fails(PL_EFORMAT, &err, parse(&x, cases[i][0], &err));
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.message);
        assert_null(x.shard_of);
    }
}

static void refuses_shards_outside(void **state)
{
    (void)state;
    static const char *const shards[] = {"../x.safetensors",
                                         "/etc/x.safetensors",
                                         "a/x.safetensors",
                                         "..",
                                         "",
                                         ".",
                                         ".x.safetensors",
                                         ".safetensors",
                                         "x.bin",
                                         "a\\\\x.safetensors",
                                         "a\\u0001.safetensors"};
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        char text[128];
        pl_error err;
        pl_index x;
        snprintf(text, sizeof text, "{\"weight_map\":{\"t\":\"%s\"}}", shards[i]);
        assert_fails(PL_EFORMAT, &err, parse(&x, text, &err));
        assert_string_equal(err.param, "t");
        if (!strstr(err.message, "plain name"))
            fail_msg("%s: %s", text, err.message);
    }
}

static void refuses_a_large_text(void **state)
{
    (void)state;
    pl_error err;
    pl_index x;
    assert_fails(PL_ELIMIT, &err, pl_index_parse(&x, "{}", PL_MAX_INDEX_BYTES + 1, "index", &err));
}

static void refuses_too_many_shards(void **state)
{
    (void)state;
    pl_buf text;
    pl_error err;
    pl_index x;
    pl_buf_init(&text, 1 << 20, "text");
    assert_int_equal(pl_buf_adds(&text, "{\"weight_map\":{", NULL), PL_OK);
    for (int i = 0; i <= PL_MAX_SHARDS; i++)
        assert_int_equal(pl_buf_addf(&text, NULL, "%s\"t%d\":\"s%d.safetensors\"", i ? "," : "", i, i), PL_OK);
    assert_int_equal(pl_buf_adds(&text, "}}", NULL), PL_OK);
    assert_fails(PL_ELIMIT, &err, pl_index_parse(&x, text.data, text.len, "index", &err));
    assert_string_equal(err.message, "index: expected at most 4096 shards, found more");
    pl_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_shards_outside),
        cmocka_unit_test(refuses_a_large_text),
        cmocka_unit_test(refuses_too_many_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
