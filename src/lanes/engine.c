/* The engine's thread. What happens to a stream once it has a slot is the core's. */
#include "lanes/engine_int.h"

#include "base/clock.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 1 << 20 };

/* With the lock held. */
static void note_running(pl_engine *e, pl_stream *old, pl_stream *new)
{
    int i = 0;
    while (e->running[i] != old)
        i++;
    e->running[i] = new;
    e->counts.running += new ? 1 : 0;
    e->counts.running -= old ? 1 : 0;
}

/* Count an outcome. With the lock held. */
static void count(pl_engine *e, const pl_outcome *outcome)
{
    pl_engine_counts *c = &e->counts;
    c->finished += outcome->reason == PL_FINISH_STOP || outcome->reason == PL_FINISH_LENGTH;
    c->cancelled += outcome->reason == PL_FINISH_CANCELLED;
    c->failed += outcome->reason == PL_FINISH_ERROR;
}

/* With the lock held. */
static void show_totals(pl_engine *e)
{
    const pl__totals *t = &e->core.totals;
    pl_engine_counts *c = &e->counts;
    c->prompts = (size_t)e->core.prompts;
    c->numbers = t->numbers;
    c->prompt_tokens = t->prompt_tokens;
    c->reply_tokens = t->reply_tokens;
    c->launches = t->launches;
    c->passes = t->passes;
    c->prefill_ns = t->prefill_ns;
    c->decode_ns = t->decode_ns;
}

/* The core let go of a stream. Engine thread. */
static void left(void *arg, pl_stream *s, const pl_outcome *outcome)
{
    pl_engine *e = arg;
    pthread_mutex_lock(&e->lock);
    note_running(e, s, NULL);
    show_totals(e);
    if (outcome) {
        count(e, outcome);
        if (outcome->error.status == PL_EFAULT && e->fault.status == PL_OK)
            e->fault = outcome->error;
    } else {
        pl__queue_return(&e->queue, s);
    }
    pthread_mutex_unlock(&e->lock);
    if (outcome)
        pl__stream_finish(s, outcome); /* may free it: nobody can find it any more */
}

/* A stream that is in no lane (any more). Without locks. */
static void finish_unrun(pl_engine *e, pl_stream *s, pl_finish reason, const pl_error *error)
{
    pl_outcome outcome = s->outcome; /* one that gave its slot up has numbers */
    outcome.reason = reason;
    pl__stream_account(s, &outcome);
    if (!s->count)
        outcome.timings.queued = pl_now_ns() - s->submitted_ns;
    if (error)
        outcome.error = *error;
    pthread_mutex_lock(&e->lock);
    count(e, &outcome);
    pthread_mutex_unlock(&e->lock);
    pl__stream_finish(s, &outcome);
}

/* Everything that waits, as a list linked by next. With the lock held. */
static pl_stream *take_all(pl_engine *e)
{
    pl_stream *list = NULL, **end = &list;
    for (pl_stream *s; (s = pl__queue_take(&e->queue)); end = &s->next)
        *end = s;
    return list;
}

static void finish_list(pl_engine *e, pl_stream *list, pl_finish reason, const pl_error *error)
{
    while (list) {
        pl_stream *s = list;
        list = s->next;
        s->next = NULL;
        finish_unrun(e, s, reason, error);
    }
}

/* Give waiting streams the slots that are free; a foreground one may take a background one's. With the lock held, which
 * is let go for each. */
static void admit(pl_engine *e)
{
    while (e->queue.waiting && e->fault.status == PL_OK) {
        bool room = pl__core_has_room(&e->core), foreground = pl__queue_foreground(&e->queue);
        if (!room && !foreground)
            return;
        if (!room) {
            pthread_mutex_unlock(&e->lock);
            bool gave = pl__core_give_way(&e->core);
            pthread_mutex_lock(&e->lock);
            if (!gave)
                return;
            continue;
        }
        pl_stream *s = pl__queue_take(&e->queue);
        if (e->closing)
            atomic_store(&s->cancel, true);
        note_running(e, NULL, s);
        pthread_mutex_unlock(&e->lock);
        pl_error err;
        (void)pl__core_admit(&e->core, s, &err); /* a fault reached e->fault with the stream's outcome */
        pthread_mutex_lock(&e->lock);
    }
}

static void *engine_main(void *arg)
{
    pl_engine *e = arg;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->queue.waiting && !pl__core_busy(&e->core) && !e->closing)
            pthread_cond_wait(&e->work, &e->lock);
        /* Whoever was to be given up is marked by itself: what is admitted from here on is not. */
        atomic_store(&e->core.abort, e->closing);
        admit(e);
        if (e->fault.status != PL_OK) {
            pl_error fault = e->fault;
            pl_stream *list = take_all(e);
            pthread_mutex_unlock(&e->lock);
            finish_list(e, list, PL_FINISH_ERROR, &fault);
            pl__core_end_all(&e->core, PL_FINISH_ERROR, &fault);
            pthread_mutex_lock(&e->lock);
        }
        if (!pl__core_busy(&e->core)) {
            if (e->closing && !e->queue.waiting)
                break;
            continue;
        }
        pthread_mutex_unlock(&e->lock);
        pl_error err;
        (void)pl__core_step(&e->core, &err); /* as above */
        pthread_mutex_lock(&e->lock);
        show_totals(e);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static void free_engine(pl_engine *e)
{
    pl__core_close(&e->core);
    free(e->running);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

pl_status pl_engine_open(pl_engine **out, const pl_target *target, const pl_draft_table *drafter,
                         const pl_engine_settings *settings, pl_error *err)
{
    *out = NULL;
    if (settings->queue < 1 || settings->queue > QUEUE_MAX)
        return pl_fail_param(err, PL_EINVAL, "queue", "queue: expected 1 to %d, found %d", QUEUE_MAX, settings->queue);
    pl_engine *e = calloc(1, sizeof *e);
    if (!e)
        return pl_fail(err, PL_ENOMEM, "no memory for the engine");
    e->queue_most = settings->queue;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pl_status status = pl__core_open(&e->core, target, drafter, &settings->core, left, e, err);
    e->running = status == PL_OK ? calloc((size_t)target->slots, sizeof(pl_stream *)) : NULL;
    if (status == PL_OK && !e->running)
        status = pl_fail(err, PL_ENOMEM, "no memory for %d streams", target->slots);
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

size_t pl_engine_bytes(const pl_target *target, const pl_draft_table *drafter)
{
    return sizeof(pl_engine) + (size_t)target->slots * sizeof(pl_stream *) + pl__core_bytes(target, drafter);
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

/* With the lock held. */
static pl_status take_in(pl_engine *e, pl_stream **streams, size_t n, pl__ticket *ticket, pl_error *err)
{
    if (e->fault.status != PL_OK) {
        if (err)
            *err = e->fault;
        return e->fault.status;
    }
    if (e->draining)
        return pl_fail(err, PL_EBUSY, "shutting down, no more requests are taken");
    if (e->queue.tickets >= (size_t)e->queue_most)
        return pl_fail(err, PL_EBUSY, "the queue is full: %zu requests wait", e->queue.tickets);
    pl__queue_add(&e->queue, streams, n, ticket);
    e->counts.submitted += n;
    return PL_OK;
}

pl_status pl_engine_submit(pl_engine *e, const pl_request *request, size_t n, pl_stream **streams, pl_error *err)
{
    if (n < 1)
        return pl_fail(err, PL_EINVAL, "a submission without a request");
    pl_status status = PL_OK;
    size_t made = 0;
    for (size_t i = 0; i < n && status == PL_OK; i++)
        status = pl__request_check(&request[i], e->core.target.context, e->core.target.vocab, err);
    for (; made < n && status == PL_OK; made += status == PL_OK)
        status = pl__stream_new(&streams[made], &request[made], e, err);
    pl__ticket *ticket = status == PL_OK ? malloc(sizeof *ticket) : NULL;
    if (status == PL_OK && !ticket)
        status = pl_fail(err, PL_ENOMEM, "no memory for a request");
    pthread_mutex_lock(&e->lock);
    if (status == PL_OK)
        status = take_in(e, streams, n, ticket, err);
    if (status == PL_OK)
        pthread_cond_signal(&e->work);
    else
        e->counts.refused += n;
    pthread_mutex_unlock(&e->lock);
    if (status == PL_OK)
        return PL_OK;
    free(ticket);
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
        pl__queue_remove(&e->queue, s);
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

void pl_engine_drain(pl_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    pthread_mutex_unlock(&e->lock);
}

void pl_engine_cancel_all(pl_engine *e)
{
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->core.target.slots; i++)
        if (e->running[i])
            atomic_store(&e->running[i]->cancel, true);
    atomic_store(&e->core.abort, true);
    pl_stream *list = take_all(e);
    pthread_mutex_unlock(&e->lock);
    finish_list(e, list, PL_FINISH_CANCELLED, NULL);
}

void pl_engine_counts_now(pl_engine *e, pl_engine_counts *counts)
{
    pthread_mutex_lock(&e->lock);
    *counts = e->counts;
    counts->waiting = e->queue.waiting;
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
