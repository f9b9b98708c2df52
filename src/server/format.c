/* What the replies of both endpoints have in common. */
#include "server/exchange.h"

#include "base/utf8.h"

#include <inttypes.h>

const char *pl__finish_reason(const pl_outcome *outcome)
{
    return outcome->reason == PL_FINISH_LENGTH ? "length" : "stop";
}

void pl__put_head(pl_exchange *x, const char *object)
{
    pl_out_f(&x->out, "{\"id\": \"%s\", \"object\": \"%s\", \"created\": %lld, \"model\": ", x->id, object,
             (long long)x->created);
    pl_out_text(&x->out, x->server->name);
    pl_out_raw(&x->out, ", \"system_fingerprint\": \"fp_paceline\"");
}

/* Prompts count once, however many choices each has. The end token counts: it was drawn. */
void pl__put_usage(pl_exchange *x)
{
    size_t prompt = 0, tokens = 0, reasoning = 0;
    for (size_t i = 0; i < x->call.prompts; i++)
        prompt += x->call.spec[i].prompt.len;
    for (size_t i = 0; i < x->choices; i++) {
        tokens += x->choice[i].outcome.tokens;
        reasoning += x->choice[i].reasoning_tokens;
    }
    pl_out_f(&x->out,
             "{\"prompt_tokens\": %zu, \"completion_tokens\": %zu, \"total_tokens\": %zu, "
             "\"prompt_tokens_details\": {\"cached_tokens\": 0}, "
             "\"completion_tokens_details\": {\"reasoning_tokens\": %zu}, "
             "\"prompt_cache_hit_tokens\": 0, \"prompt_cache_miss_tokens\": %zu}",
             prompt, tokens, prompt + tokens, reasoning, prompt);
}

static void put_timings(pl_exchange *x, const pl_outcome *o)
{
    pl_out_f(&x->out,
             "{\"token_sha\": \"%s\", \"tokens\": %zu, \"queued_seconds\": %.6f, \"prefill_seconds\": %.6f, "
             "\"first_token_seconds\": %.6f, \"decode_seconds\": %.6f, ",
             o->token_sha, o->tokens, (double)o->timings.queued * 1e-9, (double)o->timings.prefill * 1e-9,
             (double)o->timings.first * 1e-9, (double)o->timings.decode * 1e-9);
    const pl_numbers *n = &o->numbers;
    pl_out_f(&x->out,
             "\"rounds\": %" PRIu64 ", \"plain_rounds\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"asks\": %" PRIu64
             ", \"drafted\": %" PRIu64 ", \"accepted\": %" PRIu64 ", \"copied\": %" PRIu64 ", \"copied_kept\": %" PRIu64
             "}",
             n->rounds, n->plain_rounds, n->rows, n->asks, n->drafted, n->accepted, n->copied, n->copied_kept);
}

void pl__put_paceline(pl_exchange *x)
{
    pl_out_f(&x->out, ", \"token_sha\": \"%s\", \"paceline\": ", x->choice[0].outcome.token_sha);
    put_timings(x, &x->choice[0].outcome);
}

void pl__put_token_text(pl_exchange *x, pl_out *out, int32_t id)
{
    pl_token token;
    pl_buf text;
    pl_buf_init(&text, (size_t)3 * PL_TOKEN_BYTES_MAX, "token");
    if (pl_tokenizer_token(x->server->env.tokenizer, id, &token))
        out->failed = out->failed || pl_utf8_repair(&text, token.bytes, token.len, NULL) != PL_OK;
    pl_out_string(out, text.data ? text.data : "", text.len);
    pl_buf_free(&text);
}
