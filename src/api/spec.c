/* Making a pl_spec. */
#include "api/spec.h"

#include "text/segments.h"

#include <stdlib.h>
#include <string.h>

void pl_spec_init(pl_spec *spec)
{
    *spec = (pl_spec){.draft = true, .top_logprobs = -1};
    pl_ids_init(&spec->prompt, PL_IDS_MAX);
}

void pl_spec_free(pl_spec *spec)
{
    pl_ids_free(&spec->prompt);
    pl_sampling_free(&spec->sampling.value);
    for (size_t i = 0; i < spec->stops; i++)
        free((void *)spec->stop[i].bytes);
    spec->stops = 0;
}

pl_status pl_spec_add_stop(pl_spec *spec, const char *bytes, size_t len, pl_error *err)
{
    if (len == 0)
        return PL_OK;
    if (spec->stops == PL_SPLIT_STOPS_MAX)
        return pl_fail_param(err, PL_EINVAL, "stop", "stop: more than %d strings", PL_SPLIT_STOPS_MAX);
    if (len > PL_SPLIT_STOP_BYTES_MAX)
        return pl_fail_param(err, PL_EINVAL, "stop", "stop: a string of %zu bytes, expected at most %d", len,
                             PL_SPLIT_STOP_BYTES_MAX);
    char *copy = malloc(len);
    if (!copy)
        return pl_fail(err, PL_ENOMEM, "no memory for a stop string");
    memcpy(copy, bytes, len);
    spec->stop[spec->stops++] = (pl_stop){.bytes = copy, .len = len};
    return PL_OK;
}

pl_status pl_spec_add_bias(pl_spec *spec, int32_t token, float add, pl_error *err)
{
    pl_sampling *s = &spec->sampling.value;
    for (int i = 0; i < s->biases; i++)
        if (s->bias[i].token == token) { /* the last of two wins, as for any key given twice */
            s->bias[i].add = add;
            return PL_OK;
        }
    if (s->biases == PL_MAX_BIASES)
        return pl_fail_param(err, PL_EINVAL, "logit_bias", "logit_bias: more than %d tokens", PL_MAX_BIASES);
    if (!s->bias)
        s->bias = malloc(PL_MAX_BIASES * sizeof *s->bias);
    if (!s->bias)
        return pl_fail(err, PL_ENOMEM, "no memory for logit_bias");
    s->bias[s->biases++] = (pl_bias){.token = token, .add = add};
    return PL_OK;
}

pl_status pl_spec_chat(pl_spec *spec, const pl_tokenizer *tokenizer, const pl_chat *chat, pl_error *err)
{
    pl_segments segments;
    pl_segments_init(&segments, PL_PROMPT_TEXT_MAX);
    pl_status status = pl_chat_render(chat, &segments, &spec->in_reasoning, &spec->continues, err);
    if (status == PL_OK)
        status = pl_segments_encode(tokenizer, &segments, &spec->prompt, err);
    pl_segments_free(&segments);
    spec->raw = false;
    spec->thinking = spec->in_reasoning;
    return status;
}

pl_status pl_spec_text(pl_spec *spec, const pl_tokenizer *tokenizer, const char *text, size_t len, int32_t bos,
                       pl_error *err)
{
    spec->raw = true;
    if (bos >= 0)
        PL_TRY(pl_ids_push(&spec->prompt, bos, err));
    PL_TRY(pl_tokenizer_encode(tokenizer, text, len, true, &spec->prompt, err));
    if (spec->prompt.len == 0)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: the text is empty");
    return PL_OK;
}

pl_status pl_spec_ids(pl_spec *spec, const int32_t *ids, size_t count, int vocab, pl_error *err)
{
    spec->raw = true;
    if (count == 0)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: no ids");
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: id %zu is %d, expected 0 to %d", i, (int)ids[i],
                                 vocab - 1);
    return pl_ids_add(&spec->prompt, ids, count, err);
}
