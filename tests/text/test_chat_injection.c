/* No text of a user, a tool or an earlier reply becomes a control token, whatever it spells. The prompt of a
 * conversation has exactly the control tokens that the same conversation with harmless texts has. */
#include "support.h"

static pl_tokenizer *tok;

/* Added tokens of the tokenizer and look-alikes, glued and torn. */
static void hostile_text(pl_buf *to)
{
    static const char *const pieces[] = {
        "<｜", "｜>", "<think>", "</think>", "｜DSML｜",      "\n\n<｜DSML｜ calls>\n", "<|User|>", "\\", "\"",
        "\n",  "a",   " ",       "{",        "<tool_result>", "</tool_result>",         "é",        "1"};
    pl_error err;
    size_t n = below(6);
    for (size_t i = 0; i < n; i++) {
        pl_token token;
        if (below(2)) {
            OK(pl_buf_adds(to, pieces[below(sizeof pieces / sizeof *pieces)], &err));
        } else {
            do { /* a whole control spelling */
                assert_true(pl_tokenizer_token(tok, pl_tokenizer_size(tok) - 1 - (int32_t)below(64), &token));
            } while (!token.added);
            OK(pl_buf_add(to, token.bytes, token.len, &err));
        }
    }
}

static void add_string(pl_buf *json, bool hostile)
{
    pl_error err;
    pl_buf text;
    pl_buf_init(&text, 1 << 16, "test");
    OK(pl_buf_adds(&text, "x", &err));
    if (hostile)
        hostile_text(&text);
    OK(pl_json_write_string(text.data, text.len, json, &err));
    pl_buf_free(&text);
}

/* The same conversation, of the same shape, with hostile or harmless texts in every place that takes some. */
static void build(pl_buf *json, const size_t *shape, size_t n, bool hostile)
{
    static const char *const open[] = {
        "{\"role\":\"user\",\"content\":",
        "{\"role\":\"system\",\"content\":",
        "{\"role\":\"latest_reminder\",\"content\":",
        "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":",
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":",
        "{\"role\":\"assistant\",\"content\":",
        "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":",
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"arguments\":{\"k\":[1]},\"name\":",
        "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"k\":",
        "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"k\":{\"deep\":[",
        "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":",
    };
    static const char *const close[] = {"}", "}", "}", "}", "}]}", "}", "}", "}}]}", "}}}]}", "]}}}}]}", "}}]}"};
    pl_error err;
    OK(pl_buf_adds(json, "{\"messages\":[", &err));
    for (size_t i = 0; i < n; i++) {
        OK(pl_buf_addf(json, &err, "%s%s", i ? "," : "", open[shape[i]]));
        add_string(json, hostile);
        OK(pl_buf_adds(json, close[shape[i]], &err));
    }
    OK(pl_buf_adds(json, "],\"tools\":[{\"function\":{\"name\":\"f\",\"description\":", &err));
    add_string(json, hostile);
    OK(pl_buf_adds(json, ",\"parameters\":{\"properties\":{", &err));
    add_string(json, hostile);
    OK(pl_buf_adds(
        json, ":{}}}}}],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"title\":", &err));
    add_string(json, hostile);
    OK(pl_buf_adds(json, "}}}}", &err));
}

/* The control ids of the conversation's prompt, in order. */
static void control_ids(const pl_buf *json, bool thinking, pl_ids *controls)
{
    pl_error err;
    pl_chat *chat = NULL;
    pl_json_doc *doc = parse(json->data);
    pl_chat_options options = pl_chat_default_options;
    pl_segments out;
    pl_ids ids;
    options.thinking = thinking;
    OK(pl_chat_from_json(pl_json_get(pl_json_root(doc), "messages"), pl_json_get(pl_json_root(doc), "tools"),
                         pl_json_get(pl_json_root(doc), "response_format"), &options, &chat, &err));
    pl_segments_init(&out, 1 << 20);
    pl_ids_init(&ids, PL_IDS_MAX);
    OK(pl_chat_render(chat, &out, NULL, NULL, &err));
    OK(pl_segments_encode(tok, &out, &ids, &err));
    for (size_t i = 0; i < ids.len; i++) {
        pl_token token;
        assert_true(pl_tokenizer_token(tok, ids.data[i], &token));
        if (token.added)
            OK(pl_ids_push(controls, ids.data[i], &err));
    }
    /* And the text is all there: nothing was dropped or changed on the way. */
    pl_buf back;
    pl_buf_init(&back, 1 << 20, "test");
    OK(pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err));
    assert_int_equal(back.len, out.text.len);
    assert_memory_equal(back.data, out.text.data, back.len);
    pl_buf_free(&back);
    pl_ids_free(&ids);
    pl_segments_free(&out);
    pl_chat_free(chat);
    pl_json_free(doc);
}

static void test_hostile_conversations(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        size_t shape[8], n = 1 + below(8);
        pl_buf harmless, hostile;
        pl_ids expected, found;
        bool thinking = below(2);
        for (size_t i = 0; i < n; i++)
            shape[i] = below(11);
        pl_buf_init(&harmless, 1 << 20, "test");
        pl_buf_init(&hostile, 1 << 20, "test");
        pl_ids_init(&expected, PL_IDS_MAX);
        pl_ids_init(&found, PL_IDS_MAX);
        build(&harmless, shape, n, false);
        build(&hostile, shape, n, true);
        control_ids(&harmless, thinking, &expected);
        control_ids(&hostile, thinking, &found);
        assert_int_equal(found.len, expected.len);
        assert_memory_equal(found.data, expected.data, found.len * sizeof *found.data);
        pl_buf_free(&harmless);
        pl_buf_free(&hostile);
        pl_ids_free(&expected);
        pl_ids_free(&found);
    }
}

/* Each added token by itself, in a user's message. */
static void test_every_control_spelling(void **state)
{
    (void)state;
    size_t added = 0;
    for (int32_t id = 0; id < pl_tokenizer_size(tok); id++) {
        pl_error err;
        pl_token token;
        pl_chat *chat = NULL;
        pl_segments out;
        pl_ids ids;
        pl_chat_options options = pl_chat_default_options;
        options.thinking = false;
        if (!pl_tokenizer_token(tok, id, &token) || !token.added)
            continue;
        added++;
        pl_segments_init(&out, 1 << 12);
        pl_ids_init(&ids, 1 << 12);
        OK(pl_chat_from_text(NULL, token.bytes, token.len, &options, &chat, &err));
        OK(pl_chat_render(chat, &out, NULL, NULL, &err));
        OK(pl_segments_encode(tok, &out, &ids, &err));
        assert_true(ids.len > 4);
        for (size_t i = 2; i + 2 < ids.len; i++) { /* between BOS, User and Assistant, </think> */
            pl_token piece;
            assert_true(pl_tokenizer_token(tok, ids.data[i], &piece));
            assert_false(piece.added);
        }
        pl_ids_free(&ids);
        pl_segments_free(&out);
        pl_chat_free(chat);
    }
    assert_true(added >= 60);
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
        cmocka_unit_test(test_hostile_conversations),
        cmocka_unit_test(test_every_control_spelling),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
