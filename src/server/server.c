/* The network thread's life, and what other threads may ask of it. They set a flag under the lock and activate one
 * event; everything else happens on the network thread. */
#include "server/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#include <event2/event.h>
#include <event2/thread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* ---- callbacks of http ------------------------------------------------------------------------------------------- */

static void on_request(void *arg, pl_http_conn *conn)
{
    pl__route(arg, conn);
}

static void on_refused(void *arg, pl_http_conn *conn, int status, const char *reason)
{
    (void)arg;
    pl_refusal refusal;
    pl_refusal_make(&refusal, status, NULL, "%s", reason);
    if (status == 503)
        refusal.retry_after_s = 5;
    pl_refusal_reply(&refusal, conn);
}

static void on_gone(void *arg, pl_http_conn *conn, void *user)
{
    (void)arg, (void)conn;
    if (user)
        pl__exchange_gone(user);
}

static void on_drained(void *arg, pl_http_conn *conn, void *user)
{
    (void)arg, (void)conn;
    if (user)
        pl__exchange_drained(user);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

void pl__server_note_idle(pl_server *s)
{
    bool idle = s->first == NULL && pl_http_busy(s->http) == 0;
    pthread_mutex_lock(&s->lock);
    s->is_idle = idle;
    if (idle)
        pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

void pl__server_failed(pl_server *s, const pl_error *err)
{
    if (s->failure_told)
        return;
    s->failure_told = true;
    pl_log(PL_LOG_ERROR, "the model failed: %s", err->message);
    if (s->settings.failed)
        s->settings.failed(s->settings.failed_arg, err);
}

static void take_host(pl_server *s, pl_host *host)
{
    s->host = host;
    s->env = (pl_call_env){.tokenizer = pl_host_tokenizer(host),
                           .vocab = pl_host_config(host)->vocab_size,
                           .context = pl_host_context(host),
                           .bos = pl_host_bos(host),
                           .thinks = pl_host_thinks(host),
                           .effort = pl_host_effort(host),
                           .name = s->name,
                           .strict_name = s->settings.strict_name};
}

static void on_command(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl_server *s = arg;
    pthread_mutex_lock(&s->lock);
    pl_host *host = s->new_host;
    bool drain = s->drain, quit = s->quit;
    s->new_host = NULL;
    pthread_mutex_unlock(&s->lock);
    if (host)
        take_host(s, host);
    if (drain && !s->stopping) {
        s->stopping = true;
        pl_http_stop_listening(s->http);
        if (s->host)
            pl_engine_drain(pl_host_engine(s->host));
    }
    if (quit)
        event_base_loopbreak(s->base);
    pl__server_note_idle(s);
}

static void *network_main(void *arg)
{
    pl_server *s = arg;
    event_base_loop(s->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void command(pl_server *s)
{
    event_active(s->command, EV_READ, 0);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void free_server(pl_server *s)
{
    pl__prepare_close(s->prepare);
    while (s->first)
        pl__exchange_drop(s->first);
    pl_http_close(s->http);
    if (s->command)
        event_free(s->command);
    if (s->base)
        event_base_free(s->base);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s);
}

static pl_status start(pl_server *s, const pl_server_settings *settings, pl_error *err)
{
    if (evthread_use_pthreads() != 0)
        return pl_fail(err, PL_EFAULT, "libevent was built without threads");
    s->base = event_base_new();
    s->name = strdup(settings->name);
    s->command = s->base ? event_new(s->base, -1, EV_PERSIST, on_command, s) : NULL;
    if (!s->base || !s->name || !s->command)
        return pl_fail(err, PL_ENOMEM, "no memory for the server");
    pl_http_handler handler = {
        .arg = s, .request = on_request, .refused = on_refused, .gone = on_gone, .drained = on_drained};
    size_t body_max = settings->body_max ? settings->body_max : PL_HTTP_BODY_MAX;
    PL_TRY(pl_http_open(&s->http, s->base, settings->host, settings->port, body_max, &pl_http_default_times, &handler,
                        err));
    PL_TRY(pl__prepare_open(&s->prepare, s->base, err));
    int rc = pl_thread_start(&s->thread, network_main, s);
    return rc ? pl_fail(err, PL_ENOMEM, "the network thread did not start: %s", strerror(rc)) : PL_OK;
}

pl_status pl_server_open(pl_server **out, const pl_server_settings *settings, pl_error *err)
{
    *out = NULL;
    pl_server *s = calloc(1, sizeof *s);
    if (!s)
        return pl_fail(err, PL_ENOMEM, "no memory for the server");
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, &attr);
    pthread_condattr_destroy(&attr);
    s->settings = *settings;
    s->started = pl_wall_seconds();
    s->is_idle = true;
    pl_status status = start(s, settings, err);
    if (status != PL_OK) {
        free_server(s);
        return status;
    }
    *out = s;
    return PL_OK;
}

int pl_server_port(const pl_server *s)
{
    return pl_http_port(s->http);
}

void pl_server_ready(pl_server *s, pl_host *host)
{
    pthread_mutex_lock(&s->lock);
    s->new_host = host;
    pthread_mutex_unlock(&s->lock);
    command(s);
}

void pl_server_drain(pl_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->drain = true;
    s->is_idle = false; /* until the network thread has looked */
    pthread_mutex_unlock(&s->lock);
    command(s);
}

bool pl_server_wait_idle(pl_server *s, int timeout_ms)
{
    enum { LOOK_MS = 20 };
    int64_t until = pl_now_ns() + (int64_t)timeout_ms * 1000000;
    bool idle = false;
    while (!idle && pl_now_ns() < until) {
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_nsec += LOOK_MS * 1000000L;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        command(s); /* bytes that leave a socket tell nobody: ask */
        pthread_mutex_lock(&s->lock);
        if (!s->is_idle)
            pthread_cond_timedwait(&s->idle, &s->lock, &at);
        idle = s->is_idle;
        pthread_mutex_unlock(&s->lock);
    }
    return idle;
}

void pl_server_close(pl_server *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_mutex_unlock(&s->lock);
    command(s);
    pthread_join(s->thread, NULL);
    free_server(s);
}
