/* See exchange.h. Every way out of an exchange goes through close_exchange. */
#include "server/exchange.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static const pl_reply_format *format_of(const pl_exchange *x)
{
    return x->chat ? &pl__chat_format : &pl__completion_format;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void free_batch(pl_batch *b)
{
    pl_out *outs[] = {&b->reasoning, &b->text, &b->logprobs, &b->tops, &b->offsets, &b->names};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        pl_out_free(outs[i]);
}

static void clear_batch(pl_batch *b)
{
    pl_out *outs[] = {&b->reasoning, &b->text, &b->logprobs, &b->tops, &b->offsets, &b->names};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        pl_out_clear(outs[i]);
    b->tokens = 0;
}

static void init_batch(pl_batch *b)
{
    pl_out *outs[] = {&b->reasoning, &b->text, &b->logprobs, &b->tops, &b->offsets, &b->names};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        pl_out_init(outs[i]);
}

static void log_end(const pl_exchange *x)
{
    size_t tokens = 0, finished = 0;
    for (size_t i = 0; i < x->choices; i++) {
        tokens += x->choice[i].outcome.tokens;
        finished += x->choice[i].finished;
    }
    size_t prompt = x->call.prompts ? x->call.spec[0].prompt.len : 0;
    pl_log(PL_LOG_INFO, "%s: prompt %zu, reply %zu tokens, %s, %.3f s", x->id, prompt, tokens,
           x->choices && finished == x->choices ? pl__finish_reason(&x->choice[0].outcome) : "client left",
           (double)(pl_now_ns() - x->arrived_ns) * 1e-9);
}

/* Free it. The connection must have had its reply, or be gone. */
static void close_exchange(pl_exchange *x)
{
    pl_server *s = x->server;
    if (x->choices)
        log_end(x);
    if (x->prev)
        x->prev->next = x->next;
    else
        s->first = x->next;
    if (x->next)
        x->next->prev = x->prev;
    for (size_t i = 0; i < x->choices; i++) {
        pl_reply_release(x->choice[i].reply);
        free_batch(&x->choice[i].batch);
    }
    free(x->choice);
    pl_call_free(&x->call);
    if (x->wake)
        event_free(x->wake);
    if (x->tick)
        event_free(x->tick);
    pl_out_free(&x->out);
    free(x);
    if (!s->first) /* what many requests at once took does not stay with the process; some 50 us, behind the reply */
        pl_heap_trim();
    pl__server_note_idle(s);
}

/* Answer with an error, in whatever state the reply is, and end the exchange. */
static void fail_exchange(pl_exchange *x, const pl_refusal *refusal)
{
    if (x->conn && !x->begun) {
        pl_refusal_reply(refusal, x->conn);
    } else if (x->conn) {
        pl_out_clear(&x->out);
        pl_refusal_write(refusal, &x->out);
        if (x->call.stream)
            pl__sse_send(x);
        else
            pl_http_stream_write(x->conn, x->out.buf.data, x->out.buf.len);
        pl_http_stream_end(x->conn);
    }
    close_exchange(x);
}

static void fail_memory(pl_exchange *x)
{
    pl_refusal refusal;
    pl_refusal_make(&refusal, 503, "out_of_memory", "no memory for the reply");
    fail_exchange(x, &refusal);
}

/* ---- SSE --------------------------------------------------------------------------------------------------------- */

void pl__sse_send(pl_exchange *x)
{
    if (x->out.failed || !x->conn)
        return;
    /* JSON spells line ends as \n, so data is always one line. */
    pl_out_raw(&x->out, "\n\n");
    pl_buf *b = &x->out.buf;
    char lead[] = "data: ";
    pl_error err;
    if (pl_buf_reserve(b, sizeof lead - 1, &err) != PL_OK) {
        x->out.failed = true;
        return;
    }
    memmove(b->data + sizeof lead - 1, b->data, b->len);
    memcpy(b->data, lead, sizeof lead - 1);
    pl_http_stream_write(x->conn, b->data, b->len + sizeof lead - 1);
    pl_out_clear(&x->out);
    x->wrote = true;
}

static void send_first(pl_exchange *x)
{
    pl_http_stream_begin(x->conn, 200, "text/event-stream; charset=utf-8",
                         "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
    x->begun = true;
    for (size_t i = 0; i < x->choices; i++)
        if (format_of(x)->first(x, i))
            pl__sse_send(x);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl_exchange *x = arg;
    bool quiet = !x->wrote;
    x->wrote = false;
    if (!x->conn || !quiet || pl_http_unsent(x->conn) > PL_HTTP_UNSENT_MAX)
        return;
    if (x->call.stream) {
        pl_http_stream_write(x->conn, ": keep-alive\n\n", 14);
        return;
    }
    /* A whole reply may begin with blank space: proxies and clients then know that we live. */
    if (!x->begun)
        pl_http_stream_begin(x->conn, 200, "application/json", NULL);
    x->begun = true;
    pl_http_stream_write(x->conn, "\n", 1);
}

/* ---- news from the replies --------------------------------------------------------------------------------------- */

static void take_event(pl_exchange *x, pl_choice *c, const pl_reply_event *event)
{
    pl_batch *b = &c->batch;
    if (event->kind == PL_STREAM_TOKEN && !event->end && x->call.spec[0].top_logprobs >= 0)
        format_of(x)->logprobs(x, c, event);
    b->tokens += event->kind == PL_STREAM_TOKEN;
    pl_out_bytes(&b->reasoning, event->reasoning, event->reasoning_len);
    pl_out_bytes(&b->text, event->text, event->text_len);
    if (event->kind != PL_STREAM_FINISHED)
        return;
    c->finished = true;
    c->outcome = *event->outcome;
    c->reasoning_tokens = event->reasoning_tokens;
}

static bool batch_empty(const pl_batch *b)
{
    return !b->reasoning.buf.len && !b->text.buf.len && !b->logprobs.buf.len;
}

static void send_batch(pl_exchange *x, size_t i)
{
    pl_batch *b = &x->choice[i].batch;
    if (!batch_empty(b))
        format_of(x)->piece(x, i);
    clear_batch(b);
}

static bool failed(const pl_exchange *x)
{
    bool out = x->out.failed;
    for (size_t i = 0; i < x->choices; i++) {
        const pl_batch *b = &x->choice[i].batch;
        out = out || b->text.failed || b->reasoning.failed || b->logprobs.failed || b->tops.failed ||
              b->offsets.failed || b->names.failed;
    }
    return out;
}

/* Did a choice end in a way that has no finish_reason? */
static bool ended_badly(const pl_exchange *x, pl_refusal *refusal)
{
    for (size_t i = 0; i < x->choices; i++) {
        const pl_choice *c = &x->choice[i];
        if (!c->finished || c->outcome.reason == PL_FINISH_STOP || c->outcome.reason == PL_FINISH_LENGTH)
            continue;
        if (c->outcome.reason == PL_FINISH_CANCELLED)
            pl_refusal_make(refusal, 503, "shutting_down", "the server is shutting down");
        else
            pl_refusal_from(refusal, &c->outcome.error);
        if (c->outcome.error.status == PL_EFAULT)
            pl__server_failed(x->server, &c->outcome.error);
        return true;
    }
    return false;
}

/* Everything of one choice that is there and may be sent. Streams pause while the client has much to take. */
static void read_choice(pl_exchange *x, size_t i)
{
    pl_choice *c = &x->choice[i];
    pl_reply_event event;
    while (!c->finished && !(x->call.stream && pl_http_unsent(x->conn) > PL_HTTP_UNSENT_MAX) &&
           pl_reply_next(c->reply, &event)) {
        take_event(x, c, &event);
        if (x->call.stream &&
            c->batch.text.buf.len + c->batch.reasoning.buf.len + c->batch.logprobs.buf.len > PL_BATCH_TEXT_MAX)
            send_batch(x, i);
        if (c->finished && x->call.stream) {
            send_batch(x, i);
            if (c->outcome.reason == PL_FINISH_STOP || c->outcome.reason == PL_FINISH_LENGTH)
                format_of(x)->finish(x, i);
        }
    }
    if (x->call.stream)
        send_batch(x, i);
}

static void finish_exchange(pl_exchange *x)
{
    const pl_reply_format *f = format_of(x);
    if (x->call.stream) {
        if (x->call.include_usage)
            f->usage(x);
        pl_out_raw(&x->out, "[DONE]");
        pl__sse_send(x);
        pl_http_stream_end(x->conn);
    } else {
        f->whole(x);
        if (x->out.failed) {
            fail_memory(x);
            return;
        }
        if (x->begun) {
            pl_http_stream_write(x->conn, x->out.buf.data, x->out.buf.len);
            pl_http_stream_end(x->conn);
        } else {
            pl_http_reply(x->conn, 200, "application/json", NULL, x->out.buf.data, x->out.buf.len);
        }
    }
    close_exchange(x);
}

static void on_news(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pl_exchange *x = arg;
    if (!x->conn)
        return;
    bool all = true;
    for (size_t i = 0; i < x->choices; i++) {
        read_choice(x, i);
        all = all && x->choice[i].finished;
    }
    pl_refusal refusal;
    if (ended_badly(x, &refusal))
        fail_exchange(x, &refusal);
    else if (failed(x))
        fail_memory(x);
    else if (all)
        finish_exchange(x);
}

void pl__exchange_drained(pl_exchange *x)
{
    if (x->call.stream && x->choices)
        event_active(x->wake, EV_READ, 0);
}

/* On the engine's thread, or on one that cancels. */
static void notify(void *arg)
{
    pl_exchange *x = arg;
    event_active(x->wake, EV_READ, 0);
}

/* ---- the way in -------------------------------------------------------------------------------------------------- */

static pl_status make_events(pl_exchange *x)
{
    x->wake = event_new(x->server->base, -1, EV_PERSIST, on_news, x);
    x->tick = event_new(x->server->base, -1, EV_PERSIST, on_tick, x);
    return x->wake && x->tick ? PL_OK : PL_ENOMEM;
}

void pl__exchange_start(pl_server *s, pl_http_conn *conn, bool chat)
{
    pl_refusal refusal;
    pl_buf body;
    pl_error err;
    pl_exchange *x = calloc(1, sizeof *x);
    if (!x) {
        pl_refusal_make(&refusal, 503, "out_of_memory", "no memory for a request");
        pl_refusal_reply(&refusal, conn);
        return;
    }
    x->server = s;
    x->conn = conn;
    x->chat = chat;
    x->arrived_ns = pl_now_ns();
    x->created = pl_wall_seconds();
    snprintf(x->id, sizeof x->id, "%s-%llx-%llx", chat ? "chatcmpl" : "cmpl", (unsigned long long)s->started,
             (unsigned long long)s->next_id++);
    pl_out_init(&x->out);
    x->next = s->first;
    if (s->first)
        s->first->prev = x;
    s->first = x;
    pl_http_set_user(conn, x);
    pl__server_note_idle(s);
    pl_http_take_body(conn, &body);
    x->preparing = true;
    if (make_events(x) != PL_OK) {
        pl_buf_free(&body);
        fail_memory(x);
    } else if (pl__prepare_add(s->prepare, x, &body, chat, &s->env, &err) != PL_OK) {
        fail_memory(x);
    }
}

/* Submit the call; on PL_OK every choice has its reply. */
static pl_status submit(pl_exchange *x, pl_error *err)
{
    size_t n = x->call.prompts * x->call.n;
    pl_reply **replies = calloc(n, sizeof *replies);
    x->choice = calloc(n, sizeof *x->choice);
    pl_status status = replies && x->choice ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for %zu choices", n);
    if (status == PL_OK)
        status = pl_reply_submit(x->server->host, x->call.spec, x->call.prompts, x->call.n, notify, x, replies, err);
    for (size_t i = 0; i < n && status == PL_OK; i++) {
        x->choice[i].reply = replies[i];
        init_batch(&x->choice[i].batch);
    }
    x->choices = status == PL_OK ? n : 0;
    free(replies);
    return status;
}

void pl__exchange_prepared(pl_exchange *x, pl_status status, const pl_refusal *refusal)
{
    pl_error err;
    x->preparing = false;
    if (!x->conn) {
        close_exchange(x);
        return;
    }
    pl_http_body_done(x->conn);
    if (status != PL_OK) {
        fail_exchange(x, refusal);
        return;
    }
    if (submit(x, &err) != PL_OK) {
        pl_refusal made;
        pl_refusal_from(&made, &err);
        if (err.status == PL_EBUSY && x->server->stopping)
            pl_refusal_make(&made, 503, "shutting_down", "%s", err.message);
        fail_exchange(x, &made);
        return;
    }
    struct timeval every = {.tv_sec = x->server->settings.keep_alive_s};
    evtimer_add(x->tick, &every);
    if (x->call.stream)
        send_first(x);
    event_active(x->wake, EV_READ, 0);
}

void pl__exchange_gone(pl_exchange *x)
{
    x->conn = NULL;
    if (!x->preparing || pl__prepare_cancel(x->server->prepare, x)) /* else the reading thread still has it */
        close_exchange(x);
}

void pl__exchange_drop(pl_exchange *x)
{
    x->conn = NULL;
    close_exchange(x);
}
