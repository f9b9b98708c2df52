/* Random schedules on the fake pair, whose drafter proposes anything up to no tokens at all. */
#include "lanes/schedule.h"

enum { SCHEDULES = 1000 };

static int any_right(void *arg, int slot)
{
    (void)arg, (void)slot;
    return below(12) == 0 ? below(2) ? -1 : PAIR_BLOCK + 1 : below(PAIR_BLOCK + 1);
}

static float any_confidence(void *arg)
{
    (void)arg;
    return below(20) == 0 ? NAN : 8 * some() - 4;
}

static void run_schedule(uint64_t seed)
{
    static kit k;
    static plain_model m;
    static float logits[PAIR_VOCAB];
    if (!m.sampler)
        plain_open(&m, plain_pair_logits, logits, PAIR_VOCAB);
    state = seed;
    int n = 1 + below(below(3) ? 6 : STREAMS), steps = 1 + below(200);
    pl_core_settings settings = any_settings();
    kit_open(&k, 1 + below(below(2) ? 4 : 33), PAIR_WINDOW + below(PAIR_ROWS - PAIR_WINDOW + 1), &settings);
    k.pair.right = any_right;
    k.pair.confidence = any_confidence;
    run_streams(&k, &m, n, steps, seed);
    kit_close(&k);
}

static void every_reply_is_the_plain_one(void **unused)
{
    (void)unused;
    run_schedules(run_schedule, SCHEDULES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_reply_is_the_plain_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
