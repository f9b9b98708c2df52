/* Bodies of the two completion endpoints, read and checked as the server does, on nano's tokenizer, without a model.
 * The first byte chooses the endpoint. What is taken obeys every bound that the engine relies on; what is refused
 * says why. */
#include "server/call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 512, VOCAB = 8192 };

static pl_call_env env;

static void open_env(void)
{
    pl_error err;
    pl_tokenizer *tokenizer;
    if (pl_tokenizer_load(&tokenizer, "models/nano/tokenizer.json", &err) != PL_OK)
        abort(); /* run from the repository root */
    env = (pl_call_env){
        .tokenizer = tokenizer, .vocab = VOCAB, .context = CONTEXT, .bos = 0, .effort = 75, .name = "nano"};
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_spec(const pl_spec *s)
{
    require(s->prompt.len > 0 && s->prompt.len < CONTEXT);
    for (size_t i = 0; i < s->prompt.len; i++)
        require(s->prompt.data[i] >= 0 && s->prompt.data[i] < VOCAB);
    require(s->max_tokens >= 0 && s->top_logprobs >= -1 && s->top_logprobs <= 20);
    require(s->stops <= PL_SPLIT_STOPS_MAX);
    for (size_t i = 0; i < s->stops; i++)
        require(s->stop[i].len > 0 && s->stop[i].len <= PL_SPLIT_STOP_BYTES_MAX);
    /* Whatever a request may say resolves to settings that draws accept. */
    pl_sampling resolved;
    pl_error err;
    const pl_sampling_part *sources[] = {&s->sampling};
    pl_sampling_resolve(&resolved, sources, 1);
    require(pl_sampling_check(&resolved, VOCAB, &err) == PL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!env.tokenizer)
        open_env();
    if (size < 1)
        return 0;
    pl_call call;
    pl_refusal refusal;
    env.thinks = data[0] & 2;
    env.strict_name = data[0] & 4;
    pl_status status = pl_call_read(&call, data[0] & 1, (const char *)data + 1, size - 1, &env, &refusal);
    if (status != PL_OK) {
        require(refusal.status >= 400 && refusal.status <= 599 && refusal.message[0] && refusal.type);
        require(!call.spec);
        pl_out out;
        pl_out_init(&out);
        pl_refusal_write(&refusal, &out);
        pl_json_doc *doc = NULL; /* an error is JSON, whatever the request held */
        require(!out.failed && pl_json_parse(out.buf.data, out.buf.len, NULL, &doc, NULL) == PL_OK);
        pl_json_free(doc);
        pl_out_free(&out);
        return 0;
    }
    require(call.prompts >= 1 && call.n >= 1 && call.prompts * call.n <= PL_CALL_REPLIES_MAX);
    require(call.prompts == 1 || !call.chat);
    for (size_t i = 0; i < call.prompts; i++)
        check_spec(&call.spec[i]);
    pl_call_free(&call);
    return 0;
}
