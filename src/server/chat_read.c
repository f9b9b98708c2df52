/* The fields of POST /v1/chat/completions that are its own. */
#include "server/call.h"

#include "lanes/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The input side of tools is rendered, the output side is not read yet: a reply that may hold calls would reach the
 * client as text. So tools are taken where the client says that none may be called. */
static pl_status check_tools(const pl_json *root, const pl_json **tools, pl_error *err)
{
    *tools = pl_json_get_set(root, "tools");
    const pl_json *choice = pl_json_get_set(root, "tool_choice");
    if (*tools && !pl_json_is(*tools, PL_JSON_ARRAY))
        return pl_fail_param(err, PL_EINVAL, "tools", "tools: expected an array, found %s", pl_json_type_name(*tools));
    if (pl_json_count(*tools) == 0) {
        *tools = NULL;
        if (choice && !pl_json_equals(choice, "none") && !pl_json_equals(choice, "auto"))
            return pl_fail_param(err, PL_EINVAL, "tool_choice", "tool_choice: only allowed with tools");
        return PL_OK;
    }
    if (!pl_json_equals(choice, "none"))
        return pl__call_unsupported("tools", "calls in a reply are not read yet; tool_choice \"none\" is accepted",
                                    err);
    return PL_OK;
}

static pl_status check_format(const pl_json *root, pl_error *err)
{
    const pl_json *format = pl_json_get_set(root, "response_format");
    if (!format)
        return PL_OK;
    if (!pl_json_is(format, PL_JSON_OBJECT))
        return pl_fail_param(err, PL_EINVAL, "response_format", "response_format: expected an object, found %s",
                             pl_json_type_name(format));
    const pl_json *type = pl_json_get_set(format, "type");
    if (pl_json_equals(type, "text"))
        return PL_OK;
    if (pl_json_equals(type, "json_object") || pl_json_equals(type, "json_schema"))
        return pl__call_unsupported("response_format", "only {\"type\": \"text\"} can be kept to", err);
    return pl_fail_param(err, PL_EINVAL, "response_format.type",
                         "response_format.type: expected \"text\", \"json_object\" or \"json_schema\"");
}

static pl_status check_modalities(const pl_json *root, pl_error *err)
{
    const pl_json *modalities = pl_json_get_set(root, "modalities");
    if (modalities && !pl_json_is(modalities, PL_JSON_ARRAY))
        return pl_fail_param(err, PL_EINVAL, "modalities", "modalities: expected an array, found %s",
                             pl_json_type_name(modalities));
    for (pl_json_iter it = {0}; pl_json_each(modalities, &it);)
        if (!pl_json_equals(it.value, "text"))
            return pl__call_unsupported("modalities", "only \"text\" is made", err);
    if (pl_json_get_set(root, "audio"))
        return pl__call_unsupported("audio", "only text is made", err);
    return PL_OK;
}

static pl_status read_logprobs(const pl_json *root, pl_spec *spec, pl_error *err)
{
    bool wanted = false, found;
    int64_t top = 0;
    PL_TRY(pl__field_bool(root, "logprobs", &wanted, &found, err));
    PL_TRY(pl__field_int(root, "top_logprobs", 0, PL_TOP_LOGPROBS_MAX, &top, &found, err));
    if (found && top && !wanted)
        return pl_fail_param(err, PL_EINVAL, "top_logprobs", "top_logprobs: only allowed when logprobs is true");
    spec->top_logprobs = wanted ? (int)top : -1;
    return PL_OK;
}

/* A result belongs to a call. The encoding does without its id, and so does the C API; the HTTP API has always asked
 * for it, and the results of a client that forgets it would be in whatever order they came. */
static pl_status check_call_ids(const pl_json *messages, pl_error *err)
{
    for (pl_json_iter it = {0}; pl_json_each(messages, &it);) {
        if (!pl_json_equals(pl_json_get(it.value, "role"), "tool") || pl_json_get_set(it.value, "tool_call_id"))
            continue;
        char param[64];
        snprintf(param, sizeof param, "messages[%zu].tool_call_id", it.index);
        return pl_fail_param(err, PL_EINVAL, param, "%s: this field is required in a tool message", param);
    }
    return PL_OK;
}

static pl_status read_messages(const pl_json *root, const pl_json *tools, const pl_call_env *env, pl_spec *spec,
                               pl_error *err)
{
    pl_chat_options options = pl_chat_default_options;
    options.thinking = env->thinks;
    options.effort = env->effort;
    PL_TRY(pl_chat_options_from_request(root, &options, err));
    const pl_json *messages = pl_json_get_set(root, "messages");
    if (!messages)
        return pl_fail_param(err, PL_EINVAL, "messages", "messages: this field is required");
    PL_TRY(check_call_ids(messages, err));
    pl_chat *chat;
    PL_TRY(pl_chat_from_json(messages, tools, NULL, &options, &chat, err));
    pl_status status = pl_spec_chat(spec, env->tokenizer, chat, err);
    pl_chat_free(chat);
    return status;
}

pl_status pl__chat_read(const pl_json *root, const pl_call_env *env, pl_call *call, pl_error *err)
{
    call->spec = malloc(sizeof *call->spec);
    if (!call->spec)
        return pl_fail(err, PL_ENOMEM, "no memory for a request");
    call->prompts = 1;
    pl_spec_init(call->spec);
    const pl_json *tools;
    PL_TRY(check_tools(root, &tools, err));
    PL_TRY(check_format(root, err));
    PL_TRY(check_modalities(root, err));
    PL_TRY(read_logprobs(root, call->spec, err));
    PL_TRY(pl__fields_read(root, env, call->spec, err));
    return read_messages(root, tools, env, call->spec, err);
}
