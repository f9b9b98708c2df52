/* The JSON reader and writer: grammar and offsets, limits, duplicate keys, numbers, spelling. */
#include "support.h"

#include <float.h>
#include <math.h>

static void check_write(const char *text, const char *expected)
{
    pl_error err;
    pl_buf out;
    pl_json_doc *doc = parse(text);
    pl_buf_init(&out, 1 << 20, "test");
    OK(pl_json_write(pl_json_root(doc), &out, &err));
    assert_string_equal(out.data, expected);
    pl_buf_free(&out);
    pl_json_free(doc);
}

static void test_spelling(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {" {\"b\":1,\"a\":[true,false,null]} ", "{\"b\": 1, \"a\": [true, false, null]}"},
        {"{}", "{}"},
        {"[]", "[]"},
        {"[[],{}, [ ] ]", "[[], {}, []]"},
        {"\"\\u0041\\u00e9\\ud83d\\ude42\\/\\b\\f\\n\\r\\t\\u001f\\u007f\"",
         "\"A\303\251\360\237\231\202/\\b\\f\\n\\r\\t\\u001f\x7f\""},
        {"\"\xc3\xa9\xe2\x80\xa8\"", "\"\xc3\xa9\xe2\x80\xa8\""},
        {"\"\\u0000\"", "\"\\u0000\""},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"[-0, 0, -12]", "[0, 0, -12]"},
        {"[-0.0, 0.0, 0e5, 1.0, 1.50, 100.0]", "[-0.0, 0.0, 0.0, 1.0, 1.5, 100.0]"},
        {"[1e15, 1e16, 1E+16, 123456789012345680.0]", "[1000000000000000.0, 1e+16, 1e+16, 1.2345678901234568e+17]"},
        {"[0.0001, 0.00001, 1.5e-7, 1e100]", "[0.0001, 1e-05, 1.5e-07, 1e+100]"},
        {"[1e400, -1e400, 1e-400]", "[Infinity, -Infinity, 0.0]"},
        {"[0.1, 0.30000000000000004, 5e-324, 1.7976931348623157e308]",
         "[0.1, 0.30000000000000004, 5e-324, 1.7976931348623157e+308]"},
        {"9007199254740993.0", "9007199254740992.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_write(cases[i][0], cases[i][1]);
}

/* Last value, first place, as a Python dict. */
static void test_duplicate_keys(void **state)
{
    (void)state;
    check_write("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\": 3, \"b\": 2}");
    check_write("{\"a\":[1],\"a\":{\"x\":[2,3],\"x\":4},\"c\":5,\"a\":[6,{\"y\":7}],\"d\":8}",
                "{\"a\": [6, {\"y\": 7}], \"c\": 5, \"d\": 8}");
    check_write("{\"a\":1,\"a\":2}", "{\"a\": 2}");
    check_write("[{\"\":1,\"\":2,\"b\":0,\"\":3},9]", "[{\"\": 3, \"b\": 0}, 9]");
    pl_json_doc *doc = parse("{\"k\":1,\"\\u006b\":{\"z\":2}}");
    assert_int_equal(pl_json_count(pl_json_root(doc)), 1);
    assert_int_equal(pl_json_offset(doc, pl_json_get(pl_json_root(doc), "k")), 16);
    pl_json_free(doc);
}

/* More keys than the small case, against a slow model. */
static void test_many_duplicate_keys(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        char text[4096] = "{", expected[4096] = "{";
        size_t n = 1 + below(60), names = 1 + below(40), order[64], seen = 0;
        int value[64] = {0};
        bool known[64] = {false};
        for (size_t i = 0; i < n; i++) {
            size_t k = below(names);
            if (!known[k])
                order[seen++] = k;
            known[k] = true;
            value[k] = (int)below(1000);
            sprintf(text + strlen(text), "%s\"k%zu\":[%d,{\"v\":0}]", i ? "," : "", k, value[k]);
        }
        for (size_t i = 0; i < seen; i++)
            sprintf(expected + strlen(expected), "%s\"k%zu\": [%d, {\"v\": 0}]", i ? ", " : "", order[i],
                    value[order[i]]);
        strcat(text, "}");
        strcat(expected, "}");
        check_write(text, expected);
    }
}

static const struct {
    const char *text;
    int offset;
} refused[] = {
    {"", 0},
    {" ", 1},
    {"nul", 0},
    {"nulL", 0},
    {"tru", 0},
    {"NaN", 0},
    {"Infinity", 0},
    {"-", 1},
    {"-a", 1},
    {"01", 1},
    {"-01", 2},
    {"1.", 2},
    {"1.e5", 2},
    {"1e", 2},
    {"1e+", 3},
    {".5", 0},
    {"+1", 0},
    {"1 2", 2},
    {"0x1", 1},
    {"[", 1},
    {"[1", 2},
    {"[1,", 3},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[1}", 2},
    {"{", 1},
    {"{]", 1},
    {"{\"a\"", 4},
    {"{\"a\":", 5},
    {"{\"a\":1", 6},
    {"{\"a\":1,", 7},
    {"{\"a\":1,}", 7},
    {"{a:1}", 1},
    {"{1:1}", 1},
    {"{\"a\" 1}", 5},
    {"{\"a\":1]", 6},
    {"\"", 1},
    {"\"a", 2},
    {"\"\\", 2},
    {"\"\\x\"", 2},
    {"\"\\u12\"", 3},
    {"\"\\u12g4\"", 3},
    {"\"a\nb\"", 2},
    {"\"\t\"", 1},
    {"'a'", 0},
    {"\"\x80\"", 1},
    {"\"a\xc3\"", 2},
    {"\"\xed\xa0\x80\"", 1},
    {"\"\xc0\x80\"", 1},
    {"\xef\xbb\xbf{}", 0},
    {"[1] x", 4},
    {"/*c*/1", 0},
    {"[1,//\n2]", 3},
    {"\"\\u\"", 3},
    {"]", 0},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        pl_error err;
        pl_json_doc *doc = NULL;
        pl_status status = pl_json_parse(refused[i].text, strlen(refused[i].text), NULL, &doc, &err);
        if (status != PL_EFORMAT || err.offset != refused[i].offset)
            fail_msg("%s: status %d, offset %d instead of %d (%s)", refused[i].text, status, (int)err.offset,
                     refused[i].offset, err.message);
        assert_null(doc);
    }
    pl_error err;
    pl_json_doc *doc = NULL;
    assert_int_equal(pl_json_parse("[1\0]", 4, NULL, &doc, &err), PL_EFORMAT);
    assert_int_equal(err.offset, 2);
}

/* Half a surrogate pair, in every position, is one U+FFFD; a whole one a character. */
static void test_surrogates(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"\\ud800\"", "\"\xef\xbf\xbd\""},
        {"\"\\udc00x\"", "\"\xef\xbf\xbdx\""},
        {"\"\\ud83d\\ud83d\\ude42\"", "\"\xef\xbf\xbd\xf0\x9f\x99\x82\""},
        {"\"\\ud83dx\\ude42\"", "\"\xef\xbf\xbdx\xef\xbf\xbd\""},
        {"\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
                               "A\""},
        {"\"\\ude42\\ud83d\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\"\\ud83d\\n\"", "\"\xef\xbf\xbd\\n\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_write(cases[i][0], cases[i][1]);
    pl_error err;
    pl_json_doc *doc = NULL;
    assert_int_equal(pl_json_parse("\"\\ud83d\\u12\"", 12, NULL, &doc, &err), PL_EFORMAT);
}

static pl_status parse_limited(const char *text, size_t bytes, size_t values, unsigned depth, pl_error *err)
{
    pl_json_doc *doc = NULL;
    pl_json_limits limits = {.max_bytes = bytes, .max_values = values, .max_depth = depth};
    pl_status status = pl_json_parse(text, strlen(text), &limits, &doc, err);
    assert_true((doc != NULL) == (status == PL_OK));
    pl_json_free(doc);
    return status;
}

static void test_limits(void **state)
{
    (void)state;
    pl_error err;
    assert_int_equal(parse_limited("[1,2]", 5, 3, 1, &err), PL_OK);
    assert_int_equal(parse_limited("[1,2]", 4, 3, 1, &err), PL_ELIMIT);
    assert_int_equal(parse_limited("[1,2]", 5, 2, 1, &err), PL_ELIMIT);
    assert_int_equal(err.offset, 3);
    assert_int_equal(parse_limited("[1,2]", 5, 3, 0, &err), PL_ELIMIT);
    assert_int_equal(err.offset, 0);
    assert_int_equal(parse_limited("{\"a\":[[1]]}", 99, 99, 3, &err), PL_OK);
    assert_int_equal(parse_limited("{\"a\":[[1]]}", 99, 99, 2, &err), PL_ELIMIT);
    assert_int_equal(err.offset, 6);
    /* The depth that any limit may ask for is itself bounded: a million brackets are no crash. */
    size_t n = 1000000;
    char *deep = malloc(n + 1);
    assert_non_null(deep);
    memset(deep, '[', n);
    deep[n] = '\0';
    assert_int_equal(parse_limited(deep, n, n, UINT32_MAX, &err), PL_ELIMIT);
    assert_int_equal(err.offset, 1024);
    free(deep);
}

/* The members of one object are bounded, duplicates counted as they come; objects side by side are not. */
static void test_member_limit(void **state)
{
    (void)state;
    pl_error err;
    pl_json_doc *doc = NULL;
    pl_json_limits two = {.max_bytes = 99, .max_values = 99, .max_depth = 9, .max_members = 2};
    static const char *const taken[] = {"{\"a\":1,\"b\":{\"a\":1,\"b\":2}}", "[{\"a\":1,\"b\":1},{\"a\":1,\"b\":1}]"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pl_json_parse(taken[i], strlen(taken[i]), &two, &doc, &err), PL_OK);
        pl_json_free(doc);
    }
    assert_int_equal(pl_json_parse("{\"a\":1,\"a\":2,\"c\":3}", strlen("{\"a\":1,\"a\":2,\"c\":3}"), &two, &doc, &err),
                     PL_ELIMIT);
    assert_null(doc);
    assert_int_equal(err.offset, 13);
    assert_non_null(strstr(err.message, "more than 2 members"));
    size_t n = pl_json_default_limits.max_members, len = 0, cut = 0;
    assert_true(n > 1000);
    char *many = malloc((n + 1) * 16 + 2);
    assert_non_null(many);
    for (size_t i = 0; i <= n; i++) {
        cut = len;
        len += (size_t)sprintf(many + len, "%c\"k%zu\":0", i ? ',' : '{', i);
    }
    many[len] = '}';
    assert_int_equal(pl_json_parse(many, len + 1, NULL, &doc, &err), PL_ELIMIT);
    many[cut] = '}'; /* the last one less */
    assert_int_equal(pl_json_parse(many, cut + 1, NULL, &doc, &err), PL_OK);
    assert_int_equal(pl_json_count(pl_json_root(doc)), n);
    pl_json_free(doc);
    free(many);
}

static void test_accessors(void **state)
{
    (void)state;
    pl_json_doc *doc = parse("{\"s\":\"a\\u0000b\",\"n\":null,\"t\":true,\"f\":false,\"i\":-7,\"r\":2.5,"
                             "\"a\":[10,[20],\"30\"],\"o\":{\"x\":1}}");
    const pl_json *root = pl_json_root(doc), *a = pl_json_get(root, "a");
    size_t len;
    int64_t i;
    double d;
    assert_int_equal(pl_json_count(root), 8);
    assert_memory_equal(pl_json_string(pl_json_get(root, "s"), &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_false(pl_json_equals(pl_json_get(root, "s"), "a"));
    assert_true(pl_json_is(pl_json_get(root, "n"), PL_JSON_NULL));
    assert_null(pl_json_get_set(root, "n"));
    assert_null(pl_json_get(root, "missing"));
    assert_true(pl_json_is_bool(pl_json_get(root, "t")) && pl_json_is_bool(pl_json_get(root, "f")));
    assert_true(pl_json_i64(pl_json_get(root, "i"), -7, 0, &i) && i == -7);
    assert_false(pl_json_i64(pl_json_get(root, "i"), -6, 0, &i));
    assert_false(pl_json_i64(pl_json_get(root, "r"), -99, 99, &i));
    assert_false(pl_json_i64(pl_json_get(root, "t"), -99, 99, &i));
    assert_true(pl_json_f64(pl_json_get(root, "r"), 2.5, 2.5, &d) && d == 2.5);
    assert_true(pl_json_f64(pl_json_get(root, "i"), -7, -7, &d) && d == -7);
    assert_false(pl_json_f64(pl_json_get(root, "r"), 2.6, 3, &d));
    assert_int_equal(pl_json_count(a), 3);
    assert_true(pl_json_i64(pl_json_at(pl_json_at(a, 1), 0), 0, 99, &i) && i == 20);
    assert_true(pl_json_equals(pl_json_at(a, 2), "30"));
    assert_null(pl_json_at(a, 3));
    assert_null(pl_json_at(root, 0));
    assert_int_equal(pl_json_offset(doc, pl_json_get(root, "a")), 63);
    assert_int_equal(pl_json_offset(doc, pl_json_at(a, 2)), 72);
    assert_string_equal(pl_json_type_name(a), "array");
    assert_string_equal(pl_json_type_name(NULL), "nothing");
    assert_false(pl_json_is(NULL, PL_JSON_NULL));
    assert_null(pl_json_get(a, "x"));
    assert_null(pl_json_string(NULL, &len));
    pl_json_free(doc);
}

static void test_integer_range(void **state)
{
    (void)state;
    int64_t i = 0;
    pl_json_doc *doc = parse("[9223372036854775807,-9223372036854775808,9223372036854775808,-9223372036854775809,"
                             "99999999999999999999999,-0,1e2]");
    const pl_json *a = pl_json_root(doc);
    assert_true(pl_json_i64(pl_json_at(a, 0), INT64_MIN, INT64_MAX, &i) && i == INT64_MAX);
    assert_true(pl_json_i64(pl_json_at(a, 1), INT64_MIN, INT64_MAX, &i) && i == INT64_MIN);
    for (size_t k = 2; k < 5; k++)
        assert_false(pl_json_i64(pl_json_at(a, k), INT64_MIN, INT64_MAX, &i));
    assert_true(pl_json_i64(pl_json_at(a, 5), INT64_MIN, INT64_MAX, &i) && i == 0);
    assert_false(pl_json_i64(pl_json_at(a, 6), INT64_MIN, INT64_MAX, &i));
    pl_json_free(doc);
    doc = parse("1e999");
    double d;
    assert_false(pl_json_f64(pl_json_root(doc), -DBL_MAX, DBL_MAX, &d));
    pl_json_free(doc);
}

/* What is written reads back as the same double, and no shorter digits do. */
static void test_doubles(void **state)
{
    (void)state;
    pl_error err;
    pl_buf out;
    pl_buf_init(&out, 1 << 10, "test");
    for (int n = 0; n < 20000; n++) {
        double v;
        uint64_t bits = (uint64_t)below(SIZE_MAX) << 1 ^ below(SIZE_MAX);
        if (n % 3 == 0) /* powers of two, where the doubles below lie closer */
            bits = (uint64_t)below(2047) << 52;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        pl_buf_clear(&out);
        OK(pl_json_write_double(v, &out, &err));
        assert_true(strtod(out.data, NULL) == v);
        pl_json_doc *doc = parse(out.data);
        double back;
        assert_true(pl_json_is(pl_json_root(doc), PL_JSON_REAL));
        assert_true(pl_json_f64(pl_json_root(doc), -DBL_MAX, DBL_MAX, &back) && back == v);
        pl_json_free(doc);
    }
    pl_buf_clear(&out);
    OK(pl_json_write_double(7.120236347223045e-307, &out, &err)); /* 2^-1017: the nearest 16 digits do not read back */
    assert_string_equal(out.data, "7.120236347223045e-307");
    pl_buf_free(&out);
}

/* Errors of the buffer are passed on. */
static void test_write_cap(void **state)
{
    (void)state;
    pl_json_doc *doc = parse("{\"key\": [\"value\", 1.5, -0, null, true, \"\\u0001\\n\"]}");
    for (size_t cap = 0; cap < 48; cap++) {
        pl_error err;
        pl_buf out;
        pl_buf_init(&out, cap, "test");
        pl_status status = pl_json_write(pl_json_root(doc), &out, &err);
        size_t whole = strlen("{\"key\": [\"value\", 1.5, 0, null, true, \"\\u0001\\n\"]}");
        assert_int_equal(status, cap < whole ? PL_ELIMIT : PL_OK);
        pl_buf_free(&out);
    }
    pl_json_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spelling),
        cmocka_unit_test(test_duplicate_keys),
        cmocka_unit_test(test_many_duplicate_keys),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_surrogates),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_member_limit),
        cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_integer_range),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_write_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
