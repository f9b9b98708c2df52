/* Numbers from text, whole or not at all, and sizes that do not wrap. */
#include "base/bf16.h"
#include "base/check.h"
#include "base/num.h"

static void whole_numbers(void **state)
{
    (void)state;
    int64_t v = 77;
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "0x10",
                                      "1e3",
                                      "1.0",
                                      "-",
                                      "--1",
                                      "abc",
                                      "1a",
                                      "１",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(pl_parse_i64(bad[i], INT64_MIN, INT64_MAX, &v));
        assert_int_equal(v, 77);
    }
    assert_false(pl_parse_i64(NULL, 0, 9, &v));
    assert_true(pl_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MAX);
    assert_true(pl_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MIN);
    assert_true(pl_parse_i64("007", 0, 9, &v));
    assert_int_equal(v, 7);
    assert_false(pl_parse_i64("10", 0, 9, &v));
    assert_false(pl_parse_i64("-1", 0, 9, &v));
}

static void decimal_numbers(void **state)
{
    (void)state;
    double v = 77;
    static const char *const bad[] = {"",     " 1",    "1 ",  "+1", "0x1p3", "nan", "inf",
                                      "-inf", "1e999", "1,5", ".",  "e5",    "1e",  "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(pl_parse_f64(bad[i], -1e300, 1e300, &v));
        assert_true(v == 77);
    }
    assert_true(pl_parse_f64("0.25", 0, 1, &v));
    assert_true(v == 0.25);
    assert_true(pl_parse_f64("1e-3", 0, 1, &v));
    assert_true(v == 1e-3);
    assert_true(pl_parse_f64("-0.5", -1, 1, &v));
    assert_false(pl_parse_f64("1.0001", 0, 1, &v));
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    size_t r = 5;
    assert_true(pl_mul_size(1u << 20, 1u << 20, &r));
    assert_true(r == (size_t)1 << 40);
    assert_false(pl_mul_size(SIZE_MAX, 2, &r));
    assert_false(pl_mul_size((size_t)1 << 32, (size_t)1 << 32, &r));
    assert_false(pl_add_size(SIZE_MAX, 1, &r));
    assert_true(r == (size_t)1 << 40);
    assert_true(pl_add_size(SIZE_MAX, 0, &r));
    assert_true(r == SIZE_MAX);
}

/* Every bfloat16 survives the way through float32; halves round to even; a NaN stays one. */
static void bfloat16_round_trip(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        bool nan = (b & 0x7fff) > 0x7f80;
        pl_bf16 back = pl_bf16_from_f32(pl_bf16_to_f32((pl_bf16)b));
        assert_int_equal(back, nan ? (b | 0x40) : b);
    }
    assert_int_equal(pl_bf16_from_f32(pl_f32_from_bits(0x3f808000)), 0x3f80); /* half way, even below */
    assert_int_equal(pl_bf16_from_f32(pl_f32_from_bits(0x3f818000)), 0x3f82); /* half way, even above */
    assert_int_equal(pl_bf16_from_f32(pl_f32_from_bits(0x3f808001)), 0x3f81);
    assert_int_equal(pl_bf16_from_f32(pl_f32_from_bits(0x7f7fffff)), 0x7f80); /* the largest float rounds to infinity */
    assert_int_equal(pl_bf16_from_f32(pl_f32_from_bits(0x7f800001)), 0x7fc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimal_numbers),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(bfloat16_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
