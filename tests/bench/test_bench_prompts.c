/* The prompt file: the one that comes along, and broken ones. */
#include "base/check.h"
#include "bench/prompts.h"

static void ours(void **state)
{
    (void)state;
    pl_bench_prompts p;
    pl_bench_set set;
    pl_error err;
    assert_int_equal(pl_bench_prompts_read(&p, "bench/prompts.json", &err), PL_OK);
    static const char *const groups[] = {"code", "chat", "prose"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(pl_bench_prompts_find(&p, groups[i], &set));
        assert_true(set.n >= 5);
    }
    assert_true(pl_bench_prompts_find(&p, "gpu-chat-no-think", &set));
    assert_int_equal(set.n, 1);
    assert_true(set.prompt[0].chat);
    assert_true(pl_bench_prompts_find(&p, "fibonacci-raw", &set));
    assert_false(set.prompt[0].chat);
    assert_false(pl_bench_prompts_find(&p, "nothing", &set));
    for (int i = 0; i < p.sets; i++) /* a name means one prompt */
        for (int j = 0; j < p.set[i].n; j++) {
            assert_true(pl_bench_prompts_find(&p, p.set[i].prompt[j].name, &set));
            assert_ptr_equal(set.prompt[0].text, p.set[i].prompt[j].text);
        }
    pl_bench_prompts_free(&p);
}

static void broken(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"groups\": {}}",
        "{\"groups\": {\"a\": []}}",
        "{\"groups\": {\"a\": {}}}",
        "{\"groups\": {\"a\": [1]}}",
        "{\"groups\": {\"a\": [{\"name\": \"x\", \"form\": \"chat\"}]}}",
        "{\"groups\": {\"a\": [{\"name\": \"x\", \"form\": \"poem\", \"prompt\": \"p\"}]}}",
        "{\"groups\": {\"a\": [{\"name\": \"x,y\", \"form\": \"chat\", \"prompt\": \"p\"}]}}",
        "{\"groups\": {\"a,b\": [{\"name\": \"x\", \"form\": \"chat\", \"prompt\": \"p\"}]}}",
        "{\"groups\": {\"\": [{\"name\": \"x\", \"form\": \"chat\", \"prompt\": \"p\"}]}}",
        "{\"groups\": {\"a\": [{\"name\": \"x\", \"form\": \"chat\", \"prompt\": \"\"}]}}"};
    pl_bench_prompts p;
    pl_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(PL_EFORMAT, &err, pl_bench_prompts_parse(&p, "file", bad[i], strlen(bad[i]), &err));
        pl_bench_prompts_free(&p);
    }
    assert_fails(PL_ENOTFOUND, &err, pl_bench_prompts_read(&p, "/nonexistent", &err));
    pl_bench_prompts_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ours), cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
