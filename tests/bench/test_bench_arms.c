/* Names and order of arms, and their table. The runs themselves: tests/cli/test_bench.py. */
#include "base/check.h"
#include "bench/arms.h"

static void order(void **state)
{
    (void)state;
    static const char *const expected[] = {"", "aaaa", "abbaabba", "abccbaabccba"};
    for (int arms = 1; arms <= 3; arms++)
        for (int i = 0; i < 4 * arms; i++)
            assert_int_equal('a' + pl_bench_arm_of(arms, i), expected[arms][i]);
}

static void names(void **state)
{
    (void)state;
    pl_bench_arm arm;
    pl_error err;
    assert_int_equal(pl_bench_arm_read(&arm, "main=A=b serve --port {port}", &err), PL_OK);
    assert_string_equal(arm.name, "main");
    assert_string_equal(arm.command, "A=b serve --port {port}");
    static const char *const bad[] = {"",
                                      "x",
                                      "=x",
                                      "x=",
                                      "a b=c",
                                      "a|b=c",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=c"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(PL_EINVAL, &err, pl_bench_arm_read(&arm, bad[i], &err));
}

static void table(void **state)
{
    (void)state;
    json_t *report = json_loads(
        "{\"cells\": [{\"prompt\": \"code\", \"temperature\": 0.0, \"streams\": 4, \"tokens\": \"equal\", \"verdict\": "
        "\"failed\", \"runs\": [{\"arm\": \"b\", \"prompt\": \"code\", \"temperature\": 0.0, \"streams\": 4, "
        "\"attempt\": 0, \"error\": \"gone\"}], \"arms\": [{\"arm\": \"a\", \"runs\": 2, \"aggregate_tps\": 12.345, "
        "\"of_first\": 1.0, \"per_stream_tps\": 3.5, \"ttft_s_max\": 0.25}, {\"arm\": \"b\", \"runs\": 1, "
        "\"aggregate_tps\": null}]}], \"discarded\": [{\"arm\": \"a\", \"prompt\": \"code\", \"temperature\": 0.0, "
        "\"streams\": 4, \"attempt\": 1, \"why\": \"busy\"}]}",
        0, NULL);
    assert_non_null(report);
    pl_buf out;
    pl_error err;
    pl_buf_init(&out, 1 << 16, "table");
    assert_int_equal(pl_bench_arms_table(report, &out, &err), PL_OK);
    assert_non_null(strstr(out.data, "| code | 0 | 4 | a | 2 | 12.35 | 1.000 | 3.50 | 0.250 | equal | failed |\n"));
    assert_non_null(strstr(out.data, "| code | 0 | 4 | b | 1 | - | - | - | - | equal | failed |\n"));
    assert_non_null(strstr(out.data, "disturbed: 1\n\n* a, code, T 0, 4 streams, attempt 1: busy\n"));
    assert_non_null(strstr(out.data, "Failures\n\n* b, code, T 0, 4 streams, attempt 0: gone\n"));
    pl_buf_free(&out);
    pl_buf_init(&out, 64, "table");
    assert_fails(PL_ELIMIT, &err, pl_bench_arms_table(report, &out, &err));
    pl_buf_free(&out);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(names), cmocka_unit_test(table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
