/* Replies of the engine on a fake target: tokens, ends, hashes, events, bounds. */
#include "lanes/lanes_kit.h"

static void a_reply_is_what_the_target_says(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    int32_t prompt[3 * FAKE_PIECE + 5], expected[40], token[40];
    for (size_t len = 1; len <= sizeof prompt / sizeof *prompt; len += 7) {
        for (size_t i = 0; i < len; i++)
            prompt[i] = (int32_t)((i * 31 + len) % FAKE_VOCAB);
        kit_expect(prompt, len, expected, 40);
        pl_request request = kit_request(prompt, len, 40);
        pl_stream *stream = kit_submit(&k, &request);
        pl_outcome o = kit_read(stream, token, 40);
        assert_int_equal(o.reason, PL_FINISH_LENGTH);
        assert_int_equal(o.prompt_tokens, len);
        assert_int_equal(o.tokens, 40);
        assert_memory_equal(token, expected, sizeof token);
        char sha[65];
        kit_sha(expected, 40, sha);
        assert_string_equal(o.token_sha, sha);
        assert_true(o.timings.first >= o.timings.queued + o.timings.prefill);
        pl_stream_release(stream);
    }
    kit_close(&k);
}

static void the_end_token_is_part_of_the_reply(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    const int32_t prompt[] = {5, 6, 7};
    int32_t expected[30], token[30];
    kit_expect(prompt, 3, expected, 30);
    /* Let the tenth token be the end, unless it came before. */
    int32_t eos = expected[9];
    size_t at = 0;
    while (expected[at] != eos)
        at++;
    pl_request request = kit_request(prompt, 3, 30);
    request.eos = eos;
    pl_stream *stream = kit_submit(&k, &request);
    pl_outcome o = kit_read(stream, token, 30);
    assert_int_equal(o.reason, PL_FINISH_STOP);
    assert_false(o.by_stop_check);
    assert_int_equal(o.tokens, at + 1);
    assert_int_equal(token[at], eos);
    char sha[65];
    kit_sha(expected, at + 1, sha);
    assert_string_equal(o.token_sha, sha);
    pl_stream_release(stream);
    kit_close(&k);
}

typedef struct stopper {
    int32_t seen[64];
    size_t count, stop_at;
    int freed;
} stopper;

static bool stop_check(void *arg, int32_t token)
{
    stopper *s = arg;
    s->seen[s->count++] = token;
    return s->count == s->stop_at;
}

static void stop_free(void *arg)
{
    ((stopper *)arg)->freed++;
}

static void a_stop_check_sees_every_token_and_ends_the_reply(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    const int32_t prompt[] = {9};
    int32_t expected[20], token[20];
    kit_expect(prompt, 1, expected, 20);
    stopper s = {.stop_at = 7};
    pl_request request = kit_request(prompt, 1, 20);
    request.stop = stop_check;
    request.stop_arg = &s;
    request.stop_free = stop_free;
    pl_stream *stream = kit_submit(&k, &request);
    pl_outcome o = kit_read(stream, token, 20);
    assert_int_equal(o.reason, PL_FINISH_STOP);
    assert_true(o.by_stop_check);
    assert_int_equal(o.tokens, 7);
    assert_memory_equal(s.seen, expected, 7 * sizeof *expected);
    pl_stream_release(stream);
    kit_close(&k);
    assert_int_equal(s.freed, 1);
}

static void events_come_in_order(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    int32_t prompt[2 * FAKE_PIECE + 1];
    for (size_t i = 0; i < sizeof prompt / sizeof *prompt; i++)
        prompt[i] = (int32_t)i % FAKE_VOCAB;
    k.target.hold_window = 0;
    pl_request request = kit_request(prompt, sizeof prompt / sizeof *prompt, 3);
    pl_stream *stream = kit_submit(&k, &request);
    assert_true(fake_await_hold(&k.target)); /* the first token is out, the second is not */
    pl_stream_event e;
    assert_true(pl_stream_next(stream, &e));
    assert_int_equal(e.kind, PL_STREAM_STARTED);
    assert_true(pl_stream_next(stream, &e));
    assert_int_equal(e.kind, PL_STREAM_PREFILL);
    assert_int_equal(e.prefilled, 2 * FAKE_PIECE + 1); /* progress is told as it stands */
    assert_true(pl_stream_next(stream, &e));
    assert_int_equal(e.kind, PL_STREAM_TOKEN);
    assert_false(pl_stream_next(stream, &e));
    int64_t before = pl_now_ns();
    assert_false(pl_stream_wait(stream, 30));
    assert_true(pl_now_ns() - before >= 30000000);
    assert_false(pl_stream_wait(stream, 0));
    fake_go(&k.target);
    assert_true(pl_stream_wait(stream, -1));
    pl_stream_release(stream);
    kit_close(&k);
}

static void logprobs_come_with_each_token(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    const int32_t prompt[] = {4, 8};
    int32_t expected[6];
    kit_expect(prompt, 2, expected, 6);
    pl_request request = kit_request(prompt, 2, 6);
    request.top_logprobs = 3;
    pl_stream *stream = kit_submit(&k, &request);
    size_t n = 0;
    for (bool over = false; !over;) {
        pl_stream_event e;
        if (!pl_stream_next(stream, &e)) {
            assert_true(pl_stream_wait(stream, 20000));
            continue;
        }
        over = e.kind == PL_STREAM_FINISHED;
        if (e.kind != PL_STREAM_TOKEN)
            continue;
        assert_int_equal(e.token, expected[n++]);
        assert_int_equal(e.tops, 3);
        assert_int_equal(e.top[0], e.token); /* greedy: the likeliest */
        assert_true(e.top_logprob[0] == e.logprob);
        assert_true(e.logprob < 0 && e.logprob > e.top_logprob[1] && e.top_logprob[1] >= e.top_logprob[2]);
    }
    assert_int_equal(n, 6);
    pl_stream_release(stream);
    kit_close(&k);
}

static void sampled_replies_repeat_with_their_seed(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    const int32_t prompt[] = {1, 2, 3};
    int32_t token[3][60];
    char sha[3][65];
    for (int i = 0; i < 3; i++) {
        pl_request request = kit_request(prompt, 3, 60);
        request.sampling.temperature = 2;
        request.sampling.seed = i < 2 ? 77 : 78;
        pl_stream *stream = kit_submit(&k, &request);
        pl_outcome o = kit_read(stream, token[i], 60);
        memcpy(sha[i], o.token_sha, sizeof sha[i]);
        pl_stream_release(stream);
    }
    assert_memory_equal(token[0], token[1], sizeof token[0]);
    assert_string_equal(sha[0], sha[1]);
    assert_memory_not_equal(token[0], token[2], sizeof token[0]);
    kit_close(&k);
}

static void requests_out_of_bounds_are_refused(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    int32_t prompt[FAKE_CONTEXT];
    for (int i = 0; i < FAKE_CONTEXT; i++)
        prompt[i] = 1;
    struct {
        size_t len;
        int64_t max;
        int32_t first;
        int tops;
        pl_status status;
        const char *param;
    } cases[] = {
        {0, 1, 1, -1, PL_EINVAL, "prompt"},
        {1, 0, 1, -1, PL_EINVAL, "max_tokens"},
        {1, -5, 1, -1, PL_EINVAL, "max_tokens"},
        {1, 1, FAKE_VOCAB, -1, PL_EINVAL, "prompt"},
        {1, 1, -1, -1, PL_EINVAL, "prompt"},
        {1, 1, 1, PL_TOP_LOGPROBS_MAX + 1, PL_EINVAL, "top_logprobs"},
        {FAKE_CONTEXT, 1, 1, -1, PL_ELIMIT, "prompt"},
        {FAKE_CONTEXT - 3, 4, 1, -1, PL_ELIMIT, "max_tokens"},
        {1, INT64_MAX, 1, -1, PL_ELIMIT, "max_tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err;
        pl_stream *stream = (pl_stream *)&k;
        prompt[0] = cases[i].first;
        pl_request request = kit_request(prompt, cases[i].len, cases[i].max);
        request.top_logprobs = cases[i].tops;
        assert_int_equal(pl_engine_submit(k.engine, &request, 1, &stream, &err), cases[i].status);
        assert_string_equal(err.param, cases[i].param);
        assert_null(stream);
    }
    prompt[0] = 1;
    pl_request request = kit_request(prompt, FAKE_CONTEXT - 3, 3); /* just fits */
    int32_t token[3];
    pl_stream *stream = kit_submit(&k, &request);
    assert_int_equal(kit_read(stream, token, 3).tokens, 3);
    pl_stream_release(stream);
    kit_close(&k);
}

static void barred_tokens_end_in_an_error_not_in_a_crash(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    const int32_t prompt[] = {1};
    pl_bias bias[FAKE_VOCAB];
    for (int i = 0; i < FAKE_VOCAB; i++)
        bias[i] = (pl_bias){.token = i, .add = -INFINITY};
    pl_request request = kit_request(prompt, 1, 3);
    request.sampling.bias = bias;
    request.sampling.biases = FAKE_VOCAB;
    int32_t token[3];
    pl_stream *stream = kit_submit(&k, &request);
    pl_outcome o = kit_read(stream, token, 3);
    assert_int_equal(o.reason, PL_FINISH_ERROR);
    assert_string_equal(o.error.param, "logit_bias");
    pl_stream_release(stream);
    assert_false(pl_engine_fault(k.engine, NULL));
    kit_close(&k);
}

static void logits_that_are_no_numbers_are_a_fault(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 4);
    k.target.broken_logits = true;
    const int32_t prompt[] = {1};
    pl_request request = kit_request(prompt, 1, 3);
    int32_t token[3];
    pl_stream *stream = kit_submit(&k, &request);
    pl_outcome o = kit_read(stream, token, 3);
    assert_int_equal(o.reason, PL_FINISH_ERROR);
    assert_int_equal(o.error.status, PL_EFAULT);
    assert_true(pl_engine_fault(k.engine, NULL));
    pl_stream_release(stream);
    kit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_what_the_target_says),
        cmocka_unit_test(the_end_token_is_part_of_the_reply),
        cmocka_unit_test(a_stop_check_sees_every_token_and_ends_the_reply),
        cmocka_unit_test(events_come_in_order),
        cmocka_unit_test(logprobs_come_with_each_token),
        cmocka_unit_test(sampled_replies_repeat_with_their_seed),
        cmocka_unit_test(requests_out_of_bounds_are_refused),
        cmocka_unit_test(logits_that_are_no_numbers_are_a_fault),
        cmocka_unit_test(barred_tokens_end_in_an_error_not_in_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
