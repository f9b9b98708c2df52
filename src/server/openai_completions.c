/* Replies of POST /v1/completions. Logprobs are four parallel lists there, and a map a token. */
#include "server/exchange.h"

#include "base/utf8.h"

/* A token's text, or "bytes:\xe2\x80" where it is not text by itself: the map needs different names for different
 * tokens. */
static void put_name(pl_exchange *x, pl_out *out, int32_t id)
{
    pl_token token;
    if (!pl_tokenizer_token(x->server->env.tokenizer, id, &token)) {
        pl_out_f(out, "\"token:%d\"", (int)id);
        return;
    }
    if (pl_utf8_check(token.bytes, token.len) == token.len) {
        pl_out_string(out, token.bytes, token.len);
        return;
    }
    pl_out_raw(out, "\"bytes:");
    for (size_t i = 0; i < token.len; i++)
        pl_out_f(out, "\\\\x%02x", (unsigned)(unsigned char)token.bytes[i]);
    pl_out_raw(out, "\"");
}

/* Characters of a token; bytes that only begin or continue one count for the token that begins it. */
static size_t characters(pl_exchange *x, int32_t id)
{
    pl_token token;
    size_t n = 0;
    if (!pl_tokenizer_token(x->server->env.tokenizer, id, &token))
        return 0;
    for (size_t i = 0; i < token.len; i++)
        n += ((unsigned char)token.bytes[i] & 0xc0) != 0x80;
    return n;
}

static void logprobs(pl_exchange *x, pl_choice *c, const pl_reply_event *event)
{
    pl_batch *b = &c->batch;
    const char *comma = b->names.buf.len ? ", " : "";
    pl_out_raw(&b->names, comma);
    put_name(x, &b->names, event->token);
    pl_out_raw(&b->logprobs, comma);
    pl_out_real(&b->logprobs, event->logprob);
    pl_out_f(&b->offsets, "%s%zu", comma, c->offset);
    c->offset += characters(x, event->token);
    pl_out_f(&b->tops, "%s{", comma);
    for (int i = 0; i < event->tops; i++) {
        pl_out_raw(&b->tops, i ? ", " : "");
        put_name(x, &b->tops, event->top[i]);
        pl_out_raw(&b->tops, ": ");
        pl_out_real(&b->tops, event->top_logprob[i]);
    }
    pl_out_raw(&b->tops, "}");
}

static void put_list(pl_exchange *x, const char *name, const pl_out *items)
{
    pl_out_f(&x->out, "\"%s\": [", name);
    pl_out_bytes(&x->out, items->buf.data, items->buf.len);
    pl_out_raw(&x->out, "]");
}

static void put_logprobs(pl_exchange *x, const pl_batch *b)
{
    pl_out_raw(&x->out, "\"logprobs\": ");
    if (x->call.spec[0].top_logprobs < 0) {
        pl_out_raw(&x->out, "null");
        return;
    }
    pl_out_raw(&x->out, "{");
    put_list(x, "tokens", &b->names);
    pl_out_raw(&x->out, ", ");
    put_list(x, "token_logprobs", &b->logprobs);
    pl_out_raw(&x->out, ", ");
    put_list(x, "top_logprobs", &b->tops);
    pl_out_raw(&x->out, ", ");
    put_list(x, "text_offset", &b->offsets);
    pl_out_raw(&x->out, "}");
}

/* The prompt of a choice as text. */
static void put_prompt(pl_exchange *x, size_t i, pl_out *text)
{
    const pl_ids *ids = &x->call.spec[i / x->call.n].prompt;
    pl_buf bytes;
    pl_buf_init(&bytes, PL_PROMPT_TEXT_MAX, "prompt");
    text->failed = text->failed ||
                   pl_tokenizer_decode(x->server->env.tokenizer, ids->data, ids->len, true, &bytes, NULL) != PL_OK ||
                   pl_utf8_repair(&text->buf, bytes.data ? bytes.data : "", bytes.len, NULL) != PL_OK;
    pl_buf_free(&bytes);
}

static void put_chunk(pl_exchange *x, size_t i, const pl_out *text, const pl_batch *b, const pl_outcome *outcome)
{
    pl__put_head(x, "text_completion");
    pl_out_f(&x->out, ", \"choices\": [{\"index\": %zu, \"text\": ", i);
    pl_out_string(&x->out, text && text->buf.data ? text->buf.data : "", text ? text->buf.len : 0);
    pl_out_raw(&x->out, ", ");
    if (b)
        put_logprobs(x, b);
    else
        pl_out_raw(&x->out, "\"logprobs\": null");
    if (outcome)
        pl_out_f(&x->out, ", \"finish_reason\": \"%s\"}]", pl__finish_reason(outcome));
    else
        pl_out_raw(&x->out, ", \"finish_reason\": null}]");
    if (x->call.include_usage)
        pl_out_raw(&x->out, ", \"usage\": null");
    if (outcome)
        pl_out_f(&x->out, ", \"token_sha\": \"%s\"", outcome->token_sha);
    pl_out_raw(&x->out, "}");
}

static bool first(pl_exchange *x, size_t i)
{
    if (!x->call.echo)
        return false;
    pl_out text;
    pl_out_init(&text);
    put_prompt(x, i, &text);
    put_chunk(x, i, &text, NULL, NULL);
    x->out.failed = x->out.failed || text.failed;
    pl_out_free(&text);
    return true;
}

static void piece(pl_exchange *x, size_t i)
{
    const pl_batch *b = &x->choice[i].batch;
    put_chunk(x, i, &b->text, b, NULL);
    pl__sse_send(x);
}

static void finish(pl_exchange *x, size_t i)
{
    put_chunk(x, i, NULL, NULL, &x->choice[i].outcome);
    pl__sse_send(x);
}

static void usage(pl_exchange *x)
{
    pl__put_head(x, "text_completion");
    pl_out_raw(&x->out, ", \"choices\": [], \"usage\": ");
    pl__put_usage(x);
    pl__put_paceline(x);
    pl_out_raw(&x->out, "}");
    pl__sse_send(x);
}

static void put_choice(pl_exchange *x, size_t i)
{
    pl_choice *c = &x->choice[i];
    pl_out text;
    pl_out_init(&text);
    if (x->call.echo)
        put_prompt(x, i, &text);
    pl_out_bytes(&text, c->batch.text.buf.data, c->batch.text.buf.len);
    pl_out_f(&x->out, "{\"index\": %zu, \"text\": ", i);
    pl_out_string(&x->out, text.buf.data ? text.buf.data : "", text.buf.len);
    pl_out_raw(&x->out, ", ");
    put_logprobs(x, &c->batch);
    pl_out_f(&x->out, ", \"finish_reason\": \"%s\", \"token_sha\": \"%s\"}", pl__finish_reason(&c->outcome),
             c->outcome.token_sha);
    x->out.failed = x->out.failed || text.failed;
    pl_out_free(&text);
}

static void whole(pl_exchange *x)
{
    pl__put_head(x, "text_completion");
    pl_out_raw(&x->out, ", \"choices\": [");
    for (size_t i = 0; i < x->choices; i++) {
        if (i)
            pl_out_raw(&x->out, ", ");
        put_choice(x, i);
    }
    pl_out_raw(&x->out, "], \"usage\": ");
    pl__put_usage(x);
    pl__put_paceline(x);
    pl_out_raw(&x->out, "}");
}

const pl_reply_format pl__completion_format = {logprobs, first, piece, finish, usage, whole};
