/* One completion request from its arrival to its last byte. Lives on the network thread; only the reading of the body
 * happens elsewhere (prepare.h), and the replies come from the engine's thread through their own queues.
 *
 *   body --prepare--> call --submit--> replies --wake--> batches --format--> JSON or SSE --> connection */
#ifndef PL_SERVER_EXCHANGE_H
#define PL_SERVER_EXCHANGE_H

#include "api/reply.h"
#include "server/call.h"
#include "server/server_int.h"

struct event;

enum { PL_BATCH_TEXT_MAX = 32 << 10 /* text of one chunk of a stream, about */ };

/* What came of one choice since its last chunk (stream) or so far (whole reply). */
typedef struct pl_batch {
    pl_out reasoning, text; /* raw text, not JSON */
    pl_out logprobs;        /* JSON, as the endpoint's format collects it */
    pl_out tops;            /* completions: the second of its parallel lists */
    pl_out offsets;         /* completions: the third */
    pl_out names;           /* completions: the fourth */
    size_t tokens;
} pl_batch;

typedef struct pl_choice {
    pl_reply *reply;
    pl_batch batch;
    size_t offset; /* completions: characters of the tokens so far */
    bool finished;
    pl_outcome outcome;
    size_t reasoning_tokens;
} pl_choice;

typedef struct pl_exchange pl_exchange;

struct pl_exchange {
    pl_server *server;
    pl_exchange *prev, *next;
    pl_http_conn *conn; /* NULL once the client has gone */
    bool chat;
    bool preparing; /* the body is being read on the other thread */
    bool begun;     /* the reply's head is on its way */
    bool wrote;     /* something since the last tick of the keep-alive clock */
    int64_t arrived_ns;
    char id[48];
    int64_t created;
    pl_call call;
    pl_choice *choice; /* [choices] */
    size_t choices;
    size_t turn; /* where the next look for news begins */
    struct event *wake, *tick;
    pl_out out; /* scratch of one chunk */
};

/* A POST to one of the two endpoints. Takes the body; answers in any case. */
void pl__exchange_start(pl_server *server, pl_http_conn *conn, bool chat);
/* The body was read: go on, on the network thread. Frees the exchange when the client has gone. */
void pl__exchange_prepared(pl_exchange *x, pl_status status, const pl_refusal *refusal);
/* The connection's callbacks. */
void pl__exchange_gone(pl_exchange *x);
void pl__exchange_drained(pl_exchange *x);
/* Free without a word to the client: the server is closing. */
void pl__exchange_drop(pl_exchange *x);

/* ---- the two formats --------------------------------------------------------------------------------------------- */

typedef struct pl_reply_format {
    /* Add one token's logprobs to the batch. */
    void (*logprobs)(pl_exchange *x, pl_choice *choice, const pl_reply_event *event);
    /* Stream: the first chunk of a choice into x->out as JSON; false when this format has none. */
    bool (*first)(pl_exchange *x, size_t choice);
    /* Stream: the batch of a choice, as SSE events. */
    void (*piece)(pl_exchange *x, size_t choice);
    /* Stream: the chunk with the finish_reason, as SSE events. */
    void (*finish)(pl_exchange *x, size_t choice);
    /* Stream: the chunk with the usage, as an SSE event. */
    void (*usage)(pl_exchange *x);
    /* The whole reply, as JSON. */
    void (*whole)(pl_exchange *x);
} pl_reply_format;

extern const pl_reply_format pl__chat_format, pl__completion_format;

/* Pieces that both formats use: all write to x->out. */
void pl__put_head(pl_exchange *x, const char *object); /* {"id": ..., "model": ... */
void pl__put_usage(pl_exchange *x);                    /* the usage object */
void pl__put_paceline(pl_exchange *x);                 /* , "token_sha": ..., "paceline": {...} */
const char *pl__finish_reason(const pl_outcome *outcome);
void pl__put_token_text(pl_exchange *x, pl_out *out, int32_t id); /* a token's text as a JSON string */
/* SSE: what lies in x->out is one event's data. Sends it and empties x->out. */
void pl__sse_send(pl_exchange *x);

#endif
