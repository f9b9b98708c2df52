/* The public C API on nano, through its header alone. */
#include "paceline.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char question[] = "What does the word \"harbour\" mean?";
static const int32_t harbour[] = {0, 8140, 511, 659, 273, 635, 304, 74, 4644, 597, 4, 634, 33, 8141, 8153};
static const char harbour_sha[] = "3b5b64840ce906f2b3b191a1f3608d697cbaa40d7fb823bd1d5627609fc74a81";
static const char harbour_text[] = "The noun \"harbour\" means: a small harbor.";

static pl_instance *instance;
static int progress_calls;

static void on_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    ++*(int *)arg;
    if (!what || done > total)
        abort();
}

static int open_nano(void **state)
{
    (void)state;
    pl_error err;
    pl_options options;
    pl_options_init(&options);
    options.model_dir = "models/nano";
    options.threads = 1;
    options.progress = on_progress;
    options.progress_arg = &progress_calls;
    if (pl_open(&instance, &options, &err) == PL_OK)
        return 0;
    printf("%s\n", err.message);
    return 1;
}

static int close_nano(void **state)
{
    (void)state;
    pl_close(instance);
    return 0;
}

typedef struct result {
    char text[8192], reasoning[8192], sha[65];
    size_t tokens, reasoning_tokens, prompt_tokens, prefilled;
    int32_t first;
    float logprob;
    int tops;
    pl_reason reason;
    pl_status error;
} result;

static void append(char *to, const char *bytes, size_t len)
{
    size_t at = strlen(to);
    assert_true(at + len < 8192);
    memcpy(to + at, bytes, len);
    to[at + len] = '\0';
}

static void read_job(pl_job *job, result *r)
{
    pl_error err;
    pl_event e;
    memset(r, 0, sizeof *r);
    size_t tokens = 0;
    do {
        assert_int_equal(pl_poll(job, &e, 60000, &err), PL_OK);
        append(r->text, e.text, e.text_len);
        append(r->reasoning, e.reasoning, e.reasoning_len);
        if (e.kind == PL_EVENT_PREFILL)
            r->prefilled = e.prefilled;
        if (e.kind == PL_EVENT_TOKEN && tokens++ == 0) {
            r->first = e.token;
            r->logprob = e.logprob;
            r->tops = e.tops;
        }
    } while (e.kind != PL_EVENT_FINISHED);
    assert_int_equal(e.tokens, tokens);
    r->tokens = e.tokens;
    r->reasoning_tokens = e.reasoning_tokens;
    r->prompt_tokens = e.prompt_tokens;
    r->reason = e.reason;
    r->error = e.error ? e.error->status : PL_OK;
    memcpy(r->sha, e.token_sha, sizeof r->sha);
    assert_true(e.first_token_s >= 0 && e.decode_s >= 0 && e.prefill_s >= 0 && e.queued_s >= 0);
    assert_int_equal(pl_poll(job, &e, 0, &err), PL_ENOTFOUND);
}

static void ask(const pl_query *query, result *r)
{
    pl_error err;
    pl_job *job;
    if (pl_submit(instance, query, &job, &err) != PL_OK)
        fail_msg("submit: %s", err.message);
    read_job(job, r);
    pl_job_close(job);
}

static pl_query greedy(void)
{
    pl_query q;
    pl_query_init(&q);
    q.temperature = 0;
    q.max_tokens = 64;
    return q;
}

static void four_ways_to_ask_the_same(void **state)
{
    (void)state;
    assert_true(progress_calls > 0);
    static const char messages[] = "[{\"role\": \"user\", \"content\": \"What does the word \\\"harbour\\\" mean?\"}]";
    static const char raw[] =
        "<｜begin▁of▁sentence｜><｜User｜>What does the word \"harbour\" mean?<｜Assistant｜></think>";
    pl_query q[4] = {greedy(), greedy(), greedy(), greedy()};
    q[0].text = question;
    q[0].text_len = strlen(question);
    q[1].messages = messages;
    q[1].messages_len = strlen(messages);
    q[2].ids = harbour;
    q[2].ids_len = sizeof harbour / sizeof *harbour;
    q[3].text = raw + strlen("<｜begin▁of▁sentence｜>");
    q[3].text_len = strlen(q[3].text);
    q[3].raw = q[3].bos = true;
    for (int i = 0; i < 4; i++) {
        result r;
        ask(&q[i], &r);
        assert_string_equal(r.text, harbour_text);
        assert_string_equal(r.sha, harbour_sha);
        assert_int_equal(r.reason, PL_REASON_STOP);
        assert_int_equal(r.prompt_tokens, sizeof harbour / sizeof *harbour);
        assert_int_equal(r.prefilled, r.prompt_tokens);
        assert_int_equal(r.tokens, 16);
        assert_int_equal(r.first, 521);
    }
}

static void thinking_comes_apart(void **state)
{
    (void)state;
    pl_query q = greedy();
    q.text = "What is 23 + 45?";
    q.text_len = strlen(q.text);
    q.thinking = 1;
    q.top_logprobs = 2;
    result r;
    ask(&q, &r);
    assert_string_equal(r.text, "23 + 45 = 68");
    assert_non_null(strstr(r.reasoning, "add the tens"));
    assert_true(r.reasoning_tokens > 20 && r.reasoning_tokens < r.tokens);
    assert_true(r.logprob < 0);
    assert_int_equal(r.tops, 2);
}

static void stops_lengths_and_seeds(void **state)
{
    (void)state;
    result r, again;
    pl_query q = greedy();
    q.ids = harbour;
    q.ids_len = sizeof harbour / sizeof *harbour;
    const char *stops[] = {"zzz", " means"};
    q.stops = stops;
    q.n_stops = 2;
    ask(&q, &r);
    assert_string_equal(r.text, "The noun \"harbour\"");
    assert_int_equal(r.reason, PL_REASON_STOP);
    q.n_stops = 0;
    q.max_tokens = 3;
    ask(&q, &r);
    assert_int_equal(r.reason, PL_REASON_LENGTH);
    assert_int_equal(r.tokens, 3);
    q.max_tokens = 40;
    q.ignore_eos = true;
    q.temperature = 1.5;
    ask(&q, &r);
    ask(&q, &again); /* the seed comes from the prompt */
    assert_int_equal(r.tokens, 40);
    assert_string_equal(r.sha, again.sha);
    q.seeded = true;
    q.seed = 5;
    ask(&q, &again);
    assert_string_not_equal(r.sha, again.sha);
    q.draft = false;
    ask(&q, &r);
    assert_string_equal(r.sha, again.sha);
}

static void bad_queries_are_refused_by_name(void **state)
{
    (void)state;
    static const int32_t bad_id[] = {8192};
    static int32_t many[8192];
    struct {
        pl_query query;
        const char *param;
        pl_status status;
    } cases[12];
    for (int i = 0; i < 12; i++) {
        cases[i].query = greedy();
        cases[i].query.ids = harbour;
        cases[i].query.ids_len = 3;
        cases[i].status = PL_EINVAL;
    }
    cases[0].query.text = question;
    cases[0].param = "prompt";
    cases[1].query.ids = NULL;
    cases[1].param = "prompt";
    cases[2].query.ids = bad_id;
    cases[2].query.ids_len = 1;
    cases[2].param = "prompt";
    cases[3].query.max_tokens = -1;
    cases[3].param = "max_tokens";
    cases[4].query.temperature = 2.5;
    cases[4].param = "temperature";
    cases[5].query.top_logprobs = 21;
    cases[5].param = "top_logprobs";
    cases[6].query.effort = 101;
    cases[6].param = "effort";
    cases[7].query.thinking = 2;
    cases[7].param = "thinking";
    cases[8].query.ids = NULL;
    cases[8].query.messages = "[{\"role\": \"king\"}]";
    cases[8].query.messages_len = strlen(cases[8].query.messages);
    cases[8].param = "messages[0].role";
    cases[9].query.ids = many;
    cases[9].query.ids_len = 8192;
    cases[9].param = "prompt";
    cases[9].status = PL_ELIMIT;
    cases[10].query.ids_len = 0;
    cases[10].param = "prompt";
    cases[11].query.ids = NULL;
    cases[11].query.text = "";
    cases[11].query.raw = true;
    cases[11].param = "prompt";
    for (int i = 0; i < 12; i++) {
        pl_error err;
        pl_job *job = (pl_job *)&err;
        pl_status status = pl_submit(instance, &cases[i].query, &job, &err);
        if (status != cases[i].status || strcmp(err.param, cases[i].param) != 0)
            fail_msg("case %d: %d, %s: %s", i, status, err.param, err.message);
        assert_null(job);
    }
}

static void bad_options_are_refused_by_name(void **state)
{
    (void)state;
    pl_error err;
    pl_instance *other = instance;
    pl_options o;
    pl_options_init(&o);
    assert_int_equal(pl_open(&other, &o, &err), PL_EINVAL);
    assert_string_equal(err.param, "model_dir");
    assert_null(other);
    o.model_dir = "/nowhere";
    assert_int_equal(pl_open(&other, &o, &err), PL_ENOTFOUND);
    o.model_dir = "models/nano";
    o.temperature = -1;
    assert_int_equal(pl_open(&other, &o, &err), PL_EINVAL);
    assert_string_equal(err.param, "temperature");
    pl_options_init(&o);
    o.model_dir = "models/nano";
    o.context = 5;
    assert_int_equal(pl_open(&other, &o, &err), PL_EINVAL);
    assert_string_equal(err.param, "context");
}

static void a_job_is_cancelled_and_closed_at_any_time(void **state)
{
    (void)state;
    pl_query q = greedy();
    q.ids = harbour;
    q.ids_len = sizeof harbour / sizeof *harbour;
    q.ignore_eos = true;
    q.max_tokens = 8000;
    pl_error err;
    pl_job *job, *behind;
    assert_int_equal(pl_submit(instance, &q, &job, &err), PL_OK);
    assert_int_equal(pl_submit(instance, &q, &behind, &err), PL_OK);
    pl_event e;
    do
        assert_int_equal(pl_poll(job, &e, 60000, &err), PL_OK);
    while (e.kind != PL_EVENT_TOKEN);
    assert_int_equal(pl_poll(behind, &e, 0, &err), PL_EBUSY);
    pl_cancel(job);
    do
        assert_int_equal(pl_poll(job, &e, 60000, &err), PL_OK);
    while (e.kind != PL_EVENT_FINISHED);
    assert_int_equal(e.reason, PL_REASON_CANCELLED);
    assert_true(e.tokens >= 1 && e.tokens < 8000);
    pl_cancel(job);
    pl_job_close(job);
    pl_job_close(behind); /* running by now, or still waiting */
    pl_job_close(NULL);
    result r;
    q.ignore_eos = false;
    ask(&q, &r);
    assert_string_equal(r.sha, harbour_sha);
}

static void *ask_in_a_thread(void *arg)
{
    result *r = arg;
    pl_query q = greedy();
    q.ids = harbour;
    q.ids_len = sizeof harbour / sizeof *harbour;
    pl_error err;
    pl_job *job;
    pl_event e = {0};
    if (pl_submit(instance, &q, &job, &err) != PL_OK)
        return r;
    while (pl_poll(job, &e, 60000, &err) == PL_OK && e.kind != PL_EVENT_FINISHED)
        ;
    if (e.kind == PL_EVENT_FINISHED)
        memcpy(r->sha, e.token_sha, sizeof r->sha);
    pl_job_close(job);
    return NULL;
}

static void threads_share_an_instance(void **state)
{
    (void)state;
    enum { N = 4 };
    pthread_t thread[N];
    static result r[N];
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask_in_a_thread, &r[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        assert_string_equal(r[i].sha, harbour_sha);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_ways_to_ask_the_same),       cmocka_unit_test(thinking_comes_apart),
        cmocka_unit_test(stops_lengths_and_seeds),         cmocka_unit_test(bad_queries_are_refused_by_name),
        cmocka_unit_test(bad_options_are_refused_by_name), cmocka_unit_test(a_job_is_cancelled_and_closed_at_any_time),
        cmocka_unit_test(threads_share_an_instance),
    };
    return cmocka_run_group_tests(tests, open_nano, close_nano);
}
