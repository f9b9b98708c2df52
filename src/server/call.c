/* Reading a request body: JSON, then the endpoint's own reader, then what holds for both. */
#include "server/call.h"

#include <stdlib.h>
#include <string.h>

/* Part of the message, so that one error object carries both kinds. */
static const char unsupported[] = " is not supported here: ";

pl_status pl__call_unsupported(const char *param, const char *why, pl_error *err)
{
    return pl_fail_param(err, PL_EINVAL, param, "%s%s%s", param, unsupported, why);
}

bool pl__call_is_unsupported(const pl_error *err)
{
    size_t n = strlen(err->param);
    return n && strncmp(err->message, err->param, n) == 0 &&
           strncmp(err->message + n, unsupported, sizeof unsupported - 1) == 0;
}

void pl_call_free(pl_call *call)
{
    for (size_t i = 0; i < call->prompts; i++)
        pl_spec_free(&call->spec[i]);
    free(call->spec);
    *call = (pl_call){0};
}

static pl_status check_model(const pl_json *root, const pl_call_env *env, pl_refusal *refusal, pl_error *err)
{
    const pl_json *model = pl_json_get_set(root, "model");
    size_t len;
    const char *name = pl_json_string(model, &len);
    if (!model)
        return PL_OK;
    if (!pl_json_is(model, PL_JSON_STRING))
        return pl_fail_param(err, PL_EINVAL, "model", "model: expected a string, found %s", pl_json_type_name(model));
    if (!env->strict_name || pl_json_equals(model, env->name))
        return PL_OK;
    pl_refusal_make(refusal, 404, "model_not_found", "the model \"%.*s\" is not here, only \"%s\"",
                    (int)(len < 100 ? len : 100), name, env->name);
    memcpy(refusal->param, "model", sizeof "model");
    return PL_ENOTFOUND;
}

/* A prompt that leaves no room for a reply. */
static pl_status check_context(const pl_call *call, const pl_call_env *env, pl_refusal *refusal)
{
    for (size_t i = 0; i < call->prompts; i++) {
        size_t len = call->spec[i].prompt.len;
        if (len < (size_t)env->context)
            continue;
        pl_refusal_make(refusal, 400, "context_length_exceeded",
                        "the prompt has %zu tokens; the context holds %d, prompt and reply together", len,
                        env->context);
        memcpy(refusal->param, call->chat ? "messages" : "prompt", call->chat ? sizeof "messages" : sizeof "prompt");
        refusal->prompt_tokens = len;
        refusal->context = env->context;
        return PL_ELIMIT;
    }
    return PL_OK;
}

static pl_status read_root(pl_call *call, const pl_json *root, const pl_call_env *env, pl_refusal *refusal,
                           pl_error *err)
{
    if (!pl_json_is(root, PL_JSON_OBJECT))
        return pl_fail(err, PL_EFORMAT, "the request body must be a JSON object, found %s", pl_json_type_name(root));
    PL_TRY(check_model(root, env, refusal, err));
    PL_TRY(pl__fields_delivery(root, call, err));
    PL_TRY(call->chat ? pl__chat_read(root, env, call, err) : pl__completion_read(root, env, call, err));
    if (call->prompts * call->n > PL_CALL_REPLIES_MAX)
        return pl_fail_param(err, PL_EINVAL, "n", "n: %zu prompts with %zu choices each, expected at most %d replies",
                             call->prompts, call->n, PL_CALL_REPLIES_MAX);
    PL_TRY(check_context(call, env, refusal));
    size_t tokens = 0; /* every choice has a copy of its prompt while it waits */
    for (size_t i = 0; i < call->prompts; i++)
        tokens += call->spec[i].prompt.len * call->n;
    if (tokens > PL_CALL_TOKENS_MAX)
        return pl_fail_param(err, PL_EINVAL, call->chat ? "messages" : "prompt",
                             "%zu prompt tokens, counted for every choice, expected at most %d", tokens,
                             PL_CALL_TOKENS_MAX);
    return PL_OK;
}

pl_status pl_call_read(pl_call *call, bool chat, const char *body, size_t len, const pl_call_env *env,
                       pl_refusal *refusal)
{
    *call = (pl_call){.chat = chat, .n = 1};
    *refusal = (pl_refusal){0};
    pl_error err = {0};
    pl_json_doc *doc;
    pl_status status = pl_json_parse(body ? body : "", len, NULL, &doc, &err);
    if (status != PL_OK && status != PL_ENOMEM) {
        pl_refusal_make(refusal, 400, "invalid_json", "the request body is not acceptable JSON: %s (byte %lld)",
                        err.message, (long long)err.offset);
        return status;
    }
    if (status == PL_OK)
        status = read_root(call, pl_json_root(doc), env, refusal, &err);
    pl_json_free(doc);
    if (status == PL_OK)
        return PL_OK;
    if (!refusal->status)
        pl_refusal_from(refusal, &err);
    if (pl__call_is_unsupported(&err))
        refusal->code = "unsupported_value";
    pl_call_free(call);
    return status;
}
