/* Inside of the server. */
#ifndef PL_SERVER_SERVER_INT_H
#define PL_SERVER_SERVER_INT_H

#include "server/call.h"
#include "server/server.h"

#include <pthread.h>

struct event;
struct event_base;
struct pl_exchange;

typedef struct pl__prepare pl__prepare;

struct pl_server {
    pl_server_settings settings; /* with copies of its texts */
    char *name;
    struct event_base *base;
    pl_http *http;
    pthread_t thread;
    pl__prepare *prepare;
    int64_t started; /* wall clock: `created` of the model */

    /* network thread only */
    pl_host *host; /* NULL while loading */
    pl_call_env env;
    struct pl_exchange *first;
    uint64_t next_id;
    bool stopping, failure_told;

    /* guarded by lock: what other threads ask for and learn */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct event *command;
    pl_host *new_host;
    bool drain, quit, is_idle;
};

/* The routes: called for every request. */
void pl__route(pl_server *server, pl_http_conn *conn);
/* Tell pl_server_wait_idle whether anything runs. Network thread. */
void pl__server_note_idle(pl_server *server);
/* The engine has failed for good. Network thread. */
void pl__server_failed(pl_server *server, const pl_error *err);

/* GET /health; GET /v1/models; GET /v1/models/ID. */
void pl__health(pl_server *server, pl_http_conn *conn);
void pl__models(pl_server *server, pl_http_conn *conn);
void pl__model(pl_server *server, pl_http_conn *conn, const char *id, size_t len);

/* ---- reading bodies off the network thread ---------------------------------------------------------------------- */

/* A megabyte of JSON takes a tenth of a second to become ids: too long for a thread that keeps other clients' streams
 * going. So one more thread does that, in order of arrival. */
pl_status pl__prepare_open(pl__prepare **prepare, struct event_base *base, pl_error *err);
/* Ends the thread; what was queued is dropped (its exchanges are told nothing). NULL is allowed. */
void pl__prepare_close(pl__prepare *prepare);
/* Read body (taken over) for x; pl__exchange_prepared is called later, on the network thread. PL_ENOMEM. */
pl_status pl__prepare_add(pl__prepare *prepare, struct pl_exchange *x, pl_buf *body, bool chat, const pl_call_env *env,
                          pl_error *err);
/* The client of x has left: drop its body. False when it is being read already: pl__exchange_prepared will be
 * called. */
bool pl__prepare_cancel(pl__prepare *prepare, struct pl_exchange *x);

#endif
