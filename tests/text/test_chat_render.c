/* Rendering against the published cases of the encoding and against the trained model's own prompts, and the ids: text
 * between two control tokens is tokenised as one string, as the official encoder does. */
#include "support.h"

#include "text/chat_int.h"

static pl_tokenizer *tok;

typedef struct rendered {
    pl_segments segments;
    bool in_reasoning, continues;
} rendered;

static void render_case(const pl_json *c, rendered *r)
{
    pl_error err;
    pl_chat *chat = NULL;
    pl_chat_options options = pl_chat_default_options;
    const pl_json *request = pl_json_get(c, "request");
    if (pl_json_equals(pl_json_get(pl_json_get(c, "options"), "images"), "name"))
        options.images = PL_CHAT_IMAGES_NAME;
    OK(pl_chat_options_from_request(request, &options, &err));
    OK(pl_chat_from_json(pl_json_get(request, "messages"), pl_json_get(request, "tools"),
                         pl_json_get(request, "response_format"), &options, &chat, &err));
    pl_segments_init(&r->segments, 1 << 20);
    OK(pl_chat_render(chat, &r->segments, &r->in_reasoning, &r->continues, &err));
    pl_chat_free(chat);
}

static void check_ids(const pl_segments *segments)
{
    pl_error err;
    pl_ids ours, whole;
    pl_ids_init(&ours, PL_IDS_MAX);
    pl_ids_init(&whole, PL_IDS_MAX);
    OK(pl_segments_encode(tok, segments, &ours, &err));
    OK(pl_tokenizer_encode(tok, segments->text.data, segments->text.len, true, &whole, &err));
    assert_int_equal(ours.len, whole.len);
    assert_memory_equal(ours.data, whole.data, ours.len * sizeof *ours.data);
    pl_ids_free(&ours);
    pl_ids_free(&whole);
}

static void test_published_cases(void **state)
{
    (void)state;
    pl_json_doc *doc = parse_file("tests/vectors/chat/cases.json");
    size_t n = 0;
    for (pl_json_iter it = {0}; pl_json_each(pl_json_root(doc), &it); n++) {
        rendered r;
        size_t len, name_len;
        const char *prompt = pl_json_string(pl_json_get(it.value, "prompt"), &len);
        const char *name = pl_json_string(pl_json_get(it.value, "name"), &name_len);
        render_case(it.value, &r);
        if (r.segments.text.len != len || memcmp(r.segments.text.data, prompt, len) != 0)
            fail_msg("%s:\n%s\ninstead of\n%s", name, r.segments.text.data, prompt);
        assert_int_equal(r.in_reasoning, pl_json_is(pl_json_get(it.value, "in_reasoning"), PL_JSON_TRUE));
        assert_int_equal(r.continues, pl_json_is(pl_json_get(it.value, "continues"), PL_JSON_TRUE));
        check_ids(&r.segments);
        pl_segments_free(&r.segments);
    }
    assert_true(n >= 38);
    pl_json_free(doc);
}

/* The chat prompts that the trained model's reference outputs were made with: text and ids. */
static void test_nano_prompts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *request;
    } cases[] = {
        {"chat_harbour", "{\"thinking\":false,\"messages\":[{\"role\":\"user\",\"content\":\"What does the word "
                         "\\\"harbour\\\" mean?\"}]}"},
        {"code_factorial", "{\"thinking\":false,\"messages\":[{\"role\":\"user\",\"content\":\"Write a Python function "
                           "to compute the factorial of n.\"}]}"},
        {"think_sum", "{\"thinking\":true,\"messages\":[{\"role\":\"user\",\"content\":\"What is 23 + 45?\"}]}"},
        {"turns",
         "{\"thinking\":false,\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"},"
         "{\"role\":\"user\",\"content\":\"What does the word \\\"river\\\" mean?\"},"
         "{\"role\":\"assistant\",\"content\":\"The noun \\\"river\\\" means: a large natural stream of "
         "water.\"},{\"role\":\"user\",\"content\":\"Write a function that returns the largest item of a "
         "list.\"}]}"},
    };
    pl_json_doc *doc = parse_file("tests/vectors/nano/cases.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        pl_error err;
        rendered r;
        pl_ids ids;
        const pl_json *expected = pl_json_get(pl_json_root(doc), cases[i].name);
        snprintf(text, sizeof text, "{\"request\":%s}", cases[i].request);
        pl_json_doc *request = parse(text);
        render_case(pl_json_root(request), &r);
        assert_true(pl_json_equals(pl_json_get(expected, "text"), r.segments.text.data));
        pl_ids_init(&ids, PL_IDS_MAX);
        OK(pl_segments_encode(tok, &r.segments, &ids, &err));
        assert_int_equal(ids.len, pl_json_count(pl_json_get(expected, "ids")));
        for (pl_json_iter it = {0}; pl_json_each(pl_json_get(expected, "ids"), &it);) {
            int64_t id = -1;
            assert_true(pl_json_i64(it.value, 0, INT32_MAX, &id));
            assert_int_equal(ids.data[it.index], id);
        }
        pl_ids_free(&ids);
        pl_segments_free(&r.segments);
        pl_json_free(request);
    }
    pl_json_free(doc);
}

static void test_plain_text(void **state)
{
    (void)state;
    pl_error err;
    pl_chat *chat = NULL;
    pl_segments out;
    bool in_reasoning = true;
    pl_chat_options options = pl_chat_default_options;
    options.thinking = false;
    pl_segments_init(&out, 1 << 10);
    OK(pl_chat_from_text("Be \"brief\".", "a\0b<｜User｜>\n", 15, &options, &chat, &err));
    OK(pl_chat_render(chat, &out, &in_reasoning, NULL, &err));
    static const char expected[] =
        PL__BOS PL__SYSTEM "Be \"brief\"." PL__USER "a\0b<｜User｜>" PL__ASSISTANT "</think>";
    assert_int_equal(out.text.len, sizeof expected - 1);
    assert_memory_equal(out.text.data, expected, sizeof expected - 1);
    assert_int_equal(out.count, 7);
    assert_false(in_reasoning);
    pl_chat_free(chat);
    assert_int_equal(pl_chat_from_text(NULL, "a\xff", 2, &options, &chat, &err), PL_EFORMAT);
    assert_int_equal(err.offset, 1);
    options.effort = 0;
    assert_int_equal(pl_chat_from_text(NULL, "a", 1, &options, &chat, &err), PL_EINVAL);
    pl_segments_free(&out);
}

/* A tokenizer of another family is refused, by the name of the token that it lacks. */
static void test_missing_control_token(void **state)
{
    (void)state;
    pl_error err;
    pl_segments s;
    pl_ids ids;
    pl_segments_init(&s, 100);
    pl_ids_init(&ids, 100);
    OK(pl_segments_control(&s, PL__BOS, &err));
    OK(pl_segments_control(&s, "<|im_start|>", &err));
    assert_int_equal(pl_segments_encode(tok, &s, &ids, &err), PL_ENOTFOUND);
    assert_non_null(strstr(err.message, "<|im_start|>"));
    pl_ids_free(&ids);
    pl_segments_free(&s);
}

/* Neighbouring text is one piece; the cap holds. */
static void test_segments(void **state)
{
    (void)state;
    pl_error err;
    pl_segments s;
    pl_segments_init(&s, 8);
    OK(pl_segments_text(&s, "", 0, &err));
    assert_int_equal(s.count, 0);
    OK(pl_segments_text(&s, "ab", 2, &err));
    OK(pl_segments_text(&s, "c", 1, &err));
    OK(pl_segments_control(&s, "<x>", &err));
    OK(pl_segments_text(&s, "", 0, &err));
    OK(pl_segments_text(&s, "d", 1, &err));
    assert_int_equal(s.count, 3);
    assert_string_equal(s.text.data, "abc<x>d");
    assert_int_equal(pl_segments_text(&s, "ef", 2, &err), PL_ELIMIT);
    assert_int_equal(pl_segments_control(&s, "<y>", &err), PL_ELIMIT);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.items[2].len, 1);
    pl_segments_free(&s);
}

/* Every cap below the need is PL_ELIMIT, nothing leaks (under the address sanitizer). */
static void test_render_cap(void **state)
{
    (void)state;
    pl_json_doc *doc = parse_file("tests/vectors/chat/cases.json");
    for (pl_json_iter it = {0}; pl_json_each(pl_json_root(doc), &it);) {
        pl_error err;
        pl_chat *chat = NULL;
        pl_chat_options options = pl_chat_default_options;
        const pl_json *request = pl_json_get(it.value, "request");
        size_t len;
        pl_json_string(pl_json_get(it.value, "prompt"), &len);
        options.images = PL_CHAT_IMAGES_NAME;
        OK(pl_chat_options_from_request(request, &options, &err));
        OK(pl_chat_from_json(pl_json_get(request, "messages"), pl_json_get(request, "tools"),
                             pl_json_get(request, "response_format"), &options, &chat, &err));
        for (size_t cap = 0; cap <= len; cap += 1 + cap / 40 + (len - cap > 50 && cap > 50 ? 13 : 0)) {
            pl_segments out;
            pl_segments_init(&out, cap);
            assert_int_equal(pl_chat_render(chat, &out, NULL, NULL, &err), cap < len ? PL_ELIMIT : PL_OK);
            pl_segments_free(&out);
        }
        pl_chat_free(chat);
    }
    pl_json_free(doc);
}

static int open_tokenizer(void **state)
{
    (void)state;
    pl_error err;
    return pl_tokenizer_load(&tok, "models/nano/tokenizer.json", &err) == PL_OK ? 0 : -1;
}

static int close_tokenizer(void **state)
{
    (void)state;
    pl_tokenizer_close(tok);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_cases), cmocka_unit_test(test_nano_prompts),
        cmocka_unit_test(test_plain_text),      cmocka_unit_test(test_missing_control_token),
        cmocka_unit_test(test_segments),        cmocka_unit_test(test_render_cap),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
