/* Rounds by themselves: every accept length at every place, ends inside an accepted block, what is counted. */
#include "lanes/core_kit.h"

static const pl_core_settings drafting = {.drafts = true, .plain_streams = 0, .joint = 1, .fixed_depth = 5};
static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};
enum { PROMPT = sizeof prompt / sizeof *prompt };

typedef struct script {
    int first, then; /* right drafts of proposal number `first` are `then`, of all others 0 */
    int every;       /* or: of all proposals, when not -1 */
    int asked;
} script;

static int scripted(void *arg, int slot)
{
    (void)slot;
    script *s = arg;
    int number = s->asked++;
    if (s->every >= 0)
        return s->every;
    return number == s->first ? s->then : 0;
}

static pl_outcome run_one(const pl_request *q, const pl_core_settings *settings, script *s, plain *expected)
{
    kit k;
    kit_open(&k, 1, 16, settings);
    k.pair.right = s ? scripted : NULL;
    k.pair.arg = s;
    kit_admit(&k, kit_stream(&k, q));
    kit_run(&k);
    plain_reply(q, NULL, expected);
    assert_true(kit_equal(&k.ending[0], expected));
    pl_outcome outcome = k.ending[0].outcome;
    /* However it ended: one token from the prompt, one a round, and the drafts that were kept. */
    assert_int_equal(outcome.numbers.rounds + outcome.numbers.accepted + 1, outcome.tokens);
    kit_close(&k);
    return outcome;
}

static void every_accept_length_everywhere(void **state)
{
    (void)state;
    plain expected;
    for (int sampled = 0; sampled < 2; sampled++)
        for (int right = 0; right <= PAIR_BLOCK; right++)
            for (int at = 0; at < 24; at++) {
                script s = {.first = at, .then = right, .every = -1};
                pl_request q = kit_request(prompt, PROMPT, 40);
                q.sampling.temperature = sampled ? 1 : 0;
                q.sampling.seed = 7;
                pl_outcome o = run_one(&q, &drafting, &s, &expected);
                /* One token from the prompt, one a round, and the drafts that were right. */
                assert_int_equal(o.numbers.rounds + 1 + o.numbers.accepted, 40);
                if (!o.numbers.copied)
                    assert_int_equal(o.numbers.accepted, right);
            }
}

static void a_drafter_that_is_right_saves_its_rounds(void **state)
{
    (void)state;
    plain expected;
    pl_request q = kit_request(prompt, PROMPT, 61);
    q.sampling = (pl_sampling){.temperature = 0.8f,
                               .top_k = 20,
                               .top_p = 0.9f,
                               .repetition_penalty = 1.2f,
                               .presence_penalty = 0.3f,
                               .frequency_penalty = 0.2f,
                               .seed = 99};
    script s = {.every = PAIR_BLOCK};
    pl_outcome o = run_one(&q, &drafting, &s, &expected);
    /* 60 tokens behind the first, six a round: the drafts were drawn with the stream's own noise. */
    assert_int_equal(o.numbers.rounds, 10);
    assert_int_equal(o.numbers.accepted, 50);
    q.draft = false;
    o = run_one(&q, &drafting, &s, &expected);
    assert_int_equal(o.numbers.rounds, 60);
    assert_int_equal(o.numbers.plain_rounds, 60);
    assert_int_equal(o.numbers.asks, 0);
}

/* Rounds of so many streams are plain: no ask, no pass, no ingest. */
static void plain_rounds_from_three_streams(void **state)
{
    (void)state;
    kit k;
    pl_core_settings settings = drafting;
    settings.plain_streams = 3;
    kit_open(&k, 3, 64, &settings);
    for (int i = 0; i < 3; i++) {
        pl_request q = kit_request(prompt, PROMPT, 100 + 50 * i);
        kit_admit(&k, kit_stream(&k, &q));
    }
    while (k.core.prompts)
        kit_step(&k);
    int passes = k.pair.passes;
    assert_true(passes > 0); /* while they were fewer */
    uint64_t plain_before = k.core.totals.numbers.plain_rounds;
    for (int i = 0; i < 10; i++)
        kit_step(&k);
    assert_int_equal(k.pair.passes, passes);
    assert_int_equal(k.core.totals.numbers.plain_rounds, plain_before + 30);
    kit_run(&k);
    assert_true(k.pair.passes > passes); /* and when they are fewer again: one ingest catches up */
    kit_close(&k);
}

static bool stop_at(void *arg, int32_t token)
{
    (void)token;
    int *left = arg;
    return --*left == 0;
}

/* The end token, a stop string's token, the length, each at every place of accepted blocks. */
static void ends_inside_a_block(void **state)
{
    (void)state;
    plain whole, expected;
    pl_request q = kit_request(prompt, PROMPT, 40);
    plain_reply(&q, NULL, &whole);
    for (size_t end = 1; end <= 30; end++) {
        script s = {.every = PAIR_BLOCK};
        q = kit_request(prompt, PROMPT, (int64_t)end);
        pl_outcome o = run_one(&q, &drafting, &s, &expected);
        assert_int_equal(o.reason, PL_FINISH_LENGTH);
        assert_int_equal(o.tokens, end);

        q = kit_request(prompt, PROMPT, 40);
        q.eos = whole.token[end - 1];
        o = run_one(&q, &drafting, &s, &expected);
        assert_int_equal(o.reason, PL_FINISH_STOP);
        assert_false(o.by_stop_check);

        int left = (int)end, again = (int)end;
        kit k;
        kit_open(&k, 1, 16, &drafting);
        q = kit_request(prompt, PROMPT, 40);
        q.stop = stop_at;
        q.stop_arg = &left;
        kit_admit(&k, kit_stream(&k, &q));
        kit_run(&k);
        plain_reply(&q, &again, &expected);
        assert_true(kit_equal(&k.ending[0], &expected));
        assert_int_equal(expected.count, end);
        assert_int_equal(left, 0); /* asked once for every token, and never past the end */
        kit_close(&k);
    }
}

static void a_thinking_budget_cuts_at_its_token(void **state)
{
    (void)state;
    plain expected;
    for (int64_t budget = 1; budget < 14; budget++) {
        script s = {.every = PAIR_BLOCK};
        pl_request q = kit_request(prompt, PROMPT, 30);
        q.think_budget = budget;
        q.think_end = 60;
        (void)run_one(&q, &drafting, &s, &expected);
        size_t closed = 0;
        while (closed < expected.count && expected.token[closed] != 60)
            closed++;
        assert_true(closed <= (size_t)budget);
    }
}

static float wild(void *arg)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0};
    return odd[(*(unsigned *)arg)++ % 6];
}

static int garbage(void *arg, int slot)
{
    (void)arg;
    return slot % 2 ? -1 : PAIR_BLOCK + 1;
}

/* Ids that are none and confidences that are no numbers cost time and nothing else. */
static void a_broken_drafter_changes_nothing(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        kit k;
        pl_core_settings settings = drafting;
        settings.fixed_depth = fixed ? 5 : 0;
        kit_open(&k, 2, 64, &settings);
        unsigned turn = 0;
        k.pair.right = garbage;
        k.pair.confidence = wild;
        k.pair.arg = &turn;
        pl_request q = kit_request(prompt, PROMPT, 60);
        plain expected;
        plain_reply(&q, NULL, &expected);
        for (int i = 0; i < 2; i++)
            kit_admit(&k, kit_stream(&k, &q));
        kit_run(&k);
        assert_true(k.pair.passes > 0);
        for (int i = 0; i < 2; i++)
            assert_true(kit_equal(&k.ending[i], &expected));
        kit_close(&k);
    }
}

/* What stood in the context before is proposed again, without the drafter. */
static void copies_are_found_and_kept(void **state)
{
    (void)state;
    kit k;
    pl_core_settings settings = {.drafts = true, .joint = 1, .fixed_depth = 15};
    int32_t words[2 * PROMPT]; /* longer than what the fake's next token depends on */
    memcpy(words, prompt, sizeof prompt);
    memcpy(words + PROMPT, prompt + 1, sizeof prompt - sizeof *prompt);
    words[2 * PROMPT - 1] = 11;
    pl_request q = kit_request(words, 2 * PROMPT, 100);
    plain first, expected;
    plain_reply(&q, NULL, &first);
    /* The prompt holds the reply that the same words will have again. */
    int32_t twice[PROMPT * 4 + 100];
    memcpy(twice, words, sizeof words);
    memcpy(twice + 2 * PROMPT, first.token, 100 * sizeof *twice);
    memcpy(twice + 2 * PROMPT + 100, words, sizeof words);
    kit_open(&k, 1, 16, &settings);
    k.core.drafter.block = 0;
    q = kit_request(twice, PROMPT * 4 + 100, 61);
    kit_admit(&k, kit_stream(&k, &q));
    kit_run(&k);
    plain_reply(&q, NULL, &expected);
    assert_true(kit_equal(&k.ending[0], &expected));
    const pl_numbers *n = &k.ending[0].outcome.numbers;
    assert_int_equal(n->asks, 0);
    assert_int_equal(n->drafted, n->copied);
    assert_int_equal(n->copied, n->copied_kept); /* the second time around all of it is known */
    assert_int_equal(n->rounds, 4);              /* 60 tokens behind the first, sixteen a round */
    kit_close(&k);
}

/* More replies than the launch has rows: everyone gets a turn, and as many as any other. */
static void turns_are_fair(void **state)
{
    (void)state;
    kit k;
    pl_core_settings settings = {.drafts = false, .joint = 1};
    kit_open(&k, 33, 10, &settings);
    pl_request q = kit_request(prompt, PROMPT, 400);
    for (int i = 0; i < 33; i++)
        kit_admit(&k, kit_stream(&k, &q));
    while (k.core.prompts)
        kit_step(&k);
    size_t before[33];
    for (int i = 0; i < 33; i++)
        before[i] = k.ending[i].stream->count;
    for (int i = 0; i < 33 * 4; i++)
        kit_step(&k);
    for (int i = 0; i < 33; i++)
        assert_int_equal(k.ending[i].stream->count - before[i], 40);
    kit_run(&k);
    kit_close(&k);
}

/* A launch that fails ends those who were in it; a fault ends all. */
static void failures_end_replies(void **state)
{
    (void)state;
    for (int fault = 0; fault < 2; fault++) {
        kit k;
        kit_open(&k, 2, 64, &drafting);
        pl_request q = kit_request(prompt, PROMPT, 100);
        for (int i = 0; i < 2; i++)
            kit_admit(&k, kit_stream(&k, &q));
        while (k.core.prompts)
            kit_step(&k);
        k.pair.window_fails = fault ? PL_EFAULT : PL_ENOMEM;
        pl_error err;
        assert_int_equal(pl__core_step(&k.core, &err), fault ? PL_EFAULT : PL_OK);
        assert_false(pl__core_busy(&k.core));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(k.ending[i].outcome.reason, PL_FINISH_ERROR);
            assert_int_equal(k.ending[i].outcome.error.status, fault ? PL_EFAULT : PL_ENOMEM);
        }
        kit_close(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_accept_length_everywhere),
        cmocka_unit_test(a_drafter_that_is_right_saves_its_rounds),
        cmocka_unit_test(plain_rounds_from_three_streams),
        cmocka_unit_test(ends_inside_a_block),
        cmocka_unit_test(a_thinking_budget_cuts_at_its_token),
        cmocka_unit_test(a_broken_drafter_changes_nothing),
        cmocka_unit_test(copies_are_found_and_kept),
        cmocka_unit_test(turns_are_fair),
        cmocka_unit_test(failures_end_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
