/* Replies of POST /v1/chat/completions. */
#include "server/exchange.h"

/* {"token", "logprob", "bytes"} without the closing brace. */
static void put_entry(pl_exchange *x, pl_out *out, int32_t id, float logprob)
{
    pl_token token;
    pl_out_raw(out, "{\"token\": ");
    pl__put_token_text(x, out, id);
    pl_out_raw(out, ", \"logprob\": ");
    pl_out_real(out, logprob);
    pl_out_raw(out, ", \"bytes\": [");
    if (pl_tokenizer_token(x->server->env.tokenizer, id, &token))
        for (size_t i = 0; i < token.len; i++)
            pl_out_f(out, i ? ", %u" : "%u", (unsigned)(unsigned char)token.bytes[i]);
    pl_out_raw(out, "]");
}

static void logprobs(pl_exchange *x, pl_choice *c, const pl_reply_event *event)
{
    pl_out *out = &c->batch.logprobs;
    if (out->buf.len)
        pl_out_raw(out, ", ");
    put_entry(x, out, event->token, event->logprob);
    pl_out_raw(out, ", \"top_logprobs\": [");
    for (int i = 0; i < event->tops; i++) {
        if (i)
            pl_out_raw(out, ", ");
        put_entry(x, out, event->top[i], event->top_logprob[i]);
        pl_out_raw(out, "}");
    }
    pl_out_raw(out, "]}");
}

static void open_chunk(pl_exchange *x, size_t i)
{
    pl__put_head(x, "chat.completion.chunk");
    pl_out_f(&x->out, ", \"choices\": [{\"index\": %zu, \"delta\": {", i);
}

/* Behind the delta's content: logprobs (JSON list items, or NULL) and the rest of the chunk. */
static void close_chunk(pl_exchange *x, const pl_out *items, const char *finish)
{
    pl_out_raw(&x->out, "}, \"logprobs\": ");
    if (items && items->buf.len) {
        pl_out_raw(&x->out, "{\"content\": [");
        pl_out_bytes(&x->out, items->buf.data, items->buf.len);
        pl_out_raw(&x->out, "], \"refusal\": null}");
    } else {
        pl_out_raw(&x->out, "null");
    }
    if (finish)
        pl_out_f(&x->out, ", \"finish_reason\": \"%s\"}]", finish);
    else
        pl_out_raw(&x->out, ", \"finish_reason\": null}]");
    if (x->call.include_usage)
        pl_out_raw(&x->out, ", \"usage\": null");
}

static bool first(pl_exchange *x, size_t i)
{
    open_chunk(x, i);
    pl_out_raw(&x->out, "\"role\": \"assistant\", \"content\": \"\"");
    close_chunk(x, NULL, NULL);
    pl_out_raw(&x->out, "}");
    return true;
}

static void send_delta(pl_exchange *x, size_t i, const char *field, const pl_out *text, const pl_out *items)
{
    open_chunk(x, i);
    pl_out_f(&x->out, "\"%s\": ", field);
    pl_out_string(&x->out, text->buf.data ? text->buf.data : "", text->buf.len);
    close_chunk(x, items, NULL);
    pl_out_raw(&x->out, "}");
    pl__sse_send(x);
}

/* Reasoning before content: that is their order inside one batch as well. The logprobs go with the last delta. */
static void piece(pl_exchange *x, size_t i)
{
    const pl_batch *b = &x->choice[i].batch;
    bool content = b->text.buf.len || !b->reasoning.buf.len;
    if (b->reasoning.buf.len)
        send_delta(x, i, "reasoning_content", &b->reasoning, content ? NULL : &b->logprobs);
    if (content)
        send_delta(x, i, "content", &b->text, &b->logprobs);
}

static void finish(pl_exchange *x, size_t i)
{
    const pl_outcome *o = &x->choice[i].outcome;
    open_chunk(x, i);
    close_chunk(x, NULL, pl__finish_reason(o));
    pl_out_f(&x->out, ", \"token_sha\": \"%s\"", o->token_sha);
    pl_out_raw(&x->out, "}");
    pl__sse_send(x);
}

static void usage(pl_exchange *x)
{
    pl__put_head(x, "chat.completion.chunk");
    pl_out_raw(&x->out, ", \"choices\": [], \"usage\": ");
    pl__put_usage(x);
    pl__put_paceline(x);
    pl_out_raw(&x->out, "}");
    pl__sse_send(x);
}

static void put_choice(pl_exchange *x, size_t i)
{
    pl_choice *c = &x->choice[i];
    const pl_batch *b = &c->batch;
    pl_out_f(&x->out, "{\"index\": %zu, \"message\": {\"role\": \"assistant\", ", i);
    if (x->call.spec[0].thinking) {
        pl_out_raw(&x->out, "\"reasoning_content\": ");
        pl_out_string(&x->out, b->reasoning.buf.data ? b->reasoning.buf.data : "", b->reasoning.buf.len);
        pl_out_raw(&x->out, ", ");
    }
    pl_out_raw(&x->out, "\"content\": ");
    pl_out_string(&x->out, b->text.buf.data ? b->text.buf.data : "", b->text.buf.len);
    pl_out_raw(&x->out, ", \"refusal\": null}, \"logprobs\": ");
    if (x->call.spec[0].top_logprobs >= 0) {
        pl_out_raw(&x->out, "{\"content\": [");
        pl_out_bytes(&x->out, b->logprobs.buf.data, b->logprobs.buf.len);
        pl_out_raw(&x->out, "], \"refusal\": null}");
    } else {
        pl_out_raw(&x->out, "null");
    }
    pl_out_f(&x->out, ", \"finish_reason\": \"%s\", \"token_sha\": \"%s\"}", pl__finish_reason(&c->outcome),
             c->outcome.token_sha);
}

static void whole(pl_exchange *x)
{
    pl__put_head(x, "chat.completion");
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

const pl_reply_format pl__chat_format = {logprobs, first, piece, finish, usage, whole};
