/* UTF-8, strict: every code point there and back, every invalid form, and the repair of what is not valid. */
#include "text/tokenizer_check.h"

static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        char bytes[4];
        uint32_t back = 0;
        int n = pl_utf8_put(cp, bytes);
        if (cp >= 0xd800 && cp < 0xe000) {
            assert_int_equal(pl_utf8_next(bytes, 3, &back), -1); /* ED must be followed by 80..9F */
            continue;
        }
        assert_int_equal(pl_utf8_next(bytes, (size_t)n, &back), n);
        assert_int_equal(back, cp);
        for (int cut = 1; cut < n; cut++) {
            assert_int_equal(pl_utf8_next(bytes, (size_t)cut, &back), -cut);
            assert_true(pl_utf8_partial(bytes, (size_t)cut));
        }
        assert_false(pl_utf8_partial(bytes, (size_t)n));
    }
}

/* All texts of three bytes: the lengths add up, and what is accepted is what pl_utf8_put writes. */
static void test_every_three_bytes(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < 1u << 24; v += v % 7 == 0 ? 1 : 3) {
        char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v}, put[4];
        uint32_t cp = 0;
        int n = pl_utf8_next(bytes, 3, &cp);
        assert_true(n != 0 && n >= -3 && n <= 3);
        if (n > 0) {
            assert_int_equal(pl_utf8_put(cp, put), n);
            assert_memory_equal(put, bytes, (size_t)n);
        } else if (n < -1) { /* a valid start of some character */
            assert_true(pl_utf8_partial(bytes, (size_t)-n));
        }
    }
}

static void check_repair(const char *text, size_t len, const char *expected)
{
    pl_buf out;
    pl_error err;
    pl_buf_init(&out, 1000, "text");
    assert_int_equal(pl_utf8_repair(&out, text, len, &err), PL_OK);
    assert_string_equal(out.data ? out.data : "", expected);
    assert_int_equal(pl_utf8_check(out.data, out.len), out.len);
    pl_buf_free(&out);
}

static void test_repair(void **state)
{
    (void)state;
    check_repair("", 0, "");
    check_repair("abc", 3, "abc");
    check_repair("a\xff"
                 "b",
                 3, "a\ufffdb");
    check_repair("\xe4\xbd", 2, "\ufffd"); /* one for a start that never ends */
    check_repair("\xe4\xbd"
                 "a",
                 3, "\ufffda");
    check_repair("\xc0\xaf", 2, "\ufffd\ufffd");           /* an overlong form has no valid start */
    check_repair("\xed\xa0\x80", 3, "\ufffd\ufffd\ufffd"); /* nor has a surrogate */
    check_repair("\xf0\x9f\x98", 3, "\ufffd");
    check_repair("\xf4\x90\x80\x80", 4, "\ufffd\ufffd\ufffd\ufffd");
    check_repair("\xf0\x9f\x98\x80\x80", 5, "\U0001f600\ufffd");
}

static void test_partial(void **state)
{
    (void)state;
    assert_false(pl_utf8_partial("", 0));
    assert_false(pl_utf8_partial("a", 1));
    assert_false(pl_utf8_partial("\x80", 1));
    assert_false(pl_utf8_partial("\xff", 1));
    assert_false(pl_utf8_partial("\xc3(", 2));
    assert_false(pl_utf8_partial("\xe0\x80", 2)); /* would be overlong */
    assert_true(pl_utf8_partial("\xe0\xa0", 2));
    assert_true(pl_utf8_partial("\xf0\x9f\x98", 3));
    assert_false(pl_utf8_partial("\xf0\x9f\x98\x80", 4));
}

static void test_check_names_the_first_fault(void **state)
{
    (void)state;
    assert_int_equal(pl_utf8_check("", 0), 0);
    assert_int_equal(pl_utf8_check("a\0b", 3), 3);
    assert_int_equal(pl_utf8_check("ab\x80", 3), 2);
    assert_int_equal(pl_utf8_check("é\xe4\xbd", 4), 2);
}

static void test_ids_have_a_cap(void **state)
{
    (void)state;
    pl_ids ids;
    pl_error err;
    const int32_t three[] = {1, 2, 3};
    pl_ids_init(&ids, 100);
    for (int i = 0; i < 33; i++)
        assert_int_equal(pl_ids_add(&ids, three, 3, &err), PL_OK);
    assert_fails(PL_ELIMIT, &err, pl_ids_add(&ids, three, 2, &err));
    assert_int_equal(ids.len, 99);
    assert_int_equal(pl_ids_push(&ids, 7, &err), PL_OK);
    assert_fails(PL_ELIMIT, &err, pl_ids_push(&ids, 8, &err));
    assert_int_equal(pl_ids_add(&ids, NULL, 0, &err), PL_OK);
    assert_int_equal(ids.data[99], 7);
    pl_ids_clear(&ids);
    assert_int_equal(pl_ids_push(&ids, 9, &err), PL_OK);
    assert_int_equal(ids.len, 1);
    pl_ids_free(&ids);
    assert_null(ids.data);
    assert_int_equal(ids.cap, 100);
    pl_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_every_three_bytes),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_check_names_the_first_fault),
        cmocka_unit_test(test_ids_have_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
