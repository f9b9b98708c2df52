/* The fields of a request that choose thinking, effort and what becomes of old reasoning. Clients spell them in many
 * ways; all of them are honoured, and a value that is none of the accepted ones is refused by name. */
#include "text/chat_int.h"

#include <stdio.h>
#include <string.h>

const char *pl__shown(const pl_json *value, char out[64])
{
    size_t len;
    const char *text = pl_json_string(value, &len);
    bool plain = text && len && len < 64;
    for (size_t i = 0; plain && i < len; i++)
        plain = (unsigned char)text[i] >= 0x20 && text[i] != 0x7F;
    if (plain)
        snprintf(out, 64, "%.*s", (int)len, text);
    else
        snprintf(out, 64, "%s", pl_json_type_name(value));
    return out;
}

typedef enum wish { UNSAID, ON, OFF } wish;

typedef struct wishes {
    wish thinking;
    int effort; /* 0: unsaid */
} wishes;

static pl_status refuse(pl_error *err, const char *where, const char *accepted, const pl_json *value)
{
    char found[64];
    return pl_fail_param(err, PL_EINVAL, where, "%s must be %s, found %s", where, accepted, pl__shown(value, found));
}

/* One source's wish joins the others at its level: "off" wins over "on". */
static void join(wish *all, wish one)
{
    if (*all != OFF && one != UNSAID)
        *all = one;
}

static pl_status read_bool(const pl_json *owner, const char *prefix, const char *key, wish *out, pl_error *err)
{
    const pl_json *value = pl_json_get_set(owner, key);
    char where[96];
    if (!value)
        return PL_OK;
    snprintf(where, sizeof where, "%s%s", prefix, key);
    if (!pl_json_is_bool(value))
        return refuse(err, where, "true or false", value);
    join(out, pl_json_is(value, PL_JSON_TRUE) ? ON : OFF);
    return PL_OK;
}

/* An effort into *w; the first one read stays. */
static pl_status read_effort(const pl_json *value, const char *where, wishes *w, pl_error *err)
{
    static const struct {
        const char *name;
        int effort;
    } names[] = {{"minimal", PL_CHAT_EFFORT_LOW}, {"low", PL_CHAT_EFFORT_LOW},    {"medium", PL_CHAT_EFFORT_HIGH},
                 {"high", PL_CHAT_EFFORT_HIGH},   {"xhigh", PL_CHAT_EFFORT_HIGH}, {"max", PL_CHAT_EFFORT_MAX},
                 {"ultra", PL_CHAT_EFFORT_MAX}};
    int64_t number;
    int effort = 0;
    if (!value)
        return PL_OK;
    if (pl_json_equals(value, "none")) {
        join(&w->thinking, OFF);
        return PL_OK;
    }
    if (pl_json_i64(value, 1, 100, &number))
        effort = (int)number;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (pl_json_equals(value, names[i].name))
            effort = names[i].effort;
    }
    if (!effort)
        return refuse(err, where, "none, minimal, low, medium, high, xhigh, max, ultra or an integer 1 to 100", value);
    if (!w->effort)
        w->effort = effort;
    return PL_OK;
}

/* `thinking`: a boolean, or an object with a type or an effort or both. */
static pl_status read_thinking(const pl_json *owner, const char *prefix, wishes *w, pl_error *err)
{
    const pl_json *value = pl_json_get_set(owner, "thinking");
    char where[96];
    if (!pl_json_is(value, PL_JSON_OBJECT))
        return read_bool(owner, prefix, "thinking", &w->thinking, err);
    const pl_json *type = pl_json_get_set(value, "type");
    if (pl_json_equals(type, "disabled")) {
        join(&w->thinking, OFF);
    } else if (pl_json_equals(type, "enabled") || pl_json_equals(type, "adaptive")) {
        join(&w->thinking, ON);
    } else if (type || !pl_json_get_set(value, "effort")) {
        snprintf(where, sizeof where, "%sthinking.type", prefix);
        return refuse(err, where, "enabled, disabled or adaptive", type);
    }
    snprintf(where, sizeof where, "%sthinking.effort", prefix);
    return read_effort(pl_json_get_set(value, "effort"), where, w, err);
}

static pl_status read_mode(const pl_json *value, wishes *w, pl_error *err)
{
    if (!value)
        return PL_OK;
    bool on = pl_json_equals(value, "thinking");
    if (!on && !pl_json_equals(value, "chat"))
        return refuse(err, "chat_template_kwargs.thinking_mode", "thinking or chat", value);
    join(&w->thinking, on ? ON : OFF);
    return PL_OK;
}

static pl_status read_request(const pl_json *request, wishes *w, pl_error *err)
{
    PL_TRY(read_thinking(request, "", w, err));
    PL_TRY(read_bool(request, "", "enable_thinking", &w->thinking, err));
    PL_TRY(read_bool(request, "", "think", &w->thinking, err));
    PL_TRY(read_effort(pl_json_get_set(request, "reasoning_effort"), "reasoning_effort", w, err));
    const pl_json *reasoning = pl_json_get_set(request, "reasoning");
    if (reasoning && !pl_json_is(reasoning, PL_JSON_OBJECT))
        return refuse(err, "reasoning", "an object", reasoning);
    return read_effort(pl_json_get_set(reasoning, "effort"), "reasoning.effort", w, err);
}

static pl_status read_kwargs(const pl_json *kwargs, wishes *w, wish *drop, pl_error *err)
{
    static const char prefix[] = "chat_template_kwargs.";
    PL_TRY(read_thinking(kwargs, prefix, w, err));
    PL_TRY(read_bool(kwargs, prefix, "enable_thinking", &w->thinking, err));
    PL_TRY(read_mode(pl_json_get_set(kwargs, "thinking_mode"), w, err));
    PL_TRY(read_effort(pl_json_get_set(kwargs, "reasoning_effort"), "chat_template_kwargs.reasoning_effort", w, err));
    return read_bool(kwargs, prefix, "drop_thinking", drop, err);
}

pl_status pl_chat_options_from_request(const pl_json *request, pl_chat_options *options, pl_error *err)
{
    wishes top = {UNSAID, 0}, below = {UNSAID, 0};
    wish drop = UNSAID;
    const pl_json *kwargs = pl_json_get_set(request, "chat_template_kwargs");
    if (kwargs && !pl_json_is(kwargs, PL_JSON_OBJECT))
        return refuse(err, "chat_template_kwargs", "an object", kwargs);
    PL_TRY(read_request(request, &top, err));
    PL_TRY(read_kwargs(kwargs, &below, &drop, err));
    wish thinking = top.thinking != UNSAID ? top.thinking : below.thinking;
    int effort = top.effort ? top.effort : below.effort;
    if (thinking != UNSAID)
        options->thinking = thinking == ON;
    if (effort)
        options->effort = effort;
    if (drop != UNSAID)
        options->keep_reasoning = drop == OFF;
    return PL_OK;
}
