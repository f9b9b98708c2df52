/* Token bytes to text, for the reader and for the stop check. */
#include "api/reply.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_CAP = 1 << 20 /* text of one event; a splitter holds back far less */ };

struct pl_reply {
    const pl_tokenizer *tokenizer;
    pl_stream *stream;
    pl_splitter *splitter;
    bool raw;
    const pl_host *ends; /* whose end tokens end the reply; NULL when it goes on past them */
    pl_buf reasoning, text;
    size_t reasoning_tokens;
    pl_error error; /* the splitter failed: the reply ends with this */
    pl_outcome failed;
};

/* The engine's own view of one stream's text, and of the end tokens beside the one that it knows itself. */
typedef struct stop_check {
    const pl_host *ends; /* as in pl_reply */
    const pl_tokenizer *tokenizer;
    pl_splitter *splitter; /* NULL without stop strings */
} stop_check;

/* The bytes of one token. A vocabulary may have ids without a token; they have no text. */
static pl_status feed(pl_splitter *splitter, const pl_tokenizer *tokenizer, int32_t id, pl_error *err)
{
    pl_token token;
    return pl_tokenizer_token(tokenizer, id, &token) ? pl_splitter_feed_token(splitter, tokenizer, id, err) : PL_OK;
}

static pl_status ignore(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err)
{
    (void)ctx, (void)kind, (void)bytes, (void)len, (void)err;
    return PL_OK;
}

static pl_status collect(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err)
{
    pl_reply *r = ctx;
    return pl_buf_add(kind == PL_SPLIT_REASONING ? &r->reasoning : &r->text, bytes, len, err);
}

static bool check_stop(void *arg, int32_t id)
{
    stop_check *c = arg;
    pl_error err;
    if (c->ends && pl_host_ends(c->ends, id))
        return true;
    if (!c->splitter)
        return false;
    /* Without memory the reply ends here: the reader, who splits as well, then says why. */
    return feed(c->splitter, c->tokenizer, id, &err) != PL_OK || pl_splitter_stopped(c->splitter, NULL);
}

static void free_check(void *arg)
{
    stop_check *c = arg;
    if (!c)
        return;
    pl_splitter_free(c->splitter);
    free(c);
}

static pl_status new_splitter(const pl_spec *spec, pl_split_sink sink, void *ctx, pl_splitter **out, pl_error *err)
{
    pl_splitter_options options = {.in_reasoning = spec->in_reasoning,
                                   .continues = spec->continues,
                                   .raw = spec->raw,
                                   .keep_stop = spec->keep_stop,
                                   .stops = spec->stop,
                                   .n_stops = spec->stops};
    return pl_splitter_new(&options, sink, ctx, out, err);
}

static pl_status new_check(const pl_host *host, const pl_spec *spec, stop_check **out, pl_error *err)
{
    *out = NULL;
    bool ends = !spec->ignore_eos && pl_host_many_eos(host);
    if (spec->stops == 0 && !ends)
        return PL_OK;
    stop_check *c = calloc(1, sizeof *c);
    if (!c)
        return pl_fail(err, PL_ENOMEM, "no memory for stop strings");
    c->ends = ends ? host : NULL;
    c->tokenizer = pl_host_tokenizer(host);
    pl_status status = spec->stops ? new_splitter(spec, ignore, NULL, &c->splitter, err) : PL_OK;
    if (status != PL_OK) {
        free(c);
        return status;
    }
    *out = c;
    return PL_OK;
}

static pl_status new_reply(const pl_host *host, const pl_spec *spec, pl_reply **out, pl_error *err)
{
    pl_reply *r = calloc(1, sizeof *r);
    if (!r)
        return pl_fail(err, PL_ENOMEM, "no memory for a reply");
    r->tokenizer = pl_host_tokenizer(host);
    r->raw = spec->raw;
    r->ends = spec->ignore_eos ? NULL : host;
    pl_buf_init(&r->reasoning, PIECE_CAP, "reasoning");
    pl_buf_init(&r->text, PIECE_CAP, "text");
    pl_status status = new_splitter(spec, collect, r, &r->splitter, err);
    if (status != PL_OK) {
        free(r);
        return status;
    }
    *out = r;
    return PL_OK;
}

/* The request of one choice; its stop check, sampling and reply are made. */
static pl_status new_request(pl_host *host, const pl_spec *spec, size_t choice, pl_request *request, pl_reply **reply,
                             pl_error *err)
{
    stop_check *check;
    PL_TRY(new_check(host, spec, &check, err));
    request->stop = check ? check_stop : NULL;
    request->stop_arg = check;
    request->stop_free = check ? free_check : NULL;
    PL_TRY(new_reply(host, spec, reply, err));
    request->prompt = spec->prompt.data;
    request->prompt_len = spec->prompt.len;
    PL_TRY(pl_host_sampling(host, &spec->sampling, spec->prompt.data, spec->prompt.len, &request->sampling, err));
    request->sampling.seed += choice;
    int64_t room = pl_host_context(host) - (int64_t)spec->prompt.len;
    int64_t most = spec->max_tokens ? spec->max_tokens : pl_host_max_tokens(host, spec->thinking);
    request->max_tokens = most < room ? most : room > 0 ? room : 1;
    request->eos = spec->ignore_eos ? -1 : pl_host_eos(host);
    request->draft = spec->draft && pl_host_drafts(host);
    request->background = spec->background;
    request->top_logprobs = spec->top_logprobs;
    return PL_OK;
}

pl_status pl_reply_submit(pl_host *host, const pl_spec *spec, size_t prompts, size_t n, pl_stream_notify *notify,
                          void *notify_arg, pl_reply **replies, pl_error *err)
{
    size_t count = prompts * n; /* both are bounded by the callers' caps */
    pl_request *request = calloc(count, sizeof *request);
    pl_stream **stream = calloc(count, sizeof *stream);
    pl_status status = request && stream ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for %zu choices", count);
    for (size_t i = 0; i < count; i++)
        replies[i] = NULL;
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        status = new_request(host, &spec[i / n], i % n, &request[i], &replies[i], err);
        request[i].notify = notify;
        request[i].notify_arg = notify_arg;
    }
    if (status == PL_OK)
        status = pl_engine_submit(pl_host_engine(host), request, count, stream, err);
    for (size_t i = 0; request && i < count; i++) {
        pl_sampling_free(&request[i].sampling);
        if (status != PL_OK) {
            free_check(request[i].stop_arg);
            pl_reply_release(replies[i]);
            replies[i] = NULL;
        } else {
            replies[i]->stream = stream[i];
        }
    }
    free(request);
    free(stream);
    return status;
}

void pl_reply_release(pl_reply *r)
{
    if (!r)
        return;
    pl_stream_release(r->stream);
    pl_splitter_free(r->splitter);
    pl_buf_free(&r->reasoning);
    pl_buf_free(&r->text);
    free(r);
}

void pl_reply_cancel(pl_reply *r)
{
    pl_stream_cancel(r->stream);
}

bool pl_reply_wait(pl_reply *r, int timeout_ms)
{
    return pl_stream_wait(r->stream, timeout_ms);
}

/* The splitter failed: give the reply up, and end it with that error instead of a cut text. */
static void check_split(pl_reply *r, pl_status status)
{
    if (status != PL_OK && r->failed.error.status == PL_OK) {
        r->failed.error = r->error;
        pl_stream_cancel(r->stream);
    }
}

static void take_token(pl_reply *r, pl_reply_event *event)
{
    event->end = r->ends && pl_host_ends(r->ends, event->token);
    if (event->end)
        return;
    if (!r->raw && pl_splitter_in_reasoning(r->splitter))
        r->reasoning_tokens++;
    check_split(r, feed(r->splitter, r->tokenizer, event->token, &r->error));
}

static void take_end(pl_reply *r, const pl_outcome *outcome, pl_reply_event *event)
{
    check_split(r, pl_splitter_finish(r->splitter, &r->error));
    event->outcome = outcome;
    event->reasoning_tokens = r->reasoning_tokens;
    if (r->failed.error.status != PL_OK) {
        pl_error error = r->failed.error;
        r->failed = *outcome;
        r->failed.reason = PL_FINISH_ERROR;
        r->failed.error = error;
        event->outcome = &r->failed;
    }
}

bool pl_reply_next(pl_reply *r, pl_reply_event *event)
{
    pl_stream_event s;
    memset(event, 0, sizeof *event);
    if (!pl_stream_next(r->stream, &s))
        return false;
    pl_buf_clear(&r->reasoning);
    pl_buf_clear(&r->text);
    event->kind = s.kind;
    event->prefilled = s.prefilled;
    event->token = s.token;
    event->logprob = s.logprob;
    event->tops = s.tops;
    event->top = s.top;
    event->top_logprob = s.top_logprob;
    if (s.kind == PL_STREAM_TOKEN)
        take_token(r, event);
    else if (s.kind == PL_STREAM_FINISHED)
        take_end(r, s.outcome, event);
    event->reasoning = r->reasoning.len ? r->reasoning.data : NULL;
    event->reasoning_len = r->reasoning.len;
    event->text = r->text.len ? r->text.data : NULL;
    event->text_len = r->text.len;
    return true;
}
