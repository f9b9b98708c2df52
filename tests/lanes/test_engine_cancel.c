/* Giving replies up: while they wait, in the prompt, between tokens, all at once; readers that do not read; a model
 * that fails. */
#include "lanes/lanes_kit.h"

static const int32_t prompt[] = {3, 1, 4, 1, 5};
enum { PROMPT = sizeof prompt / sizeof *prompt };

static void requests_run_in_order_of_arrival(void **state)
{
    (void)state;
    enum { N = 12 };
    kit k;
    kit_open(&k, N);
    k.target.hold_prefill = 0;
    pl_stream *stream[N];
    int32_t first[N];
    for (int i = 0; i < N; i++) {
        first[i] = (i * 5) % N; /* any order but that of the numbers */
        pl_request request = kit_request(&first[i], 1, 2 + i);
        stream[i] = kit_submit(&k, &request);
    }
    assert_true(fake_await_hold(&k.target));
    pl_engine_counts c;
    pl_engine_counts_now(k.engine, &c);
    assert_int_equal(c.running, 1);
    assert_int_equal(c.waiting, N - 1);
    fake_go(&k.target);
    for (int i = N - 1; i >= 0; i--) {
        int32_t token[64];
        assert_int_equal(kit_read(stream[i], token, 64).tokens, 2 + i);
        pl_stream_release(stream[i]);
    }
    kit_close(&k);
    assert_memory_equal(k.target.order, first, sizeof first);
}

static void a_waiting_request_is_cancelled_at_once(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 8);
    k.target.hold_prefill = 0;
    pl_request request = kit_request(prompt, PROMPT, 4);
    pl_stream *running = kit_submit(&k, &request), *waiting[3];
    for (int i = 0; i < 3; i++)
        waiting[i] = kit_submit(&k, &request);
    assert_true(fake_await_hold(&k.target));
    int32_t token[4];
    pl_stream_cancel(waiting[1]);
    pl_outcome o = kit_read(waiting[1], token, 4); /* though the one before it still runs */
    assert_int_equal(o.reason, PL_FINISH_CANCELLED);
    assert_int_equal(o.tokens, 0);
    assert_string_equal(o.token_sha, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    pl_stream_release(waiting[0]); /* releasing is cancelling */
    pl_engine_counts c;
    pl_engine_counts_now(k.engine, &c);
    assert_int_equal(c.waiting, 1);
    fake_go(&k.target);
    assert_int_equal(kit_read(running, token, 4).reason, PL_FINISH_LENGTH);
    assert_int_equal(kit_read(waiting[2], token, 4).reason, PL_FINISH_LENGTH);
    pl_stream_release(running);
    pl_stream_release(waiting[1]);
    pl_stream_release(waiting[2]);
    assert_int_equal(k.target.admits, 2);
    kit_close(&k);
}

static void a_running_request_is_cancelled_inside_a_piece_and_between_tokens(void **state)
{
    (void)state;
    int32_t long_prompt[6 * FAKE_PIECE], token[3000];
    for (int i = 0; i < 6 * FAKE_PIECE; i++)
        long_prompt[i] = i % FAKE_VOCAB;
    for (int at = 0; at < 12; at++) { /* in piece 0..5, then in window 0, 20, 40, ... */
        kit k;
        kit_open(&k, 8);
        atomic_int *hold = at < 6 ? &k.target.hold_prefill : &k.target.hold_window;
        *hold = at < 6 ? at : (at - 6) * 20;
        pl_request request = kit_request(long_prompt, 6 * FAKE_PIECE, 3000);
        pl_stream *stream = kit_submit(&k, &request);
        pl_request next = kit_request(prompt, PROMPT, 3);
        pl_stream *behind = kit_submit(&k, &next);
        assert_true(fake_await_hold(&k.target));
        pl_stream_cancel(stream);
        pl_outcome o = kit_read(stream, token, 3000); /* the hold is still on: only the cancel ends it */
        assert_int_equal(o.reason, PL_FINISH_CANCELLED);
        assert_int_equal(o.tokens, at < 6 ? 0 : (at - 6) * 20 + 1);
        fake_go(&k.target);
        int32_t expected[3];
        kit_expect(prompt, PROMPT, expected, 3);
        assert_int_equal(kit_read(behind, token, 3).reason, PL_FINISH_LENGTH);
        assert_memory_equal(token, expected, sizeof expected);
        pl_stream_release(stream);
        pl_stream_release(behind);
        kit_close(&k);
    }
}

static void a_reader_that_sleeps_loses_nothing_and_holds_nothing_up(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 8);
    pl_request request = kit_request(prompt, PROMPT, 2000);
    pl_stream *slow = kit_submit(&k, &request);
    pl_request small = kit_request(prompt, PROMPT, 3);
    pl_stream *quick = kit_submit(&k, &small);
    int32_t expected[2000], token[2000];
    kit_expect(prompt, PROMPT, expected, 2000);
    assert_int_equal(kit_read(quick, token, 3).tokens, 3); /* so the slow one's reply is whole, unread */
    assert_int_equal(kit_read(slow, token, 2000).tokens, 2000);
    assert_memory_equal(token, expected, sizeof expected);
    pl_stream_release(slow);
    pl_stream_release(quick);
    kit_close(&k);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 2);
    k.target.hold_prefill = 0;
    pl_request request[3];
    for (int i = 0; i < 3; i++)
        request[i] = kit_request(prompt, PROMPT, 2);
    pl_stream *running = kit_submit(&k, request), *one, *three[3], *none[2];
    assert_true(fake_await_hold(&k.target));
    one = kit_submit(&k, request);
    pl_error err;
    /* A submission counts once, whatever it holds. */
    assert_int_equal(pl_engine_submit(k.engine, request, 3, three, &err), PL_OK);
    assert_int_equal(pl_engine_submit(k.engine, request, 2, none, &err), PL_EBUSY);
    assert_null(none[0]);
    assert_null(none[1]);
    /* It leaves the queue with its last request, in whatever order they are cancelled. */
    pl_stream_release(three[0]);
    pl_stream_release(three[2]);
    assert_int_equal(pl_engine_submit(k.engine, request, 1, none, &err), PL_EBUSY);
    pl_stream_release(three[1]);
    assert_int_equal(pl_engine_submit(k.engine, request, 1, none, &err), PL_OK);
    pl_engine_counts c;
    pl_engine_counts_now(k.engine, &c);
    assert_int_equal(c.waiting, 2);
    assert_int_equal(c.refused, 3);
    pl_engine_drain(k.engine);
    pl_stream *late;
    assert_int_equal(pl_engine_submit(k.engine, request, 1, &late, &err), PL_EBUSY);
    fake_go(&k.target);
    int32_t token[2];
    pl_stream *left[] = {running, one, none[0]}; /* what was there before goes on */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kit_read(left[i], token, 2).reason, PL_FINISH_LENGTH);
        pl_stream_release(left[i]);
    }
    kit_close(&k);
}

static void the_last_of_a_submission_frees_its_place(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 1);
    k.target.hold_prefill = 0;
    pl_request request[3];
    for (int i = 0; i < 3; i++)
        request[i] = kit_request(prompt, PROMPT, 2);
    pl_stream *group[3], *next;
    pl_error err;
    assert_int_equal(pl_engine_submit(k.engine, request, 3, group, &err), PL_OK);
    assert_true(fake_await_hold(&k.target)); /* the first of them runs, two wait */
    assert_int_equal(pl_engine_submit(k.engine, request, 1, &next, &err), PL_EBUSY);
    pl_stream_cancel(group[1]);
    assert_int_equal(pl_engine_submit(k.engine, request, 1, &next, &err), PL_EBUSY);
    pl_stream_cancel(group[2]);
    assert_int_equal(pl_engine_submit(k.engine, request, 1, &next, &err), PL_OK);
    fake_go(&k.target);
    int32_t token[2];
    assert_int_equal(kit_read(next, token, 2).reason, PL_FINISH_LENGTH);
    for (int i = 0; i < 3; i++)
        pl_stream_release(group[i]);
    pl_stream_release(next);
    kit_close(&k);
}

static void closing_ends_everything(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 8);
    k.target.hold_window = 3;
    pl_request request = kit_request(prompt, PROMPT, 100);
    pl_stream *stream[4];
    for (int i = 0; i < 4; i++)
        stream[i] = kit_submit(&k, &request);
    assert_true(fake_await_hold(&k.target));
    pl_engine_close(k.engine);
    for (int i = 0; i < 4; i++) {
        int32_t token[100];
        pl_outcome o = kit_read(stream[i], token, 100); /* still readable */
        assert_int_equal(o.reason, PL_FINISH_CANCELLED);
        assert_int_equal(o.tokens, i == 0 ? 4 : 0);
        pl_stream_cancel(stream[i]);
        pl_stream_release(stream[i]);
    }
    assert_int_equal(k.target.misuse, 0);
    assert_int_equal(k.target.admits, 1);
}

static void a_failing_model_ends_the_reply_and_then_all(void **state)
{
    (void)state;
    for (int in_window = 0; in_window < 2; in_window++) {
        kit k;
        kit_open(&k, 8);
        k.target.hold_prefill = 0;
        (in_window ? (atomic_store(&k.target.fail_window, 2)) : (atomic_store(&k.target.fail_prefill, 1)));
        int32_t two_pieces[FAKE_PIECE + 1] = {0}, token[9];
        pl_request request = kit_request(two_pieces, FAKE_PIECE + 1, 9);
        pl_stream *first = kit_submit(&k, &request), *second = kit_submit(&k, &request);
        fake_go(&k.target);
        pl_outcome o = kit_read(first, token, 9);
        assert_int_equal(o.reason, PL_FINISH_ERROR);
        assert_int_equal(o.error.status, PL_EFAULT);
        assert_int_equal(o.tokens, in_window ? 3 : 0);
        assert_int_equal(kit_read(second, token, 9).reason, PL_FINISH_ERROR);
        pl_error err;
        assert_true(pl_engine_fault(k.engine, &err));
        assert_string_equal(err.message, in_window ? "the fake window fails" : "the fake prefill fails");
        pl_stream *late;
        assert_int_equal(pl_engine_submit(k.engine, &request, 1, &late, &err), PL_EFAULT);
        pl_stream_release(first);
        pl_stream_release(second);
        kit_close(&k);
    }
}

static void an_error_of_one_reply_leaves_the_others_alone(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 8);
    k.target.failure = PL_ELIMIT;
    k.target.fail_window = 1;
    pl_request request = kit_request(prompt, PROMPT, 5);
    pl_stream *first = kit_submit(&k, &request), *second = kit_submit(&k, &request);
    int32_t token[5];
    pl_outcome o = kit_read(first, token, 5);
    assert_int_equal(o.reason, PL_FINISH_ERROR);
    assert_int_equal(o.error.status, PL_ELIMIT);
    assert_int_equal(kit_read(second, token, 5).reason, PL_FINISH_LENGTH);
    assert_false(pl_engine_fault(k.engine, NULL));
    pl_stream_release(first);
    pl_stream_release(second);
    kit_close(&k);
}

typedef struct bell {
    atomic_int rung;
} bell;

static void ring(void *arg)
{
    ((bell *)arg)->rung++;
}

static void the_bell_rings_once_a_look(void **state)
{
    (void)state;
    kit k;
    kit_open(&k, 8);
    bell b = {0};
    pl_request request = kit_request(prompt, PROMPT, 500);
    request.notify = ring;
    request.notify_arg = &b;
    pl_stream *stream = kit_submit(&k, &request);
    pl_request small = kit_request(prompt, PROMPT, 1);
    pl_stream *behind = kit_submit(&k, &small);
    int32_t token[500];
    kit_read(behind, token, 1);
    assert_int_equal(b.rung, 1); /* nobody looked: one word was enough for 500 tokens */
    assert_int_equal(kit_read(stream, token, 500).tokens, 500);
    pl_stream_release(stream);
    pl_stream_release(behind);
    kit_close(&k);
}

typedef struct worker {
    kit *k;
    unsigned seed;
    int done, cancelled;
} worker;

/* Submit, read some, cancel some, release at any time. */
static void *work(void *arg)
{
    worker *w = arg;
    unsigned r = w->seed;
    for (int i = 0; i < 60; i++) {
        int32_t p[40], expected[60], token[60];
        size_t len = 1 + (size_t)(rand_r(&r) % 40), n = 1 + (size_t)(rand_r(&r) % 60);
        for (size_t j = 0; j < len; j++)
            p[j] = rand_r(&r) % FAKE_VOCAB;
        kit_expect(p, len, expected, n);
        pl_request request = kit_request(p, len, (int64_t)n);
        pl_stream *stream = kit_submit(w->k, &request);
        int what = rand_r(&r) % 4;
        if (what == 0)
            pl_stream_cancel(stream);
        if (what != 1) {
            pl_outcome o = kit_read(stream, token, n);
            if (o.tokens > n || memcmp(token, expected, o.tokens * sizeof *token) != 0)
                return "another reply";
            w->done += o.reason == PL_FINISH_LENGTH;
            w->cancelled += o.reason == PL_FINISH_CANCELLED;
        }
        pl_stream_release(stream);
    }
    return NULL;
}

static void many_threads_submit_and_cancel(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    kit k;
    kit_open(&k, 1000);
    pthread_t thread[THREADS];
    worker w[THREADS];
    unsigned seed = (unsigned)pl_now_ns();
    printf("seed %u\n", seed);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.k = &k, .seed = seed + (unsigned)i};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    int done = 0;
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
        done += w[i].done;
    }
    assert_true(done > 100);
    kit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_run_in_order_of_arrival),
        cmocka_unit_test(a_waiting_request_is_cancelled_at_once),
        cmocka_unit_test(a_running_request_is_cancelled_inside_a_piece_and_between_tokens),
        cmocka_unit_test(a_reader_that_sleeps_loses_nothing_and_holds_nothing_up),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(the_last_of_a_submission_frees_its_place),
        cmocka_unit_test(closing_ends_everything),
        cmocka_unit_test(a_failing_model_ends_the_reply_and_then_all),
        cmocka_unit_test(an_error_of_one_reply_leaves_the_others_alone),
        cmocka_unit_test(the_bell_rings_once_a_look),
        cmocka_unit_test(many_threads_submit_and_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
