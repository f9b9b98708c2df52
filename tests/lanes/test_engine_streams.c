/* The engine with many streams: handed in from several threads, read late or never, cancelled at any time, all at once.
 * What is read is the plain reply, and everything is given back. */
#include "base/thread.h"
#include "lanes/core_kit.h"

#include <unistd.h>

enum { CALLERS = 4, EACH = 12, SLOTS = 7 };

static const pl_engine_settings settings = {
    .queue = 256, .core = {.drafts = true, .plain_streams = 5, .joint = 1, .decode_share = 0.25}};

static pair fake;
static pl_engine *engine;

static uint64_t mixed(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return pair_mix(*state);
}

static int some_right(void *arg, int slot)
{
    return (int)(mixed(arg) % (PAIR_BLOCK + 1)) + 0 * slot;
}

static void start(void)
{
    static uint64_t state = 3;
    pl_error err;
    pair_init(&fake, SLOTS, 32);
    fake.right = some_right;
    fake.arg = &state;
    assert_int_equal(pl_engine_open(&engine, &fake.target, &fake.drafter, &settings, &err), PL_OK);
}

static void end(void)
{
    pl_engine_close(engine);
    assert_int_equal(fake.misuse, 0);
    for (int i = 0; i < SLOTS; i++)
        assert_false(fake.slot[i].admitted);
}

typedef struct job {
    int32_t prompt[40];
    pl_request request;
    pl_stream *stream;
    int32_t token[160];
    size_t count;
    pl_outcome outcome;
    bool cancel, read;
} job;

typedef struct caller {
    pthread_t thread;
    uint64_t state;
    job job[EACH];
    bool failed;
} caller;

static void fill(job *j, uint64_t *state)
{
    size_t len = 1 + mixed(state) % 40;
    for (size_t i = 0; i < len; i++)
        j->prompt[i] = (int32_t)(mixed(state) % PAIR_VOCAB);
    j->request = kit_request(j->prompt, len, 1 + (int64_t)(mixed(state) % 150));
    j->request.sampling.temperature = mixed(state) % 2 ? 1 : 0;
    j->request.sampling.seed = mixed(state);
    j->request.background = mixed(state) % 4 == 0;
    j->request.draft = mixed(state) % 5 != 0;
    j->cancel = mixed(state) % 4 == 0;
    j->read = mixed(state) % 5 != 0;
}

/* Read to the end, or leave after a few events. */
static void follow(job *j, uint64_t *state)
{
    size_t leave = j->cancel && state ? mixed(state) % 40 : SIZE_MAX;
    for (size_t seen = 0;; seen++) {
        pl_stream_event e;
        if (seen == leave)
            pl_stream_cancel(j->stream);
        if (!pl_stream_next(j->stream, &e)) {
            pl_stream_wait(j->stream, 20000);
            continue;
        }
        if (e.kind == PL_STREAM_TOKEN)
            j->token[j->count++] = e.token;
        if (e.kind == PL_STREAM_FINISHED) {
            j->outcome = *e.outcome;
            return;
        }
    }
}

static void *call(void *arg)
{
    caller *c = arg;
    pl_error err;
    for (int i = 0; i < EACH; i++) {
        fill(&c->job[i], &c->state);
        c->failed = c->failed || pl_engine_submit(engine, &c->job[i].request, 1, &c->job[i].stream, &err) != PL_OK;
    }
    for (int i = 0; i < EACH && !c->failed; i++) {
        if (c->job[i].read)
            follow(&c->job[i], &c->state);
        pl_stream_release(c->job[i].stream);
    }
    return NULL;
}

static void callers_from_several_threads(void **state)
{
    (void)state;
    static caller callers[CALLERS];
    start();
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.state = 77 + (uint64_t)i};
        assert_int_equal(pl_thread_start(&callers[i].thread, call, &callers[i]), 0);
    }
    int whole = 0;
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_false(callers[i].failed);
        for (int n = 0; n < EACH; n++) {
            job *j = &callers[i].job[n];
            if (!j->read)
                continue;
            static plain expected;
            plain_reply(&j->request, NULL, &expected);
            assert_true(j->count <= expected.count);
            assert_memory_equal(j->token, expected.token, j->count * sizeof *j->token);
            if (j->outcome.reason == PL_FINISH_CANCELLED)
                continue;
            assert_string_equal(j->outcome.token_sha, expected.sha);
            whole++;
        }
    }
    assert_true(whole > CALLERS * EACH / 4);
    pl_engine_counts c;
    pl_engine_counts_now(engine, &c);
    assert_int_equal(c.submitted, CALLERS * EACH);
    assert_true(c.numbers.accepted > 0);
    end();
}

/* A short request that comes while a long one runs is not behind it. */
static void a_late_short_one_is_done_first(void **state)
{
    (void)state;
    static int32_t long_prompt[400], short_prompt[4] = {1, 2, 3, 4};
    pl_error err;
    pl_stream *long_one, *short_one;
    start();
    pl_request q = kit_request(long_prompt, 400, 100);
    assert_int_equal(pl_engine_submit(engine, &q, 1, &long_one, &err), PL_OK);
    q = kit_request(short_prompt, 4, 3);
    assert_int_equal(pl_engine_submit(engine, &q, 1, &short_one, &err), PL_OK);
    job j = {.stream = short_one};
    follow(&j, NULL);
    assert_int_equal(j.outcome.reason, PL_FINISH_LENGTH);
    pl_stream_release(short_one);
    j = (job){.stream = long_one};
    follow(&j, NULL);
    assert_int_equal(j.outcome.reason, PL_FINISH_LENGTH);
    pl_stream_release(long_one);
    end();
}

/* All slots are taken by background requests: a foreground one gets in all the same, and they lose nothing. */
static void background_gives_its_slot_up(void **state)
{
    (void)state;
    static int32_t prompt[8] = {5, 4, 3, 2, 1, 6, 7, 8};
    pl_stream *back[SLOTS * 2], *front;
    pl_error err;
    start();
    pl_request q = kit_request(prompt, 8, 150);
    q.background = true;
    for (int i = 0; i < SLOTS * 2; i++)
        assert_int_equal(pl_engine_submit(engine, &q, 1, &back[i], &err), PL_OK);
    plain expected;
    plain_reply(&q, NULL, &expected);
    q.background = false;
    assert_int_equal(pl_engine_submit(engine, &q, 1, &front, &err), PL_OK);
    job j = {.stream = front};
    follow(&j, NULL);
    assert_string_equal(j.outcome.token_sha, expected.sha);
    pl_stream_release(front);
    for (int i = 0; i < SLOTS * 2; i++) {
        j = (job){.stream = back[i]};
        follow(&j, NULL);
        assert_string_equal(j.outcome.token_sha, expected.sha);
        pl_stream_release(back[i]);
    }
    end();
}

/* Closing in the middle ends all of them, each once. */
static void closing_ends_everything(void **state)
{
    (void)state;
    static int32_t prompt[3] = {9, 9, 9};
    pl_stream *s[20];
    pl_error err;
    for (int wait = 0; wait < 6; wait++) {
        start();
        pl_request q = kit_request(prompt, 3, 150);
        for (int i = 0; i < 20; i++)
            assert_int_equal(pl_engine_submit(engine, &q, 1, &s[i], &err), PL_OK);
        usleep((unsigned)wait * 150);
        end();
        for (int i = 0; i < 20; i++) {
            job j = {.stream = s[i]};
            follow(&j, NULL);
            assert_true(j.outcome.reason == PL_FINISH_CANCELLED || j.outcome.reason == PL_FINISH_LENGTH);
            pl_stream_release(s[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_from_several_threads),
        cmocka_unit_test(a_late_short_one_is_done_first),
        cmocka_unit_test(background_gives_its_slot_up),
        cmocka_unit_test(closing_ends_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
