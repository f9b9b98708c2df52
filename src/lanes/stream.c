/* A stream's log, its reader and its life. */
#include "lanes/stream_int.h"

#include "base/clock.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *array(size_t n, size_t each, size_t width)
{
    size_t bytes;
    if (!pl_mul_size(n, each, &bytes) || !pl_mul_size(bytes, width, &bytes))
        return NULL;
    return malloc(bytes ? bytes : 1); /* large blocks cost memory only where they are written */
}

static bool reserve_log(pl_stream *s)
{
    const pl_request *r = &s->request;
    size_t n = (size_t)r->max_tokens;
    s->token = array(n, sizeof *s->token, 1);
    if (!s->token)
        return false;
    if (r->top_logprobs < 0)
        return true;
    s->logprob = array(n, sizeof *s->logprob, 1);
    s->top = array(n, sizeof *s->top, (size_t)s->tops);
    s->top_logprob = array(n, sizeof *s->top_logprob, (size_t)s->tops);
    return s->logprob && s->top && s->top_logprob;
}

static void free_stream(pl_stream *s)
{
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    free((void *)s->request.prompt);
    pl_sampling_free(&s->request.sampling);
    free(s->token);
    free(s->logprob);
    free(s->top);
    free(s->top_logprob);
    free(s);
}

pl_status pl__stream_new(pl_stream **out, const pl_request *request, struct pl_engine *engine, pl_error *err)
{
    *out = NULL;
    pl_stream *s = calloc(1, sizeof *s);
    if (!s)
        return pl_fail(err, PL_ENOMEM, "no memory for a request");
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, &attr);
    pthread_condattr_destroy(&attr);
    s->request = *request;
    s->request.prompt = NULL;
    s->engine = engine;
    s->submitted_ns = pl_now_ns();
    s->refs = 2;
    pl_sha256_init(&s->sha);
    s->thinking = request->think_budget > 0;
    s->tops = request->top_logprobs;
    int32_t *prompt = array(request->prompt_len, sizeof *prompt, 1);
    if (prompt)
        memcpy(prompt, request->prompt, request->prompt_len * sizeof *prompt);
    s->request.prompt = prompt;
    pl_status status = pl_sampling_copy(&s->request.sampling, &request->sampling, err);
    if (status == PL_OK && (!prompt || !reserve_log(s)))
        status = pl_fail(err, PL_ENOMEM, "no memory for a prompt of %zu and a reply of %lld tokens",
                         request->prompt_len, (long long)request->max_tokens);
    if (status != PL_OK) {
        free_stream(s);
        return status;
    }
    *out = s;
    return PL_OK;
}

void pl__stream_account(const pl_stream *s, pl_outcome *o)
{
    o->prompt_tokens = s->request.prompt_len;
    o->tokens = s->count;
    pl_sha256_hex(&s->sha, o->token_sha);
    if (s->count)
        o->timings.first = s->first_ns - s->submitted_ns;
}

void pl__stream_discard(pl_stream *stream)
{
    free_stream(stream);
}

void pl__stream_unref(pl_stream *s)
{
    pthread_mutex_lock(&s->lock);
    int refs = --s->refs;
    pthread_mutex_unlock(&s->lock);
    if (refs)
        return;
    if (s->request.stop_free)
        s->request.stop_free(s->request.stop_arg);
    free_stream(s);
}

/* With the lock held. A reader that was told and has not looked yet needs no second word. */
static void tell(pl_stream *s)
{
    pthread_cond_signal(&s->news);
    if (s->signalled || !s->request.notify)
        return;
    s->signalled = true;
    s->request.notify(s->request.notify_arg);
}

void pl__stream_start(pl_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->started = true;
    tell(s);
    pthread_mutex_unlock(&s->lock);
}

void pl__stream_prefilled(pl_stream *s, size_t prefilled)
{
    pthread_mutex_lock(&s->lock);
    s->prefilled = prefilled;
    tell(s);
    pthread_mutex_unlock(&s->lock);
}

void pl__stream_commit(pl_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->count++;
    tell(s);
    pthread_mutex_unlock(&s->lock);
}

void pl__stream_finish(pl_stream *s, const pl_outcome *outcome)
{
    pthread_mutex_lock(&s->lock);
    s->outcome = *outcome;
    s->finished = true;
    tell(s);
    pthread_mutex_unlock(&s->lock);
    pl__stream_unref(s);
}

static bool has_news(const pl_stream *s)
{
    return (s->started && !s->read_started) || s->prefilled > s->read_prefilled || s->count > s->read_count ||
           (s->finished && !s->read_finished);
}

static void read_token(pl_stream *s, pl_stream_event *event)
{
    size_t i = s->read_count++;
    event->kind = PL_STREAM_TOKEN;
    event->token = s->token[i];
    if (s->request.top_logprobs < 0)
        return;
    event->logprob = s->logprob[i];
    event->tops = s->tops;
    event->top = s->top + i * (size_t)s->tops;
    event->top_logprob = s->top_logprob + i * (size_t)s->tops;
}

bool pl_stream_next(pl_stream *s, pl_stream_event *event)
{
    memset(event, 0, sizeof *event);
    pthread_mutex_lock(&s->lock);
    bool found = has_news(s);
    if (!found) {
        s->signalled = false;
    } else if (s->started && !s->read_started) {
        s->read_started = true;
        event->kind = PL_STREAM_STARTED;
    } else if (s->prefilled > s->read_prefilled) {
        event->kind = PL_STREAM_PREFILL;
        event->prefilled = s->read_prefilled = s->prefilled;
    } else if (s->count > s->read_count) {
        read_token(s, event);
    } else {
        s->read_finished = true;
        event->kind = PL_STREAM_FINISHED;
        event->outcome = &s->outcome;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool pl_stream_wait(pl_stream *s, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (timeout_ms > 0) {
        int64_t ns = until.tv_nsec + (int64_t)(timeout_ms % 1000) * 1000000;
        until.tv_sec += timeout_ms / 1000 + ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
    }
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!has_news(s) && rc == 0)
        rc =
            timeout_ms < 0 ? pthread_cond_wait(&s->news, &s->lock) : pthread_cond_timedwait(&s->news, &s->lock, &until);
    bool found = has_news(s);
    pthread_mutex_unlock(&s->lock);
    return found;
}
