/* From the request's messages to a checked conversation: roles, contents, tools; user turns merged, results sorted. */
#include "text/chat_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct call_id {
    const char *text;
    size_t len;
    size_t place; /* among the calls of its message */
} call_id;

typedef struct checker {
    pl_chat *chat;
    pl_error *err;
    char path[96]; /* where we are: "messages[3]" */
    size_t n_ids;
    call_id ids[PL__CALLS_MAX]; /* of the last assistant message with calls: sorted by id, then by place */
} checker;

static void at(checker *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static pl_status refuse(checker *c, const char *below, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void at(checker *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->path, sizeof c->path, fmt, ap);
    va_end(ap);
}

/* PL_EINVAL at the current path and the field below it; the message starts with the whole path. */
static pl_status refuse(checker *c, const char *below, const char *fmt, ...)
{
    char param[sizeof((pl_error *)0)->param], what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(param, sizeof param, "%s%s", c->path, below);
    return pl_fail_param(c->err, PL_EINVAL, param, "%s %s", param, what);
}

/* ---- contents --------------------------------------------------------------------------------------------------- */

static bool is_text_type(const pl_json *type)
{
    return pl_json_equals(type, "text") || pl_json_equals(type, "input_text") || pl_json_equals(type, "output_text");
}

static bool is_image_type(const pl_json *type)
{
    return pl_json_equals(type, "image_url") || pl_json_equals(type, "image") || pl_json_equals(type, "input_image");
}

const char *pl__item_text(const pl_json *item, size_t *len)
{
    if (pl_json_is(item, PL_JSON_STRING))
        return pl_json_string(item, len);
    const pl_json *type = pl_json_get(item, "type");
    if (is_image_type(type)) {
        *len = strlen("[image]");
        return "[image]";
    }
    return pl_json_string(pl_json_get(item, pl_json_equals(type, "refusal") ? "refusal" : "text"), len);
}

static pl_status check_item(checker *c, const pl_json *item, size_t i)
{
    char below[64];
    snprintf(below, sizeof below, ".content[%zu]", i);
    if (pl_json_is(item, PL_JSON_STRING))
        return PL_OK;
    if (!pl_json_is(item, PL_JSON_OBJECT))
        return refuse(c, below, "must be an object with a type, found %s", pl_json_type_name(item));
    const pl_json *type = pl_json_get(item, "type");
    bool refusal = pl_json_equals(type, "refusal");
    if (is_text_type(type) || refusal) {
        const pl_json *text = pl_json_get(item, refusal ? "refusal" : "text");
        snprintf(below, sizeof below, ".content[%zu].%s", i, refusal ? "refusal" : "text");
        return pl_json_is(text, PL_JSON_STRING)
                   ? PL_OK
                   : refuse(c, below, "must be a string, found %s", pl_json_type_name(text));
    }
    snprintf(below, sizeof below, ".content[%zu].type", i);
    if (is_image_type(type))
        return c->chat->options.images == PL_CHAT_IMAGES_NAME
                   ? PL_OK
                   : refuse(c, below, "is %s: this model takes text only", pl__shown(type, (char[64]){0}));
    if (!pl_json_is(type, PL_JSON_STRING))
        return refuse(c, below, "must be a string, found %s", pl_json_type_name(type));
    return refuse(c, below, "must be text, found %s", pl__shown(type, (char[64]){0}));
}

/* A string, an array of parts, or nothing when that is allowed. */
static pl_status check_content(checker *c, const pl_json *message, bool required)
{
    const pl_json *content = pl_json_get_set(message, "content");
    if (pl_json_is(content, PL_JSON_STRING) || (!content && !required))
        return PL_OK;
    if (!pl_json_is(content, PL_JSON_ARRAY))
        return refuse(c, ".content", "must be a string or an array of parts, found %s",
                      pl_json_type_name(pl_json_get(message, "content")));
    for (pl_json_iter it = {0}; pl_json_each(content, &it);)
        PL_TRY(check_item(c, it.value, it.index));
    return PL_OK;
}

/* ---- tools, calls, format --------------------------------------------------------------------------------------- */

static bool good_name(const pl__name *name)
{
    static const char legal[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/";
    if (!name->name_len || name->name_len + name->ns_len > 256)
        return false;
    for (size_t i = 0; i < name->name_len; i++) {
        if (!name->name[i] || !strchr(legal, name->name[i]))
            return false;
    }
    for (size_t i = 0; i < name->ns_len; i++) {
        if (!name->ns[i] || !strchr(legal, name->ns[i]))
            return false;
    }
    return true;
}

static bool same_name(const pl__name *a, const pl__name *b)
{
    return a->name_len == b->name_len && a->ns_len == b->ns_len && memcmp(a->name, b->name, a->name_len) == 0 &&
           (!a->ns_len || memcmp(a->ns, b->ns, a->ns_len) == 0);
}

static pl_status check_tool(checker *c, const pl_json *tool, size_t i, pl__name *names)
{
    char below[64];
    snprintf(below, sizeof below, "[%zu]", i);
    if (!pl_json_is(tool, PL_JSON_OBJECT))
        return refuse(c, below, "must be an object, found %s", pl_json_type_name(tool));
    const pl_json *type = pl_json_get_set(tool, "type");
    snprintf(below, sizeof below, "[%zu].type", i);
    if (type && !pl_json_equals(type, "function"))
        return refuse(c, below, "must be function, found %s", pl__shown(type, (char[64]){0}));
    snprintf(below, sizeof below, "[%zu].function", i);
    if (!pl_json_is(pl_json_get(tool, "function"), PL_JSON_OBJECT))
        return refuse(c, below, "must be an object, found %s", pl_json_type_name(pl_json_get(tool, "function")));
    snprintf(below, sizeof below, "[%zu].function.name", i);
    const char *fault = pl__function_name(tool, &names[i]);
    if (fault)
        return refuse(c, below, "%s", fault);
    if (!good_name(&names[i]))
        return refuse(c, below, "must be 1 to 256 letters, digits, '_', '-', '.', ':' or '/'");
    for (size_t j = 0; j < i; j++) {
        if (same_name(&names[i], &names[j]))
            return refuse(c, below, "must be unique, but tool %zu has the same", j);
    }
    return PL_OK;
}

/* tools at the current path: NULL, or an array that becomes turn->tools when it is not empty. */
static pl_status check_tools(checker *c, const pl_json *tools, pl__turn *turn)
{
    size_t n = pl_json_count(tools);
    if (!tools)
        return PL_OK;
    if (!pl_json_is(tools, PL_JSON_ARRAY))
        return refuse(c, "", "must be an array, found %s", pl_json_type_name(tools));
    if (n > PL__TOOLS_MAX)
        return refuse(c, "", "must have at most %d items, found %zu", PL__TOOLS_MAX, n);
    if (!n)
        return PL_OK;
    pl__name *names = malloc(n * sizeof *names);
    if (!names)
        return pl_fail(c->err, PL_ENOMEM, "no memory for %zu tools", n);
    pl_status status = PL_OK;
    for (pl_json_iter it = {0}; status == PL_OK && pl_json_each(tools, &it);)
        status = check_tool(c, it.value, it.index, names);
    free(names);
    turn->tools = tools;
    c->chat->has_tools = true;
    return status;
}

static pl_status check_format(checker *c, const pl_json *format, pl__turn *turn)
{
    if (!format)
        return PL_OK;
    if (!pl_json_is(format, PL_JSON_OBJECT))
        return refuse(c, "", "must be an object, found %s", pl_json_type_name(format));
    const pl_json *type = pl_json_get(format, "type");
    if (pl_json_equals(type, "text"))
        return PL_OK;
    bool schema = pl_json_equals(type, "json_schema");
    if (!schema && !pl_json_equals(type, "json_object"))
        return refuse(c, ".type", "must be text, json_object or json_schema, found %s",
                      type ? pl__shown(type, (char[64]){0}) : "nothing");
    if (schema && !pl_json_is(pl_json_get(pl_json_get(format, "json_schema"), "schema"), PL_JSON_OBJECT))
        return refuse(c, ".json_schema.schema", "must be an object, found %s",
                      pl_json_type_name(pl_json_get(pl_json_get(format, "json_schema"), "schema")));
    turn->format = format;
    return PL_OK;
}

static pl_status check_call(checker *c, const pl_json *call, size_t i)
{
    char below[64];
    snprintf(below, sizeof below, ".tool_calls[%zu]", i);
    if (!pl_json_is(call, PL_JSON_OBJECT))
        return refuse(c, below, "must be an object, found %s", pl_json_type_name(call));
    const pl_json *type = pl_json_get_set(call, "type");
    snprintf(below, sizeof below, ".tool_calls[%zu].type", i);
    if (type && !pl_json_equals(type, "function"))
        return refuse(c, below, "must be function, found %s", pl__shown(type, (char[64]){0}));
    const pl_json *id = pl_json_get_set(call, "id");
    snprintf(below, sizeof below, ".tool_calls[%zu].id", i);
    if (id && !pl_json_is(id, PL_JSON_STRING))
        return refuse(c, below, "must be a string, found %s", pl_json_type_name(id));
    const pl_json *name = pl_json_get(pl_json_get(call, "function"), "name");
    snprintf(below, sizeof below, ".tool_calls[%zu].function.name", i);
    if (!pl_json_is(name, PL_JSON_STRING) || pl_json_equals(name, ""))
        return refuse(c, below, "must be a string that is not empty, found %s", pl_json_type_name(name));
    return PL_OK;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static pl_status check_assistant(checker *c, const pl_json *message, bool last)
{
    static const char *const reasoning[] = {"reasoning_content", "reasoning"};
    PL_TRY(check_content(c, message, false));
    for (size_t i = 0; i < 2; i++) {
        const pl_json *v = pl_json_get_set(message, reasoning[i]);
        char below[32];
        snprintf(below, sizeof below, ".%s", reasoning[i]);
        if (v && !pl_json_is(v, PL_JSON_STRING))
            return refuse(c, below, "must be a string, found %s", pl_json_type_name(v));
    }
    if (pl_json_get_set(message, "function_call"))
        return refuse(c, ".function_call", "is the old form of a call: use tool_calls");
    const pl_json *prefix = pl_json_get_set(message, "prefix");
    if (prefix && !pl_json_is_bool(prefix))
        return refuse(c, ".prefix", "must be a boolean, found %s", pl_json_type_name(prefix));
    if (pl_json_is(prefix, PL_JSON_TRUE) && !last)
        return refuse(c, ".prefix", "is for the last message only");
    const pl_json *calls = pl_json_get_set(message, "tool_calls");
    if (!calls)
        return PL_OK;
    if (!pl_json_is(calls, PL_JSON_ARRAY))
        return refuse(c, ".tool_calls", "must be an array, found %s", pl_json_type_name(calls));
    if (pl_json_count(calls) > PL__CALLS_MAX)
        return refuse(c, ".tool_calls", "must have at most %d items, found %zu", PL__CALLS_MAX, pl_json_count(calls));
    for (pl_json_iter it = {0}; pl_json_each(calls, &it);)
        PL_TRY(check_call(c, it.value, it.index));
    return PL_OK;
}

static int by_id(const void *a, const void *b)
{
    const call_id *x = a, *y = b;
    int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    if (c)
        return c;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void take_ids(checker *c, const pl_json *calls)
{
    c->n_ids = 0;
    for (pl_json_iter it = {0}; pl_json_each(calls, &it);) {
        call_id id = {.place = it.index};
        const pl_json *own = pl_json_get_set(it.value, "id");
        if (!own || pl_json_equals(own, ""))
            own = pl_json_get(pl_json_get(it.value, "function"), "id");
        if (pl_json_is(own, PL_JSON_STRING))
            id.text = pl_json_string(own, &id.len);
        if (id.len)
            c->ids[c->n_ids++] = id;
    }
    qsort(c->ids, c->n_ids, sizeof *c->ids, by_id);
}

/* The place of the call that a result answers: the last one with its id, 0 when there is none. */
static size_t rank_of(const checker *c, const pl_json *id)
{
    call_id key = {.place = SIZE_MAX};
    key.text = pl_json_string(id, &key.len);
    size_t low = 0, high = c->n_ids;
    while (key.len && low < high) { /* the first one above the key */
        size_t mid = low + (high - low) / 2;
        if (by_id(&c->ids[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (!key.len || !low || c->ids[low - 1].len != key.len || memcmp(c->ids[low - 1].text, key.text, key.len) != 0)
        return 0;
    return c->ids[low - 1].place;
}

static pl__turn *new_turn(checker *c, pl__role role, const pl_json *message)
{
    pl__turn *turn = &c->chat->turns[c->chat->n_turns++];
    *turn = (pl__turn){.role = role, .message = message, .part = c->chat->n_parts};
    return turn;
}

static void add_part(checker *c, pl__turn *turn, pl__part part)
{
    c->chat->parts[c->chat->n_parts++] = part;
    turn->n_parts++;
}

/* User messages and tool results that follow one another are one turn. */
static pl__turn *user_turn(checker *c, const pl_json *message)
{
    pl_chat *chat = c->chat;
    if (chat->n_turns && chat->turns[chat->n_turns - 1].role == PL__ROLE_USER)
        return &chat->turns[chat->n_turns - 1];
    return new_turn(c, PL__ROLE_USER, message);
}

static pl_status take_user(checker *c, const pl_json *message)
{
    const pl_json *content = pl_json_get(message, "content");
    PL_TRY(check_content(c, message, true));
    pl__turn *turn = user_turn(c, message);
    if (pl_json_is(content, PL_JSON_STRING))
        add_part(c, turn, (pl__part){.content = content});
    for (pl_json_iter it = {0}; pl_json_each(content, &it);)
        add_part(c, turn, (pl__part){.content = it.value});
    return PL_OK;
}

static pl_status take_tool(checker *c, const pl_json *message)
{
    const pl_json *id = pl_json_get_set(message, "tool_call_id");
    PL_TRY(check_content(c, message, false));
    if (id && !pl_json_is(id, PL_JSON_STRING))
        return refuse(c, ".tool_call_id", "must be a string, found %s", pl_json_type_name(id));
    add_part(
        c, user_turn(c, message),
        (pl__part){
            .content = pl_json_get_set(message, "content"), .call_id = id, .result = true, .rank = rank_of(c, id)});
    return PL_OK;
}

static pl_status take_system(checker *c, const pl_json *message)
{
    char path[sizeof c->path];
    PL_TRY(check_content(c, message, false));
    pl__turn *turn = new_turn(c, PL__ROLE_SYSTEM, message);
    memcpy(path, c->path, sizeof path);
    at(c, "%.64s.tools", path);
    PL_TRY(check_tools(c, pl_json_get_set(message, "tools"), turn));
    at(c, "%.64s.response_format", path);
    return check_format(c, pl_json_get_set(message, "response_format"), turn);
}

static pl_status take_message(checker *c, const pl_json *message, size_t i, bool last)
{
    const pl_json *role = pl_json_get(message, "role");
    at(c, "messages[%zu]", i);
    if (!pl_json_is(message, PL_JSON_OBJECT))
        return refuse(c, "", "must be an object, found %s", pl_json_type_name(message));
    bool system = pl_json_equals(role, "system") || pl_json_equals(role, "developer");
    if (pl_json_get_set(message, "task"))
        return refuse(c, ".task", "is not supported");
    if (!system && pl_json_count(pl_json_get(message, "tools")))
        return refuse(c, ".tools", "is for system messages only");
    const pl_json *prefix = pl_json_get_set(message, "prefix");
    if (prefix && !pl_json_is(prefix, PL_JSON_FALSE) && !pl_json_equals(role, "assistant"))
        return refuse(c, ".prefix", "is for a last assistant message only");
    if (system)
        return take_system(c, message);
    if (pl_json_equals(role, "user"))
        return take_user(c, message);
    if (pl_json_equals(role, "tool"))
        return take_tool(c, message);
    if (pl_json_equals(role, "latest_reminder")) {
        new_turn(c, PL__ROLE_REMINDER, message);
        return check_content(c, message, true);
    }
    if (!pl_json_equals(role, "assistant"))
        return refuse(c, ".role", "must be system, developer, user, assistant, tool or latest_reminder, found %s",
                      pl__shown(role, (char[64]){0}));
    PL_TRY(check_assistant(c, message, last));
    new_turn(c, PL__ROLE_ASSISTANT, message);
    if (pl_json_count(pl_json_get(message, "tool_calls")))
        take_ids(c, pl_json_get(message, "tool_calls"));
    c->chat->continues = pl_json_is(pl_json_get(message, "prefix"), PL_JSON_TRUE);
    return PL_OK;
}

/* ---- order of results ------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const pl__part *const *x = a, *const *y = b;
    if ((*x)->rank != (*y)->rank)
        return (*x)->rank < (*y)->rank ? -1 : 1;
    return *x < *y ? -1 : *x > *y; /* stable */
}

/* The results of a turn in the order of their calls, in the places that results had; text stays where it was. */
static pl_status sort_results(pl__part *parts, size_t n, pl_error *err)
{
    size_t results = 0, i = 0;
    bool sorted = true;
    for (size_t p = 0, rank = 0; p < n; p++) {
        if (parts[p].result) {
            results++;
            sorted = sorted && parts[p].rank >= rank;
            rank = parts[p].rank;
        }
    }
    if (sorted)
        return PL_OK;
    pl__part **order = malloc(results * sizeof *order), *copy = malloc(results * sizeof *copy);
    pl_status status = PL_OK;
    if (order && copy) {
        for (size_t p = 0; p < n; p++) {
            if (parts[p].result)
                order[i++] = &parts[p];
        }
        qsort(order, results, sizeof *order, by_rank);
        for (i = 0; i < results; i++)
            copy[i] = *order[i];
        for (size_t p = i = 0; p < n; p++) {
            if (parts[p].result)
                parts[p] = copy[i++];
        }
    } else {
        status = pl_fail(err, PL_ENOMEM, "no memory for %zu tool results", results);
    }
    free(order);
    free(copy);
    return status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

/* Room for every turn (one more than messages) and every part. */
static pl_status reserve(checker *c, const pl_json *messages)
{
    size_t n = pl_json_count(messages), parts = 0;
    for (pl_json_iter it = {0}; pl_json_each(messages, &it);)
        parts += 1 + pl_json_count(pl_json_get(it.value, "content"));
    c->chat->turns = calloc(n + 1, sizeof *c->chat->turns);
    c->chat->parts = calloc(parts, sizeof *c->chat->parts);
    if (!c->chat->turns || !c->chat->parts)
        return pl_fail(c->err, PL_ENOMEM, "no memory for %zu messages", n);
    return PL_OK;
}

/* The system message that carries the request's tools and format: the first message, or one made in front. */
static pl_status take_request(checker *c, const pl_json *messages, const pl_json *tools, const pl_json *format)
{
    const pl_json *role = pl_json_get(pl_json_at(messages, 0), "role");
    bool system = pl_json_equals(role, "system") || pl_json_equals(role, "developer");
    pl__turn made = {0}, *first = c->chat->turns;
    at(c, "tools");
    PL_TRY(check_tools(c, tools, &made));
    at(c, "response_format");
    PL_TRY(check_format(c, format, &made));
    if (!system && (made.tools || made.format))
        new_turn(c, PL__ROLE_SYSTEM, NULL);
    for (pl_json_iter it = {0}; pl_json_each(messages, &it);)
        PL_TRY(take_message(c, it.value, it.index, it.index + 1 == pl_json_count(messages)));
    at(c, made.tools && first->tools ? "tools" : "response_format");
    if ((made.tools && first->tools) || (made.format && first->format))
        return refuse(c, "", "must not be given twice, on the request and on its first message");
    if (made.tools)
        first->tools = made.tools;
    if (made.format)
        first->format = made.format;
    return PL_OK;
}

static pl_status check_all(checker *c, const pl_json *messages, const pl_json *tools, const pl_json *format)
{
    pl_chat *chat = c->chat;
    at(c, "messages");
    if (!pl_json_is(messages, PL_JSON_ARRAY))
        return refuse(c, "", "must be an array, found %s", pl_json_type_name(messages));
    if (!pl_json_count(messages))
        return refuse(c, "", "must not be empty");
    PL_TRY(reserve(c, messages));
    PL_TRY(take_request(c, messages, pl_json_is(tools, PL_JSON_NULL) ? NULL : tools,
                        pl_json_is(format, PL_JSON_NULL) ? NULL : format));
    for (size_t i = 0; i < chat->n_turns; i++)
        PL_TRY(sort_results(chat->parts + chat->turns[i].part, chat->turns[i].n_parts, c->err));
    return PL_OK;
}

pl_status pl_chat_from_json(const pl_json *messages, const pl_json *tools, const pl_json *response_format,
                            const pl_chat_options *options, pl_chat **out, pl_error *err)
{
    *out = NULL;
    if (options->effort < 1 || options->effort > 100)
        return pl_fail_param(err, PL_EINVAL, "reasoning_effort", "reasoning_effort must be 1 to 100, found %d",
                             options->effort);
    pl_chat *chat = calloc(1, sizeof *chat);
    checker *c = calloc(1, sizeof *c);
    pl_status status;
    if (chat && c) {
        chat->options = *options;
        c->chat = chat;
        c->err = err;
        status = check_all(c, messages, tools, response_format);
    } else {
        status = pl_fail(err, PL_ENOMEM, "no memory for a conversation");
    }
    free(c);
    if (status == PL_OK)
        *out = chat;
    else
        pl_chat_free(chat);
    return status;
}
