/* What a request may say: every refusal names its path, every accepted spelling of a field does what it says. */
#include "support.h"

static pl_status check(const char *request, pl_chat **chat, pl_error *err)
{
    pl_json_doc *doc = parse(request);
    const pl_json *root = pl_json_root(doc);
    pl_chat_options options = pl_chat_default_options;
    pl_status status = pl_chat_options_from_request(root, &options, err);
    *chat = NULL;
    if (status == PL_OK)
        status = pl_chat_from_json(pl_json_get(root, "messages"), pl_json_get(root, "tools"),
                                   pl_json_get(root, "response_format"), &options, chat, err);
    pl_chat_free(*chat); /* before its document */
    pl_json_free(doc);
    return status;
}

#define USER     "{\"role\":\"user\",\"content\":\"x\"}"
#define CALL     "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define TOOL     "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"
#define ASK(m)   "{\"messages\":[" USER "," m "]}"
#define TOOLS(t) "{\"messages\":[" USER "],\"tools\":" t "}"

/* request, the parameter that the refusal names */
static const char *const refused[][2] = {
    {"{}", "messages"},
    {"{\"messages\":null}", "messages"},
    {"{\"messages\":\"x\"}", "messages"},
    {"{\"messages\":[]}", "messages"},
    {ASK("1"), "messages[1]"},
    {ASK("{\"content\":\"x\"}"), "messages[1].role"},
    {ASK("{\"role\":7,\"content\":\"x\"}"), "messages[1].role"},
    {ASK("{\"role\":\"function\",\"content\":\"x\"}"), "messages[1].role"},
    {ASK("{\"role\":\"user\"}"), "messages[1].content"},
    {ASK("{\"role\":\"user\",\"content\":null}"), "messages[1].content"},
    {ASK("{\"role\":\"user\",\"content\":{}}"), "messages[1].content"},
    {ASK("{\"role\":\"system\",\"content\":1}"), "messages[1].content"},
    {ASK("{\"role\":\"latest_reminder\"}"), "messages[1].content"},
    {ASK("{\"role\":\"user\",\"content\":[1]}"), "messages[1].content[0]"},
    {ASK("{\"role\":\"user\",\"content\":[{}]}"), "messages[1].content[0].type"},
    {ASK("{\"role\":\"user\",\"content\":[\"a\",{\"type\":\"text\"}]}"), "messages[1].content[1].text"},
    {ASK("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":null}]}"), "messages[1].content[0].text"},
    {ASK("{\"role\":\"user\",\"content\":[{\"type\":\"refusal\",\"refusal\":1}]}"), "messages[1].content[0].refusal"},
    {ASK("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}}]}"),
     "messages[1].content[0].type"},
    {ASK("{\"role\":\"tool\",\"content\":[{\"type\":\"image\"}]}"), "messages[1].content[0].type"},
    {ASK("{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}"), "messages[1].content[0].type"},
    {ASK("{\"role\":\"user\",\"content\":\"x\",\"task\":\"title\"}"), "messages[1].task"},
    {ASK("{\"role\":\"user\",\"content\":\"x\",\"tools\":[" TOOL "]}"), "messages[1].tools"},
    {ASK("{\"role\":\"tool\",\"content\":\"x\",\"tool_call_id\":1}"), "messages[1].tool_call_id"},
    {ASK("{\"role\":\"assistant\",\"content\":1}"), "messages[1].content"},
    {ASK("{\"role\":\"assistant\",\"reasoning_content\":1}"), "messages[1].reasoning_content"},
    {ASK("{\"role\":\"assistant\",\"reasoning\":{}}"), "messages[1].reasoning"},
    {ASK("{\"role\":\"assistant\",\"function_call\":{\"name\":\"f\"}}"), "messages[1].function_call"},
    {ASK("{\"role\":\"assistant\",\"content\":\"x\",\"prefix\":1}"), "messages[1].prefix"},
    {ASK("{\"role\":\"assistant\",\"content\":\"x\",\"prefix\":true}," USER), "messages[1].prefix"},
    {ASK("{\"role\":\"user\",\"content\":\"x\",\"prefix\":true}"), "messages[1].prefix"},
    {ASK("{\"role\":\"system\",\"content\":\"x\",\"prefix\":1}"), "messages[1].prefix"},
    {ASK("{\"role\":\"tool\",\"content\":\"x\",\"prefix\":true}"), "messages[1].prefix"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":{}}"), "messages[1].tool_calls"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":[" CALL ",1]}"), "messages[1].tool_calls[1]"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"type\":\"custom\"}]}"), "messages[1].tool_calls[0].type"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":1}]}"), "messages[1].tool_calls[0].id"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\"}]}"), "messages[1].tool_calls[0].function.name"},
    {ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"\"}}]}"),
     "messages[1].tool_calls[0].function.name"},
    {ASK("{\"role\":\"system\",\"content\":\"x\",\"tools\":[1]}"), "messages[1].tools[0]"},
    {ASK("{\"role\":\"system\",\"content\":\"x\",\"response_format\":{\"type\":\"x\"}}"),
     "messages[1].response_format.type"},
    {TOOLS("1"), "tools"},
    {TOOLS("[1]"), "tools[0]"},
    {TOOLS("[{\"type\":\"web_search\"}]"), "tools[0].type"},
    {TOOLS("[{\"type\":\"function\",\"name\":\"flat\"}]"), "tools[0].function"},
    {TOOLS("[{\"function\":{}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"a\\\"b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"a\\u0000b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"a b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"a::b::c\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"function\":{\"name\":\"::b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"namespace\":\"c\",\"function\":{\"name\":\"a::b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"namespace\":\"c::d\",\"function\":{\"name\":\"b\"}}]"), "tools[0].function.name"},
    {TOOLS("[{\"namespace\":[],\"function\":{\"name\":\"b\"}}]"), "tools[0].function.name"},
    {TOOLS("[" TOOL "," TOOL "]"), "tools[1].function.name"},
    {TOOLS("[{\"namespace\":\"a\",\"function\":{\"name\":\"b\"}},{\"function\":{\"name\":\"a::b\"}}]"),
     "tools[1].function.name"},
    {"{\"messages\":[{\"role\":\"system\",\"content\":\"x\",\"tools\":[" TOOL "]}],\"tools\":[" TOOL "]}", "tools"},
    {"{\"messages\":[{\"role\":\"system\",\"content\":\"x\",\"response_format\":{\"type\":\"json_object\"}}],"
     "\"response_format\":{\"type\":\"json_object\"}}",
     "response_format"},
    {"{\"messages\":[" USER "],\"response_format\":\"json\"}", "response_format"},
    {"{\"messages\":[" USER "],\"response_format\":{}}", "response_format.type"},
    {"{\"messages\":[" USER "],\"response_format\":{\"type\":\"grammar\"}}", "response_format.type"},
    {"{\"messages\":[" USER "],\"response_format\":{\"type\":\"json_schema\"}}", "response_format.json_schema.schema"},
    {"{\"messages\":[" USER "],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":1}}}",
     "response_format.json_schema.schema"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        pl_error err;
        pl_chat *chat;
        memset(&err, 0, sizeof err);
        pl_status status = check(refused[i][0], &chat, &err);
        if (status != PL_EINVAL || strcmp(err.param, refused[i][1]) != 0)
            fail_msg("%s: status %d, \"%s\" instead of \"%s\" (%s)", refused[i][0], status, err.param, refused[i][1],
                     err.message);
        assert_non_null(strstr(err.message, refused[i][1]));
    }
}

/* What other servers stumbled over, and what clients send that means nothing here. */
static void test_accepted(void **state)
{
    (void)state;
    static const char *const cases[] = {
        ASK("{\"role\":\"assistant\"}"),
        ASK("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL "]}"),
        ASK("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[],\"function_call\":null,\"refusal\":null}"),
        ASK("{\"role\":\"assistant\",\"content\":\"x\",\"reasoning_content\":null,\"reasoning\":\".\"}"),
        ASK("{\"role\":\"assistant\",\"content\":\"x\",\"prefix\":false}," USER),
        ASK("{\"role\":\"assistant\",\"content\":\"x\",\"annotations\":[],\"audio\":null,\"name\":\"n\"}"),
        ASK("{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"a::b::c \\\"\",\"arguments\":7}}]}"),
        ASK("{\"role\":\"tool\"}"),
        ASK("{\"role\":\"tool\",\"tool_call_id\":null,\"content\":null}"),
        ASK("{\"role\":\"developer\",\"content\":null,\"prefix\":false}"),
        ASK("{\"role\":\"user\",\"content\":[\"a\",{\"type\":\"text\",\"text\":\"b\",\"cache_control\":{}}]}"),
        ASK("{\"role\":\"user\",\"content\":\"x\",\"tools\":[],\"task\":null}"),
        "{\"messages\":[" USER "],\"tools\":null,\"response_format\":null}",
        TOOLS("[]"),
        TOOLS("[{\"function\":{\"name\":\"mcp__a.b/c:d-e\",\"strict\":true}}]"),
        TOOLS("[{\"namespace\":\"\",\"function\":{\"name\":\"b\"}}]"),
        TOOLS("[{\"namespace\":\"a\",\"function\":{\"name\":\"a::b\",\"namespace\":\"other\"}}]"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err;
        pl_chat *chat;
        memset(&err, 0, sizeof err);
        if (check(cases[i], &chat, &err) != PL_OK)
            fail_msg("%s: %s", cases[i], err.message);
    }
}

static void test_too_many(void **state)
{
    (void)state;
    pl_error err;
    pl_chat *chat;
    pl_buf text;
    pl_buf_init(&text, 1 << 20, "test");
    for (int calls = 0; calls < 2; calls++) {
        pl_buf_clear(&text);
        OK(pl_buf_adds(&text,
                       calls ? "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":["
                             : "{\"messages\":[" USER "],\"tools\":[",
                       &err));
        for (int i = 0; i <= 1024; i++)
            OK(pl_buf_addf(&text, &err, "%s{\"function\":{\"name\":\"f%d\"}}", i ? "," : "", i));
        OK(pl_buf_adds(&text, calls ? "]}]}" : "]}", &err));
        assert_int_equal(check(text.data, &chat, &err), PL_EINVAL);
        assert_string_equal(err.param, calls ? "messages[0].tool_calls" : "tools");
    }
    pl_buf_free(&text);
}

typedef struct mode {
    const char *request;
    int thinking, effort, keep; /* effort 0: refused, and request says where in err.param */
    const char *param;
} mode;

static void check_modes(const mode *modes, size_t n, bool thinking)
{
    for (size_t i = 0; i < n; i++) {
        pl_error err;
        pl_chat_options options = pl_chat_default_options;
        pl_json_doc *doc = parse(modes[i].request);
        options.thinking = thinking;
        pl_status status = pl_chat_options_from_request(pl_json_root(doc), &options, &err);
        if (modes[i].param) {
            if (status != PL_EINVAL || strcmp(err.param, modes[i].param) != 0)
                fail_msg("%s: status %d, param %s", modes[i].request, status, err.param);
        } else if (status != PL_OK || options.thinking != modes[i].thinking || options.effort != modes[i].effort ||
                   options.keep_reasoning != modes[i].keep) {
            fail_msg("%s: status %d, thinking %d, effort %d, keep %d", modes[i].request, status, options.thinking,
                     options.effort, options.keep_reasoning);
        }
        pl_json_free(doc);
    }
}

static void test_modes(void **state)
{
    (void)state;
    static const mode on[] = {
        {"{}", 1, 75, 0, NULL},
        {"{\"thinking\":null,\"reasoning_effort\":null,\"chat_template_kwargs\":null}", 1, 75, 0, NULL},
        {"{\"thinking\":false}", 0, 75, 0, NULL},
        {"{\"think\":false}", 0, 75, 0, NULL},
        {"{\"enable_thinking\":false}", 0, 75, 0, NULL},
        {"{\"thinking\":{\"type\":\"disabled\"}}", 0, 75, 0, NULL},
        {"{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}}", 1, 75, 0, NULL},
        {"{\"thinking\":{\"type\":\"adaptive\",\"effort\":\"low\"},\"reasoning_effort\":\"max\"}", 1, 50, 0, NULL},
        {"{\"chat_template_kwargs\":{\"thinking\":false}}", 0, 75, 0, NULL},
        {"{\"chat_template_kwargs\":{\"enable_thinking\":false}}", 0, 75, 0, NULL},
        {"{\"chat_template_kwargs\":{\"thinking_mode\":\"chat\"}}", 0, 75, 0, NULL},
        {"{\"chat_template_kwargs\":{\"thinking_mode\":\"thinking\",\"drop_thinking\":false}}", 1, 75, 1, NULL},
        {"{\"chat_template_kwargs\":{\"drop_thinking\":true,\"reasoning_effort\":9}}", 1, 9, 0, NULL},
        {"{\"thinking\":true,\"enable_thinking\":false}", 0, 75, 0, NULL},
        {"{\"thinking\":true,\"chat_template_kwargs\":{\"thinking\":false}}", 1, 75, 0, NULL},
        {"{\"reasoning_effort\":\"none\"}", 0, 75, 0, NULL},
        {"{\"reasoning_effort\":\"none\",\"thinking\":true}", 0, 75, 0, NULL},
        {"{\"reasoning_effort\":\"high\",\"enable_thinking\":false}", 0, 75, 0, NULL},
        {"{\"reasoning_effort\":\"minimal\"}", 1, 50, 0, NULL},
        {"{\"reasoning_effort\":\"low\"}", 1, 50, 0, NULL},
        {"{\"reasoning_effort\":\"medium\"}", 1, 75, 0, NULL},
        {"{\"reasoning_effort\":\"high\"}", 1, 75, 0, NULL},
        {"{\"reasoning_effort\":\"xhigh\"}", 1, 75, 0, NULL},
        {"{\"reasoning_effort\":\"max\"}", 1, 100, 0, NULL},
        {"{\"reasoning_effort\":\"ultra\"}", 1, 100, 0, NULL},
        {"{\"reasoning_effort\":1}", 1, 1, 0, NULL},
        {"{\"reasoning_effort\":100,\"chat_template_kwargs\":{\"reasoning_effort\":1}}", 1, 100, 0, NULL},
        {"{\"reasoning\":{\"effort\":\"max\",\"summary\":\"auto\"}}", 1, 100, 0, NULL},
        {"{\"reasoning_effort\":0}", 0, 0, 0, "reasoning_effort"},
        {"{\"reasoning_effort\":101}", 0, 0, 0, "reasoning_effort"},
        {"{\"reasoning_effort\":50.0}", 0, 0, 0, "reasoning_effort"},
        {"{\"reasoning_effort\":true}", 0, 0, 0, "reasoning_effort"},
        {"{\"reasoning_effort\":\"extreme\"}", 0, 0, 0, "reasoning_effort"},
        {"{\"reasoning\":{\"effort\":[]}}", 0, 0, 0, "reasoning.effort"},
        {"{\"thinking\":\"yes\"}", 0, 0, 0, "thinking"},
        {"{\"thinking\":{}}", 0, 0, 0, "thinking.type"},
        {"{\"thinking\":{\"type\":null,\"budget_tokens\":5}}", 0, 0, 0, "thinking.type"},
        {"{\"chat_template_kwargs\":{\"thinking\":{}}}", 0, 0, 0, "chat_template_kwargs.thinking.type"},
        {"{\"thinking\":{\"type\":\"auto\"}}", 0, 0, 0, "thinking.type"},
        {"{\"thinking\":{\"type\":\"enabled\",\"effort\":0}}", 0, 0, 0, "thinking.effort"},
        {"{\"enable_thinking\":1}", 0, 0, 0, "enable_thinking"},
        {"{\"think\":\"high\"}", 0, 0, 0, "think"},
        {"{\"chat_template_kwargs\":[]}", 0, 0, 0, "chat_template_kwargs"},
        {"{\"chat_template_kwargs\":{\"thinking\":1}}", 0, 0, 0, "chat_template_kwargs.thinking"},
        {"{\"chat_template_kwargs\":{\"thinking_mode\":\"on\"}}", 0, 0, 0, "chat_template_kwargs.thinking_mode"},
        {"{\"chat_template_kwargs\":{\"drop_thinking\":0}}", 0, 0, 0, "chat_template_kwargs.drop_thinking"},
        {"{\"chat_template_kwargs\":{\"reasoning_effort\":\"\"}}", 0, 0, 0, "chat_template_kwargs.reasoning_effort"},
    };
    static const mode off[] = {
        {"{}", 0, 75, 0, NULL},
        {"{\"reasoning_effort\":\"max\"}", 0, 100, 0, NULL}, /* an effort alone switches nothing on */
        {"{\"thinking\":true}", 1, 75, 0, NULL},
        {"{\"thinking\":{\"type\":\"enabled\"},\"reasoning_effort\":3}", 1, 3, 0, NULL},
        {"{\"thinking\":{\"effort\":3}}", 0, 3, 0, NULL},
    };
    check_modes(on, sizeof on / sizeof *on, true);
    check_modes(off, sizeof off / sizeof *off, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
