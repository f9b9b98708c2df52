/* Rendering: a checked conversation to the pieces of its prompt. */
#include "text/chat.h"

#include "base/utf8.h"
#include "text/chat_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const pl_chat_options pl_chat_default_options = {.thinking = true, .effort = PL_CHAT_EFFORT_HIGH};

typedef struct renderer {
    const pl_chat *chat;
    pl_segments *out;
    pl_error *err;
    size_t last_user;  /* the last turn that is a user's or a later system message; SIZE_MAX: none */
    bool drop;         /* reasoning before that turn is left out */
    bool open;         /* an assistant's header stands at the end */
    bool in_reasoning; /* what was opened by it is a thinking block */
} renderer;

static pl_status put(renderer *r, const char *text)
{
    return pl_segments_text(r->out, text, strlen(text), r->err);
}

static pl_status control(renderer *r, const char *spelling)
{
    return pl_segments_control(r->out, spelling, r->err);
}

/* A string, the parts of an array joined by blank lines, or nothing. */
static pl_status put_content(renderer *r, const pl_json *content)
{
    size_t len;
    if (!content)
        return PL_OK;
    if (!pl_json_is(content, PL_JSON_ARRAY)) {
        const char *text = pl__item_text(content, &len);
        return pl_segments_text(r->out, text, len, r->err);
    }
    for (pl_json_iter it = {0}; pl_json_each(content, &it);) {
        const char *text = pl__item_text(it.value, &len);
        if (it.index)
            PL_TRY(put(r, "\n\n"));
        PL_TRY(pl_segments_text(r->out, text, len, r->err));
    }
    return PL_OK;
}

static pl_status put_system(renderer *r, const pl__turn *turn, bool first)
{
    if (!first)
        PL_TRY(control(r, PL__SYSTEM));
    PL_TRY(put_content(r, pl_json_get_set(turn->message, "content")));
    if (turn->tools) {
        PL_TRY(put(r, "\n\n"));
        PL_TRY(pl__put_tools(r->out, turn->tools, r->err));
    }
    if (!turn->format)
        return PL_OK;
    PL_TRY(put(r, "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"));
    return pl__put_json(r->out, turn->format, r->err);
}

static pl_status put_user(renderer *r, const pl__turn *turn)
{
    PL_TRY(control(r, PL__USER));
    for (size_t i = 0; i < turn->n_parts; i++) {
        const pl__part *part = &r->chat->parts[turn->part + i];
        if (i)
            PL_TRY(put(r, "\n\n"));
        if (part->result)
            PL_TRY(put(r, "<tool_result>"));
        PL_TRY(put_content(r, part->content));
        if (part->result)
            PL_TRY(put(r, "</tool_result>"));
    }
    return PL_OK;
}

/* The reasoning that came with an assistant's message, under either of its two names. */
static const char *reasoning_of(const pl_json *message, size_t *len)
{
    const char *text = pl_json_string(pl_json_get_set(message, "reasoning_content"), len);
    if (*len)
        return text;
    return pl_json_string(pl_json_get_set(message, "reasoning"), len);
}

static pl_status put_assistant(renderer *r, const pl__turn *turn, size_t index, bool continues)
{
    const pl_json *content = pl_json_get_set(turn->message, "content");
    const pl_json *calls = pl_json_get_set(turn->message, "tool_calls");
    bool has_calls = pl_json_count(calls) > 0;
    if (r->chat->options.thinking && (!r->drop || r->last_user == SIZE_MAX || index > r->last_user)) {
        size_t len;
        const char *reasoning = reasoning_of(turn->message, &len);
        PL_TRY(pl_segments_text(r->out, reasoning, len, r->err));
        bool empty = !pl_json_count(content) && (!content || pl_json_equals(content, ""));
        if (continues && len && empty && !has_calls)
            return PL_OK; /* the reply goes on with the reasoning */
        PL_TRY(control(r, PL__END_THINK));
        r->in_reasoning = false;
    }
    PL_TRY(put_content(r, content));
    if (has_calls)
        PL_TRY(pl__put_calls(r->out, calls, r->err));
    return continues ? PL_OK : control(r, PL__EOS);
}

/* The head of the assistant turn that follows turn `index`. */
static pl_status put_header(renderer *r, size_t index)
{
    r->open = true;
    r->in_reasoning = r->chat->options.thinking && (!r->drop || r->last_user == SIZE_MAX || index >= r->last_user);
    PL_TRY(control(r, PL__ASSISTANT));
    return control(r, r->in_reasoning ? PL__THINK : PL__END_THINK);
}

static pl_status put_turn(renderer *r, size_t index, bool continues)
{
    const pl__turn *turn = &r->chat->turns[index];
    if (index == 0 && (r->chat->options.thinking || turn->role == PL__ROLE_SYSTEM))
        PL_TRY(control(r, PL__SYSTEM));
    if (index == 0 && r->chat->options.thinking) {
        char line[128];
        snprintf(line, sizeof line,
                 "Reasoning Effort: %d (range 1-100, the higher the value, the more thorough the reasoning)\n\n",
                 r->chat->options.effort);
        PL_TRY(put(r, line));
    }
    switch (turn->role) {
    case PL__ROLE_SYSTEM: r->open = false; return put_system(r, turn, index == 0);
    case PL__ROLE_USER: r->open = false; return put_user(r, turn);
    case PL__ROLE_REMINDER:
        PL_TRY(control(r, PL__REMINDER));
        return put_content(r, pl_json_get(turn->message, "content"));
    case PL__ROLE_ASSISTANT: break;
    }
    r->open = continues;
    return put_assistant(r, turn, index, continues);
}

/* Whether turn i calls for an answer: it is a user's, or a system message in the middle. */
static bool calls_for_answer(const pl_chat *chat, size_t i)
{
    pl__role role = chat->turns[i].role;
    return role == PL__ROLE_USER || (role == PL__ROLE_SYSTEM && i > 0);
}

pl_status pl_chat_render(const pl_chat *chat, pl_segments *out, bool *in_reasoning, bool *continues, pl_error *err)
{
    size_t n = chat->n_turns;
    renderer r = {.chat = chat, .out = out, .err = err, .last_user = SIZE_MAX};
    r.drop = !chat->options.keep_reasoning && !chat->has_tools;
    for (size_t i = 0; i < n; i++) {
        if (calls_for_answer(chat, i))
            r.last_user = i;
    }
    PL_TRY(control(&r, PL__BOS));
    for (size_t i = 0; i < n; i++) {
        PL_TRY(put_turn(&r, i, i + 1 == n && chat->continues));
        bool answered =
            i + 1 == n || chat->turns[i + 1].role == PL__ROLE_ASSISTANT || chat->turns[i + 1].role == PL__ROLE_REMINDER;
        if (answered && calls_for_answer(chat, i))
            PL_TRY(put_header(&r, i));
    }
    if (!r.open) /* after a lone system message, or an assistant's message that is over: a new answer */
        PL_TRY(put_header(&r, n - 1));
    if (in_reasoning)
        *in_reasoning = r.in_reasoning;
    if (continues)
        *continues = chat->continues;
    return PL_OK;
}

bool pl_chat_has_tools(const pl_chat *chat)
{
    return chat->has_tools;
}

static pl_status put_message(pl_buf *json, const char *role, const char *text, size_t len, pl_error *err)
{
    size_t bad = pl_utf8_check(text, len);
    if (bad < len)
        return pl_fail_at(err, PL_EFORMAT, (int64_t)bad, "the %s text is not UTF-8 at byte %zu", role, bad);
    PL_TRY(pl_buf_addf(json, err, "%c{\"role\":\"%s\",\"content\":", json->len ? ',' : '[', role));
    PL_TRY(pl_json_write_string(text, len, json, err));
    return pl_buf_addc(json, '}', err);
}

static pl_status write_messages(pl_buf *json, const char *system, const char *user, size_t user_len, pl_error *err)
{
    if (system)
        PL_TRY(put_message(json, "system", system, strlen(system), err));
    PL_TRY(put_message(json, "user", user, user_len, err));
    return pl_buf_addc(json, ']', err);
}

pl_status pl_chat_from_text(const char *system, const char *user, size_t user_len, const pl_chat_options *options,
                            pl_chat **out, pl_error *err)
{
    pl_buf json;
    pl_json_doc *doc = NULL;
    *out = NULL;
    pl_buf_init(&json, pl_json_default_limits.max_bytes, "prompt text");
    pl_status status = write_messages(&json, system, user, user_len, err);
    if (status == PL_OK)
        status = pl_json_parse(json.data, json.len, NULL, &doc, err);
    pl_buf_free(&json);
    if (status == PL_OK)
        status = pl_chat_from_json(pl_json_root(doc), NULL, NULL, options, out, err);
    if (status == PL_OK)
        (*out)->own = doc;
    else
        pl_json_free(doc);
    return status;
}

void pl_chat_free(pl_chat *chat)
{
    if (!chat)
        return;
    pl_json_free(chat->own);
    free(chat->turns);
    free(chat->parts);
    free(chat);
}
