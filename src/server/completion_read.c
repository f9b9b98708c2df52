/* The fields of POST /v1/completions that are its own. */
#include "server/call.h"

#include "lanes/request.h"

#include <stdlib.h>
#include <string.h>

static pl_status bad_prompt(const pl_json *found, pl_error *err)
{
    return pl_fail_param(err, PL_EINVAL, "prompt",
                         "prompt: expected a string, a list of strings, a list of token ids or a list of such lists, "
                         "found %s",
                         pl_json_type_name(found));
}

/* Reserve specs for n prompts. */
static pl_status make_specs(pl_call *call, size_t n, pl_error *err)
{
    if (n < 1 || n > PL_CALL_PROMPTS_MAX)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: expected 1 to %d prompts, found %zu",
                             PL_CALL_PROMPTS_MAX, n);
    call->spec = malloc(n * sizeof *call->spec);
    if (!call->spec)
        return pl_fail(err, PL_ENOMEM, "no memory for a request");
    for (; call->prompts < n; call->prompts++)
        pl_spec_init(&call->spec[call->prompts]);
    return PL_OK;
}

static pl_status push_control(pl_spec *spec, const pl_call_env *env, const char *spelling, pl_error *err)
{
    int32_t id = pl_tokenizer_find(env->tokenizer, spelling);
    if (id < 0)
        return pl__call_unsupported("suffix", "the tokenizer has no tokens for it", err);
    return pl_ids_push(&spec->prompt, id, err);
}

/* Fill in the middle: what stands before the gap, then what stands behind it. */
static pl_status infill(pl_spec *spec, const pl_call_env *env, const pl_json *prompt, const pl_json *suffix,
                        int32_t bos, pl_error *err)
{
    size_t len, suffix_len;
    const char *text = pl_json_string(prompt, &len), *after = pl_json_string(suffix, &suffix_len);
    spec->raw = true;
    if (bos >= 0)
        PL_TRY(pl_ids_push(&spec->prompt, bos, err));
    PL_TRY(push_control(spec, env, "<｜fim▁begin｜>", err));
    PL_TRY(pl_tokenizer_encode(env->tokenizer, text, len, true, &spec->prompt, err));
    PL_TRY(push_control(spec, env, "<｜fim▁hole｜>", err));
    PL_TRY(pl_tokenizer_encode(env->tokenizer, after, suffix_len, true, &spec->prompt, err));
    return push_control(spec, env, "<｜fim▁end｜>", err);
}

static pl_status read_ids(pl_spec *spec, const pl_call_env *env, const pl_json *list, pl_error *err)
{
    spec->raw = true;
    for (pl_json_iter it = {0}; pl_json_each(list, &it);) {
        int64_t id;
        if (!pl_json_i64(it.value, 0, env->vocab - 1, &id))
            return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: item %zu is no token id from 0 to %d", it.index,
                                 env->vocab - 1);
        PL_TRY(pl_ids_push(&spec->prompt, (int32_t)id, err));
    }
    return PL_OK;
}

static pl_status read_one(pl_spec *spec, const pl_call_env *env, const pl_json *prompt, const pl_json *suffix,
                          int32_t bos, pl_error *err)
{
    if (pl_json_is(prompt, PL_JSON_ARRAY)) {
        if (suffix)
            return pl__call_unsupported("suffix", "the prompt is a list of ids", err);
        PL_TRY(read_ids(spec, env, prompt, err));
    } else if (!pl_json_is(prompt, PL_JSON_STRING)) {
        return bad_prompt(prompt, err);
    } else if (suffix) {
        return infill(spec, env, prompt, suffix, bos, err);
    } else {
        size_t len;
        const char *text = pl_json_string(prompt, &len);
        PL_TRY(pl_spec_text(spec, env->tokenizer, text, len, bos, err));
    }
    if (spec->prompt.len == 0)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: empty");
    return PL_OK;
}

static pl_status read_prompts(const pl_json *root, const pl_call_env *env, pl_call *call, pl_error *err)
{
    const pl_json *prompt = pl_json_get_set(root, "prompt"), *suffix = pl_json_get_set(root, "suffix");
    bool bos = false, found;
    PL_TRY(pl__field_bool(root, "add_special_tokens", &bos, &found, err));
    int32_t first = bos ? env->bos : -1;
    if (!prompt)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: this field is required");
    if (suffix && !pl_json_is(suffix, PL_JSON_STRING))
        return pl_fail_param(err, PL_EINVAL, "suffix", "suffix: expected a string, found %s",
                             pl_json_type_name(suffix));
    const pl_json *item = pl_json_at(prompt, 0);
    bool several =
        pl_json_is(prompt, PL_JSON_ARRAY) && (pl_json_is(item, PL_JSON_STRING) || pl_json_is(item, PL_JSON_ARRAY));
    PL_TRY(make_specs(call, several ? pl_json_count(prompt) : 1, err));
    if (!several)
        return read_one(call->spec, env, prompt, suffix, first, err);
    for (pl_json_iter it = {0}; pl_json_each(prompt, &it);)
        PL_TRY(read_one(&call->spec[it.index], env, it.value, suffix, first, err));
    return PL_OK;
}

pl_status pl__completion_read(const pl_json *root, const pl_call_env *env, pl_call *call, pl_error *err)
{
    bool found;
    int64_t logprobs = -1;
    if (pl_json_get_set(root, "messages") && !pl_json_get_set(root, "prompt"))
        return pl_fail_param(err, PL_EINVAL, "messages",
                             "messages: this endpoint takes prompt; messages go to "
                             "/v1/chat/completions");
    PL_TRY(pl__field_bool(root, "echo", &call->echo, &found, err));
    PL_TRY(pl__field_int(root, "logprobs", 0, PL_TOP_LOGPROBS_MAX, &logprobs, &found, err));
    if (call->echo && found)
        return pl__call_unsupported("echo", "the prompt's own logprobs are not made", err);
    PL_TRY(read_prompts(root, env, call, err));
    for (size_t i = 0; i < call->prompts; i++) {
        call->spec[i].top_logprobs = (int)logprobs;
        PL_TRY(pl__fields_read(root, env, &call->spec[i], err));
    }
    return PL_OK;
}
