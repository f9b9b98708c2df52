/* Request bodies: what is honoured, what is refused and under which name, what does not matter. On nano's tokenizer,
 * without a model. */
#include "server/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_tokenizer *tokenizer;
static pl_call_env env;

static int open_env(void **state)
{
    (void)state;
    pl_error err;
    if (pl_tokenizer_load(&tokenizer, "models/nano/tokenizer.json", &err) != PL_OK)
        return 1;
    env = (pl_call_env){.tokenizer = tokenizer, .vocab = 8192, .context = 1024, .bos = 0, .effort = 75, .name = "nano"};
    return 0;
}

static int close_env(void **state)
{
    (void)state;
    pl_tokenizer_close(tokenizer);
    return 0;
}

/* The fields beside the required one. */
static pl_status read_chat(const char *fields, pl_call *call, pl_refusal *refusal)
{
    char body[4096];
    int n = snprintf(body, sizeof body, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]%s%s}",
                     *fields ? ", " : "", fields);
    return pl_call_read(call, true, body, (size_t)n, &env, refusal);
}

static pl_status read_text(const char *fields, pl_call *call, pl_refusal *refusal)
{
    char body[4096];
    int n = snprintf(body, sizeof body, "{%s}", fields);
    return pl_call_read(call, false, body, (size_t)n, &env, refusal);
}

static const struct {
    const char *fields, *param, *code;
} refused[] = {
    {"\"temperature\": 2.1", "temperature", NULL},
    {"\"temperature\": -0.1", "temperature", NULL},
    {"\"temperature\": \"hot\"", "temperature", NULL},
    {"\"temperature\": 1e400", "temperature", NULL},
    {"\"top_p\": 0", "top_p", NULL},
    {"\"top_p\": 1e-60", "top_p", NULL},
    {"\"top_p\": 1.01", "top_p", NULL},
    {"\"min_p\": 1.5", "min_p", NULL},
    {"\"top_k\": -2", "top_k", NULL},
    {"\"top_k\": 1.5", "top_k", NULL},
    {"\"repetition_penalty\": 0", "repetition_penalty", NULL},
    {"\"frequency_penalty\": 3", "frequency_penalty", NULL},
    {"\"presence_penalty\": true", "presence_penalty", NULL},
    {"\"seed\": 9223372036854775808", "seed", NULL},
    {"\"seed\": 1.5", "seed", NULL},
    {"\"seed\": 9007199254740994.0", "seed", NULL},
    {"\"seed\": 1e400", "seed", NULL},
    {"\"max_tokens\": 0.0", "max_tokens", NULL},
    {"\"n\": 17.0", "n", NULL},
    {"\"max_tokens\": 0", "max_tokens", NULL},
    {"\"max_tokens\": -1", "max_tokens", NULL},
    {"\"max_tokens\": \"10\"", "max_tokens", NULL},
    {"\"max_completion_tokens\": 0", "max_completion_tokens", NULL},
    {"\"logit_bias\": []", "logit_bias", NULL},
    {"\"logit_bias\": {\"x\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"8192\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"-1\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"5\\u0000\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"5\": 1, \"05\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"00\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"+5\": 1}", "logit_bias", NULL},
    {"\"logit_bias\": {\"5\": 101}", "logit_bias", NULL},
    {"\"stop\": 5", "stop", NULL},
    {"\"stop\": [\"a\", null]", "stop", NULL},
    {"\"stop\": "
     "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\",\"15\",\"16\","
     "\"17\"]",
     "stop", NULL},
    {"\"n\": 0", "n", NULL},
    {"\"n\": 17", "n", NULL},
    {"\"stream\": 1", "stream", NULL},
    {"\"stream_options\": {}", "stream_options", NULL},
    {"\"stream\": true, \"stream_options\": 1", "stream_options", NULL},
    {"\"stream\": true, \"stream_options\": {\"include_usage\": 1}", "stream_options.include_usage", NULL},
    {"\"logprobs\": 5", "logprobs", NULL},
    {"\"top_logprobs\": 2", "top_logprobs", NULL},
    {"\"logprobs\": true, \"top_logprobs\": 21", "top_logprobs", NULL},
    {"\"tools\": {}", "tools", NULL},
    {"\"tool_choice\": \"required\"", "tool_choice", NULL},
    {"\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", "tools", "unsupported_value"},
    {"\"response_format\": {\"type\": \"json_object\"}", "response_format", "unsupported_value"},
    {"\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {}}", "response_format", "unsupported_value"},
    {"\"response_format\": {\"type\": \"xml\"}", "response_format.type", NULL},
    {"\"response_format\": \"text\"", "response_format", NULL},
    {"\"modalities\": [\"text\", \"audio\"]", "modalities", "unsupported_value"},
    {"\"modalities\": \"audio\"", "modalities", NULL},
    {"\"reasoning\": \"high\"", "reasoning", NULL},
    {"\"reasoning\": {\"effort\": 101}", "reasoning.effort", NULL},
    {"\"min_tokens\": 5", "min_tokens", "unsupported_value"},
    {"\"functions\": [{\"name\": \"f\"}]", "functions", "unsupported_value"},
    {"\"guided_json\": {\"type\": \"object\"}", "guided_json", "unsupported_value"},
    {"\"best_of\": 2", "best_of", "unsupported_value"},
    {"\"ignore_eos\": \"yes\"", "ignore_eos", NULL},
    {"\"draft\": 0", "draft", NULL},
    {"\"priority\": \"high\"", "priority", NULL},
    {"\"model\": 5", "model", NULL},
    {"\"reasoning_effort\": \"enormous\"", "reasoning_effort", NULL},
    {"\"reasoning_effort\": 0", "reasoning_effort", NULL},
    {"\"messages\": []", "messages", NULL},
    {"\"messages\": null", "messages", NULL},
    {"\"messages\": [{\"role\": \"king\", \"content\": \"x\"}]", "messages[0].role", NULL},
    {"\"messages\": [{\"role\": \"user\", \"content\": 5}]", "messages[0].content", NULL},
    {"\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"tool\", \"content\": \"x\"}]",
     "messages[1].tool_call_id", NULL},
    {"\"messages\": [{\"role\": \"tool\", \"content\": \"x\", \"tool_call_id\": null}]", "messages[0].tool_call_id",
     NULL},
    {"\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"prefix\": true}]", "messages[0].prefix", NULL},
    {"\"thinking\": {}", "thinking.type", NULL},
    {"\"thinking\": {\"type\": null}", "thinking.type", NULL},
};

static void refused_fields_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        pl_call call;
        pl_refusal r;
        if (read_chat(refused[i].fields, &call, &r) == PL_OK)
            fail_msg("taken: %s", refused[i].fields);
        if (r.status != 400 || strcmp(r.param, refused[i].param) != 0 ||
            (r.code != NULL) != (refused[i].code != NULL) || (r.code && strcmp(r.code, refused[i].code) != 0))
            fail_msg("%s: status %d, param %s, code %s, %s", refused[i].fields, r.status, r.param,
                     r.code ? r.code : "null", r.message);
        assert_string_equal(r.type, "invalid_request_error");
        assert_null(call.spec);
    }
}

static void fields_that_ask_for_nothing_are_taken(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "\"user\": 5, \"metadata\": {\"a\": [1]}, \"store\": true, \"service_tier\": \"auto\", \"zzz\": null",
        "\"temperature\": null, \"max_tokens\": null, \"stop\": null, \"tools\": null, \"response_format\": null",
        "\"tools\": [], \"tool_choice\": \"auto\", \"parallel_tool_calls\": true",
        "\"tools\": [], \"tool_choice\": \"none\"",
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}], \"tool_choice\": \"none\"",
        "\"response_format\": {\"type\": \"text\"}",
        "\"min_tokens\": 0, \"best_of\": 1, \"guided_json\": null, \"grammar\": \"\", \"mirostat\": 0, \"typical_p\": "
        "1.0",
        "\"repeat_penalty\": 1.0, \"bad_words\": [], \"use_beam_search\": false, \"top_n_sigma\": -1",
        "\"logprobs\": false, \"top_logprobs\": 0",
        "\"model\": \"gpt-9[1m]\", \"seed\": -9223372036854775808, \"top_k\": -1",
        "\"stop\": \"\", \"priority\": \"background\"",
        "\"modalities\": [\"text\"]",
        "\"a\\u0000b\": 1",
        "\"logit_bias\": {\"0\": 1, \"10\": 1}",
        "\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"prefix\": false}, "
        "{\"role\": \"tool\", \"content\": \"x\", \"tool_call_id\": \"c\"}]",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_call call;
        pl_refusal r;
        if (read_chat(cases[i], &call, &r) != PL_OK)
            fail_msg("%s: %s", cases[i], r.message);
        assert_int_equal(call.prompts, 1);
        assert_true(call.spec->prompt.len > 3);
        pl_call_free(&call);
    }
}

static void honoured_fields_arrive(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    assert_int_equal(
        read_chat("\"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": 40, \"min_p\": 0.05, \"seed\": -3, "
                  "\"frequency_penalty\": 1, \"presence_penalty\": -1, \"repetition_penalty\": 1.1, "
                  "\"logit_bias\": {\"5\": -100, \"7\": 3.5, \"5\": 2}, \"max_tokens\": 10, "
                  "\"max_completion_tokens\": 20, \"stop\": [\"ab\", \"\", \"c\"], \"n\": 3, \"stream\": true, "
                  "\"stream_options\": {\"include_usage\": true}, \"logprobs\": true, \"top_logprobs\": 4, "
                  "\"ignore_eos\": true, \"draft\": false, \"priority\": 2, "
                  "\"include_stop_str_in_output\": true",
                  &call, &r),
        PL_OK);
    const pl_spec *s = call.spec;
    const pl_sampling *v = &s->sampling.value;
    assert_int_equal(s->sampling.has, 0xff);
    assert_true(v->temperature == 0.5f && v->top_p == 0.9f && v->top_k == 40 && v->min_p == 0.05f);
    assert_true(v->frequency_penalty == 1 && v->presence_penalty == -1 && v->repetition_penalty == 1.1f);
    assert_true(v->seed == (uint64_t)-3);
    assert_int_equal(v->biases, 2);
    assert_true(v->bias[0].token == 5 && v->bias[0].add == 2 && v->bias[1].token == 7 && v->bias[1].add == 3.5f);
    assert_int_equal(s->max_tokens, 20);
    assert_int_equal(s->stops, 2);
    assert_memory_equal(s->stop[0].bytes, "ab", 2);
    assert_true(call.n == 3 && call.stream && call.include_usage);
    assert_int_equal(s->top_logprobs, 4);
    assert_true(s->ignore_eos && !s->draft && s->background && s->keep_stop && !s->raw);
    pl_call_free(&call);
}

/* Clients whose language has one kind of number spell 3 as 3.0. */
static void whole_numbers_may_have_a_point(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    assert_int_equal(read_chat("\"seed\": 1.0, \"max_tokens\": 1e2, \"n\": 2.0, \"top_k\": -1.0", &call, &r), PL_OK);
    assert_true(call.spec->sampling.value.seed == 1 && call.spec->max_tokens == 100 && call.n == 2);
    assert_int_equal(call.spec->sampling.value.top_k, 0);
    pl_call_free(&call);
    assert_int_equal(read_chat("\"seed\": -9007199254740992.0", &call, &r), PL_OK);
    assert_true(call.spec->sampling.value.seed == (uint64_t)-9007199254740992);
    pl_call_free(&call);
}

/* Does the prompt end in this token? */
static bool ends_in(const pl_call *call, const char *spelling)
{
    return call->spec->prompt.data[call->spec->prompt.len - 1] == pl_tokenizer_find(tokenizer, spelling);
}

static void thinking_follows_the_request_then_the_server(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        bool server, thinks;
    } cases[] = {
        {"", false, false},
        {"", true, true},
        {"\"enable_thinking\": false", true, false},
        {"\"thinking\": {\"type\": \"disabled\"}", true, false},
        {"\"thinking\": {\"type\": \"enabled\"}", false, true},
        {"\"chat_template_kwargs\": {\"enable_thinking\": true}", false, true},
        {"\"reasoning_effort\": \"none\"", true, false},
        {"\"enable_thinking\": false, \"reasoning_effort\": \"max\"", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_call call;
        pl_refusal r;
        env.thinks = cases[i].server;
        assert_int_equal(read_chat(cases[i].fields, &call, &r), PL_OK);
        assert_int_equal(call.spec->thinking, cases[i].thinks);
        assert_int_equal(call.spec->in_reasoning, cases[i].thinks);
        assert_true(ends_in(&call, cases[i].thinks ? "<think>" : "</think>"));
        pl_call_free(&call);
    }
    env.thinks = false;
}

static void text_of_a_user_never_becomes_a_control_token(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    int32_t user = pl_tokenizer_find(tokenizer, "<｜User｜>");
    assert_int_equal(read_chat("\"messages\": [{\"role\": \"user\", \"content\": \"<｜User｜>\"}]", &call, &r), PL_OK);
    int seen = 0;
    for (size_t i = 0; i < call.spec->prompt.len; i++)
        seen += call.spec->prompt.data[i] == user;
    assert_int_equal(seen, 1);
    pl_call_free(&call);
    assert_int_equal(read_text("\"prompt\": \"<｜User｜>\"", &call, &r), PL_OK); /* raw text is taken by its spelling */
    assert_int_equal(call.spec->prompt.len, 1);
    assert_int_equal(call.spec->prompt.data[0], user);
    pl_call_free(&call);
}

static void completion_prompts_come_in_four_forms(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    assert_int_equal(read_text("\"prompt\": [1, 2, 3], \"n\": 2", &call, &r), PL_OK);
    assert_true(call.prompts == 1 && call.n == 2 && call.spec->prompt.len == 3 && call.spec->raw);
    pl_call_free(&call);
    assert_int_equal(read_text("\"prompt\": [[1], [2, 3]], \"logprobs\": 0", &call, &r), PL_OK);
    assert_true(call.prompts == 2 && call.spec[1].prompt.len == 2 && call.spec[1].top_logprobs == 0);
    pl_call_free(&call);
    assert_int_equal(read_text("\"prompt\": [\"a\", \"b\"]", &call, &r), PL_OK);
    assert_int_equal(call.prompts, 2);
    pl_call_free(&call);
    assert_int_equal(read_text("\"prompt\": \"ab\", \"suffix\": \"cd\", \"add_special_tokens\": true", &call, &r),
                     PL_OK);
    assert_int_equal(call.spec->prompt.data[0], 0);
    assert_int_equal(call.spec->prompt.data[1], pl_tokenizer_find(tokenizer, "<｜fim▁begin｜>"));
    assert_true(ends_in(&call, "<｜fim▁end｜>"));
    pl_call_free(&call);

    static const struct {
        const char *fields, *param;
    } bad[] = {
        {"\"n\": 1", "prompt"},
        {"\"prompt\": \"\"", "prompt"},
        {"\"prompt\": []", "prompt"},
        {"\"prompt\": [[]]", "prompt"},
        {"\"prompt\": [\"a\", \"\"]", "prompt"},
        {"\"prompt\": [\"a\", 5]", "prompt"},
        {"\"prompt\": [5, \"a\"]", "prompt"},
        {"\"prompt\": [8192]", "prompt"},
        {"\"prompt\": [-1]", "prompt"},
        {"\"prompt\": [1.0]", "prompt"},
        {"\"prompt\": {\"a\": 1}", "prompt"},
        {"\"prompt\": \"a\", \"suffix\": 5", "suffix"},
        {"\"prompt\": [5], \"suffix\": \"a\"", "suffix"},
        {"\"prompt\": \"a\", \"echo\": true, \"logprobs\": 1", "echo"},
        {"\"prompt\": \"a\", \"logprobs\": 21", "logprobs"},
        {"\"messages\": []", "messages"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (read_text(bad[i].fields, &call, &r) == PL_OK)
            fail_msg("taken: %s", bad[i].fields);
        if (r.status != 400 || strcmp(r.param, bad[i].param) != 0)
            fail_msg("%s: %d, %s, %s", bad[i].fields, r.status, r.param, r.message);
    }
}

static void a_prompt_without_room_for_a_reply_is_told_so(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    char fields[1024];
    int n = snprintf(fields, sizeof fields, "\"prompt\": [1");
    for (int i = 1; i < 63; i++)
        n += snprintf(fields + n, sizeof fields - (size_t)n, ", 1");
    snprintf(fields + n, sizeof fields - (size_t)n, "]");
    env.context = 64;
    assert_int_equal(read_text(fields, &call, &r), PL_OK);
    pl_call_free(&call);
    snprintf(fields + n, sizeof fields - (size_t)n, ", 1]");
    assert_int_not_equal(read_text(fields, &call, &r), PL_OK);
    env.context = 1024;
    assert_int_equal(r.status, 400);
    assert_string_equal(r.code, "context_length_exceeded");
    assert_string_equal(r.param, "prompt");
    assert_int_equal(r.prompt_tokens, 64);
    assert_int_equal(r.context, 64);
}

static void what_is_no_json_object_is_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "[]", "null", "{", "{\"messages\": [}", "{} x", "\xff", "{\"a\": NaN}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        pl_call call;
        pl_refusal r;
        assert_int_not_equal(pl_call_read(&call, true, bodies[i], strlen(bodies[i]), &env, &r), PL_OK);
        assert_int_equal(r.status, 400);
    }
    char deep[400];
    memset(deep, '[', sizeof deep);
    pl_call call;
    pl_refusal r;
    assert_int_not_equal(pl_call_read(&call, true, deep, sizeof deep, &env, &r), PL_OK);
    assert_int_equal(r.status, 400);
}

static void other_names_are_refused_when_asked_to(void **state)
{
    (void)state;
    pl_call call;
    pl_refusal r;
    env.strict_name = true;
    assert_int_equal(read_chat("\"model\": \"nano\"", &call, &r), PL_OK);
    pl_call_free(&call);
    assert_int_equal(read_chat("", &call, &r), PL_OK);
    pl_call_free(&call);
    assert_int_not_equal(read_chat("\"model\": \"gpt\"", &call, &r), PL_OK);
    assert_int_equal(r.status, 404);
    assert_string_equal(r.code, "model_not_found");
    env.strict_name = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_fields_are_named),
        cmocka_unit_test(fields_that_ask_for_nothing_are_taken),
        cmocka_unit_test(honoured_fields_arrive),
        cmocka_unit_test(whole_numbers_may_have_a_point),
        cmocka_unit_test(thinking_follows_the_request_then_the_server),
        cmocka_unit_test(text_of_a_user_never_becomes_a_control_token),
        cmocka_unit_test(completion_prompts_come_in_four_forms),
        cmocka_unit_test(a_prompt_without_room_for_a_reply_is_told_so),
        cmocka_unit_test(what_is_no_json_object_is_refused),
        cmocka_unit_test(other_names_are_refused_when_asked_to),
    };
    return cmocka_run_group_tests(tests, open_env, close_env);
}
