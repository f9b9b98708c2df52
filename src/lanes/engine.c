/* The engine's thread and its queue. What happens to a request once it is admitted is in solo.c. */
#include "lanes/engine_int.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 1 << 20 };

/* With the engine's lock held. */
static pl_stream *take_first(pl_engine *e)
{
    pl_stream *s = e->first;
    e->first = s->next;
    if (!e->first)
        e->last = NULL;
    /* The bound counts submissions: one waits as long as its last request does. */
    if (!e->first || e->first->leads)
        e->submissions--;
    s->next = NULL;
    s->waiting = false;
    e->counts.waiting--;
    return s;
}

/* With the engine's lock held. */
static void append(pl_engine *e, pl_stream *s)
{
    s->waiting = true;
    if (e->last)
        e->last->next = s;
    else
        e->first = s;
    e->last = s;
    e->counts.waiting++;
    e->counts.submitted++;
}

/* Take a stream out of the middle. With the engine's lock held. */
static void unlink_waiting(pl_engine *e, pl_stream *s)
{
    pl_stream *prev = NULL;
    for (pl_stream *at = e->first; at != s; at = at->next)
        prev = at;
    if (prev)
        prev->next = s->next;
    else
        e->first = s->next;
    if (e->last == s)
        e->last = prev;
    if (s->leads) {
        /* The next of its submission, if one waits, stands for it now. */
        if (s->next && !s->next->leads)
            s->next->leads = true;
        else
            e->submissions--;
    } else if (!prev && (!s->next || s->next->leads)) {
        e->submissions--; /* the last one waiting of a submission whose first is running */
    }
    s->next = NULL;
    s->waiting = false;
    e->counts.waiting--;
}

/* Count an outcome and publish it. Without locks. */
static void conclude(pl_engine *e, pl_stream *s, const pl_outcome *outcome)
{
    pthread_mutex_lock(&e->lock);
    pl_engine_counts *c = &e->counts;
    c->finished += outcome->reason == PL_FINISH_STOP || outcome->reason == PL_FINISH_LENGTH;
    c->cancelled += outcome->reason == PL_FINISH_CANCELLED;
    c->failed += outcome->reason == PL_FINISH_ERROR;
    c->reply_tokens += outcome->tokens;
    if (e->current == s) { /* finishing may free it: from here on nobody may find it */
        e->current = NULL;
        c->running = 0;
    }
    pthread_mutex_unlock(&e->lock);
    pl__stream_finish(s, outcome);
}

/* A request that never ran. */
static void finish_unrun(pl_engine *e, pl_stream *s, pl_finish reason, const pl_error *error)
{
    pl_outcome outcome = {.reason = reason, .prompt_tokens = s->request.prompt_len};
    pl_sha256 none;
    pl_sha256_init(&none);
    pl_sha256_hex(&none, outcome.token_sha);
    outcome.timings.queued = pl_now_ns() - s->submitted_ns;
    if (error)
        outcome.error = *error;
    conclude(e, s, &outcome);
}

static void run_one(pl_engine *e, pl_stream *s)
{
    pthread_mutex_lock(&e->lock);
    pl_error fault = e->fault;
    pthread_mutex_unlock(&e->lock);
    if (fault.status != PL_OK) {
        finish_unrun(e, s, PL_FINISH_ERROR, &fault);
        return;
    }
    pl_outcome outcome = {.prompt_tokens = s->request.prompt_len};
    pl_status status = pl__solo_run(e, s, &outcome);
    if (status == PL_EFAULT) {
        pthread_mutex_lock(&e->lock);
        e->fault = outcome.error;
        pthread_mutex_unlock(&e->lock);
    }
    conclude(e, s, &outcome);
}

static void *engine_main(void *arg)
{
    pl_engine *e = arg;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->first && !e->closing)
            pthread_cond_wait(&e->work, &e->lock);
        if (!e->first)
            break;
        pl_stream *s = take_first(e);
        if (e->closing)
            atomic_store(&s->cancel, true);
        e->current = s;
        e->counts.running = 1;
        pthread_mutex_unlock(&e->lock);
        run_one(e, s);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static void free_engine(pl_engine *e)
{
    pl_history_close(&e->history);
    pl_sampler_close(e->sampler);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

pl_status pl_engine_open(pl_engine **out, const pl_target *target, const pl_engine_settings *settings, pl_error *err)
{
    *out = NULL;
    if (settings->queue < 1 || settings->queue > QUEUE_MAX)
        return pl_fail_param(err, PL_EINVAL, "queue", "queue: expected 1 to %d, found %d", QUEUE_MAX, settings->queue);
    pl_engine *e = calloc(1, sizeof *e);
    if (!e)
        return pl_fail(err, PL_ENOMEM, "no memory for the engine");
    e->target = *target;
    e->settings = *settings;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pl_status status = pl_sampler_open(&e->sampler, target->vocab, "auto", err);
    if (status == PL_OK)
        status = pl_history_open(&e->history, target->vocab, err);
    int rc = status == PL_OK ? pl_thread_start(&e->thread, engine_main, e) : 0;
    if (rc)
        status = pl_fail(err, PL_ENOMEM, "the engine's thread did not start: %s", strerror(rc));
    if (status != PL_OK) {
        free_engine(e);
        return status;
    }
    *out = e;
    return PL_OK;
}

size_t pl_engine_bytes(int vocab)
{
    return pl_sampler_bytes(vocab) + pl_history_bytes(vocab);
}

void pl_engine_close(pl_engine *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->draining = e->closing = true;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    pl_engine_cancel_all(e);
    pthread_join(e->thread, NULL);
    free_engine(e);
}

static pl_status check(const pl_engine *e, const pl_request *r, pl_error *err)
{
    const pl_target *t = &e->target;
    if (r->prompt_len < 1)
        return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: expected at least one token, found none");
    for (size_t i = 0; i < r->prompt_len; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= t->vocab)
            return pl_fail_param(err, PL_EINVAL, "prompt", "prompt: token %zu is %d, expected 0 to %d", i,
                                 (int)r->prompt[i], t->vocab - 1);
    if (r->top_logprobs < -1 || r->top_logprobs > PL_TOP_LOGPROBS_MAX || r->top_logprobs > t->vocab)
        return pl_fail_param(err, PL_EINVAL, "top_logprobs", "top_logprobs: expected 0 to %d, found %d",
                             PL_TOP_LOGPROBS_MAX, r->top_logprobs);
    if (r->max_tokens < 1)
        return pl_fail_param(err, PL_EINVAL, "max_tokens", "max_tokens: expected at least 1, found %lld",
                             (long long)r->max_tokens);
    if (r->prompt_len >= (size_t)t->context)
        return pl_fail_param(err, PL_ELIMIT, "prompt", "prompt: %zu tokens, the context holds %d with the reply",
                             r->prompt_len, t->context);
    if (r->max_tokens > t->context - (int64_t)r->prompt_len)
        return pl_fail_param(err, PL_ELIMIT, "max_tokens",
                             "max_tokens: %lld after a prompt of %zu tokens, the context holds %d",
                             (long long)r->max_tokens, r->prompt_len, t->context);
    return PL_OK;
}

/* Queue n streams, or say why not. With the engine's lock held. */
static pl_status admit_to_queue(pl_engine *e, pl_stream **streams, size_t n, pl_error *err)
{
    if (e->fault.status != PL_OK) {
        if (err)
            *err = e->fault;
        return e->fault.status;
    }
    if (e->draining)
        return pl_fail(err, PL_EBUSY, "shutting down, no more requests are taken");
    if (e->submissions >= (size_t)e->settings.queue)
        return pl_fail(err, PL_EBUSY, "the queue is full: %zu requests wait", e->submissions);
    for (size_t i = 0; i < n; i++) {
        streams[i]->leads = i == 0;
        append(e, streams[i]);
    }
    e->submissions++;
    return PL_OK;
}

pl_status pl_engine_submit(pl_engine *e, const pl_request *request, size_t n, pl_stream **streams, pl_error *err)
{
    if (n < 1)
        return pl_fail(err, PL_EINVAL, "a submission without a request");
    pl_status status = PL_OK;
    size_t made = 0;
    for (size_t i = 0; i < n && status == PL_OK; i++)
        status = check(e, &request[i], err);
    for (; made < n && status == PL_OK; made += status == PL_OK)
        status = pl__stream_new(&streams[made], &request[made], e, err);
    pthread_mutex_lock(&e->lock);
    if (status == PL_OK)
        status = admit_to_queue(e, streams, n, err);
    if (status == PL_OK)
        pthread_cond_signal(&e->work);
    else
        e->counts.refused += n;
    pthread_mutex_unlock(&e->lock);
    if (status == PL_OK)
        return PL_OK;
    for (size_t i = 0; i < made; i++)
        pl__stream_discard(streams[i]);
    for (size_t i = 0; i < n; i++)
        streams[i] = NULL;
    return status;
}

void pl_stream_cancel(pl_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool over = s->finished;
    pthread_mutex_unlock(&s->lock);
    if (over) /* the engine may be gone */
        return;
    pl_engine *e = s->engine;
    pthread_mutex_lock(&e->lock);
    atomic_store(&s->cancel, true);
    bool waited = s->waiting;
    if (waited)
        unlink_waiting(e, s);
    pthread_mutex_unlock(&e->lock);
    if (waited)
        finish_unrun(e, s, PL_FINISH_CANCELLED, NULL);
}

void pl_stream_release(pl_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->request.notify = NULL;
    pthread_mutex_unlock(&s->lock);
    pl_stream_cancel(s);
    pl__stream_unref(s);
}

void pl__engine_count_prompt(pl_engine *e, size_t tokens)
{
    pthread_mutex_lock(&e->lock);
    e->counts.prompt_tokens += tokens;
    pthread_mutex_unlock(&e->lock);
}

void pl_engine_drain(pl_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    pthread_mutex_unlock(&e->lock);
}

void pl_engine_cancel_all(pl_engine *e)
{
    pthread_mutex_lock(&e->lock);
    if (e->current)
        atomic_store(&e->current->cancel, true);
    pl_stream *list = e->first;
    e->first = e->last = NULL;
    e->submissions = 0;
    e->counts.waiting = 0;
    for (pl_stream *s = list; s; s = s->next)
        s->waiting = false;
    pthread_mutex_unlock(&e->lock);
    while (list) {
        pl_stream *s = list;
        list = s->next;
        s->next = NULL;
        finish_unrun(e, s, PL_FINISH_CANCELLED, NULL);
    }
}

void pl_engine_counts_now(pl_engine *e, pl_engine_counts *counts)
{
    pthread_mutex_lock(&e->lock);
    *counts = e->counts;
    pthread_mutex_unlock(&e->lock);
}

bool pl_engine_fault(pl_engine *e, pl_error *err)
{
    pthread_mutex_lock(&e->lock);
    bool fault = e->fault.status != PL_OK;
    if (fault && err)
        *err = e->fault;
    pthread_mutex_unlock(&e->lock);
    return fault;
}
