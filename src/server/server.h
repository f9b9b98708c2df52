/* The server: one network thread that speaks HTTP, in front of one model. */
#ifndef PL_SERVER_SERVER_H
#define PL_SERVER_SERVER_H

#include "api/host.h"

typedef struct pl_server pl_server;

typedef struct pl_server_settings {
    const char *host;
    int port;         /* 0: any free one */
    const char *name; /* of the model */
    bool strict_name; /* requests for another name are refused */
    int keep_alive_s; /* a waiting client hears from us this often */
    size_t body_max;  /* bytes of a request body; 0: PL_HTTP_BODY_MAX */
    /* The model failed for good: called once, on the network thread. */
    void (*failed)(void *arg, const pl_error *err);
    void *failed_arg;
} pl_server_settings;

/* Bind, listen, start the network thread. Until pl_server_ready, everything but /health and the like is 503. Texts are
 * copied. PL_EIO (the port is taken), PL_EINVAL, PL_ENOMEM. */
pl_status pl_server_open(pl_server **server, const pl_server_settings *settings, pl_error *err);
int pl_server_port(const pl_server *server);

/* The model is there: serve it. host must outlive the server. Any thread, once. */
void pl_server_ready(pl_server *server, pl_host *host);

/* Take no more connections and requests; what runs goes on. Any thread. */
void pl_server_drain(pl_server *server);
/* Wait until nothing runs and everything is sent, at most timeout_ms; false when the time ran out. Any thread. */
bool pl_server_wait_idle(pl_server *server, int timeout_ms);

/* Stop the network thread, close every connection, free everything. Requests that still run are cancelled. NULL is
 * allowed. */
void pl_server_close(pl_server *server);

#endif
