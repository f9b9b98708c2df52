/* The thread that turns request bodies into calls. */
#include "server/exchange.h"

#include "base/thread.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

typedef struct job job;

struct job {
    job *next;
    pl_exchange *exchange;
    pl_buf body;
    bool chat;
    pl_call_env env;
    pl_call call;
    pl_status status;
    pl_refusal refusal;
};

struct pl__prepare {
    pthread_t thread;
    struct event *done_event;

    pthread_mutex_t lock;
    pthread_cond_t work;
    job *first, *last; /* to do */
    job *done;         /* done, the latest first */
    bool closing;
};

static void free_jobs(job *list)
{
    while (list) {
        job *j = list;
        list = j->next;
        pl_buf_free(&j->body);
        pl_call_free(&j->call);
        free(j);
    }
}

static void *work(void *arg)
{
    pl__prepare *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->first && !p->closing)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->closing)
            break;
        job *j = p->first;
        p->first = j->next;
        if (!p->first)
            p->last = NULL;
        pthread_mutex_unlock(&p->lock);
        j->status = pl_call_read(&j->call, j->chat, j->body.data, j->body.len, &j->env, &j->refusal);
        pl_buf_free(&j->body);
        pthread_mutex_lock(&p->lock);
        j->next = p->done;
        p->done = j;
        event_active(p->done_event, EV_READ, 0);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Hand the finished jobs to their exchanges, in order. Network thread. */
static void deliver(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl__prepare *p = arg;
    pthread_mutex_lock(&p->lock);
    job *latest = p->done, *list = NULL;
    p->done = NULL;
    pthread_mutex_unlock(&p->lock);
    while (latest) {
        job *j = latest;
        latest = j->next;
        j->next = list;
        list = j;
    }
    while (list) {
        job *j = list;
        list = j->next;
        j->exchange->call = j->call;
        j->call = (pl_call){0};
        pl__exchange_prepared(j->exchange, j->status, &j->refusal);
        free(j);
    }
}

pl_status pl__prepare_open(pl__prepare **out, struct event_base *base, pl_error *err)
{
    *out = NULL;
    pl__prepare *p = calloc(1, sizeof *p);
    if (!p)
        return pl_fail(err, PL_ENOMEM, "no memory for the server");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->done_event = event_new(base, -1, EV_PERSIST, deliver, p);
    int rc = p->done_event ? pl_thread_start(&p->thread, work, p) : ENOMEM;
    if (rc) {
        if (p->done_event)
            event_free(p->done_event);
        pthread_cond_destroy(&p->work);
        pthread_mutex_destroy(&p->lock);
        free(p);
        return pl_fail(err, PL_ENOMEM, "the server's reading thread did not start: %s", strerror(rc));
    }
    *out = p;
    return PL_OK;
}

void pl__prepare_close(pl__prepare *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    event_free(p->done_event);
    free_jobs(p->first);
    free_jobs(p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

pl_status pl__prepare_add(pl__prepare *p, pl_exchange *x, pl_buf *body, bool chat, const pl_call_env *env,
                          pl_error *err)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        pl_buf_free(body);
        return pl_fail(err, PL_ENOMEM, "no memory for a request");
    }
    j->exchange = x;
    j->body = *body;
    j->chat = chat;
    j->env = *env;
    pthread_mutex_lock(&p->lock);
    if (p->last)
        p->last->next = j;
    else
        p->first = j;
    p->last = j;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return PL_OK;
}

bool pl__prepare_cancel(pl__prepare *p, pl_exchange *x)
{
    job *found = NULL, *prev = NULL;
    pthread_mutex_lock(&p->lock);
    for (job *j = p->first; j && !found; j = j->next) {
        if (j->exchange == x)
            found = j;
        else
            prev = j;
    }
    if (found) {
        if (prev)
            prev->next = found->next;
        else
            p->first = found->next;
        if (p->last == found)
            p->last = prev;
        found->next = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    free_jobs(found);
    return found != NULL;
}
