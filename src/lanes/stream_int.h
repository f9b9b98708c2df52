/* Inside of a stream, for the engine. */
#ifndef PL_LANES_STREAM_INT_H
#define PL_LANES_STREAM_INT_H

#include "base/sha256.h"
#include "lanes/stream.h"

#include <pthread.h>
#include <stdatomic.h>

struct pl_engine;

struct pl_stream {
    /* fixed at submission */
    pl_request request; /* prompt and bias list owned by the stream */
    struct pl_engine *engine;
    int64_t submitted_ns;
    int tops; /* entries of a row of top[] */

    atomic_bool cancel; /* read by the engine between pieces, layers and rounds */

    /* the engine thread's, kept here so that a stream may give its slot up and come back */
    pl_sha256 sha;    /* of the tokens in the log */
    int64_t first_ns; /* when the first one was drawn */
    bool thinking;    /* its thinking block is open */

    /* guarded by the engine's lock */
    struct pl_stream *next;    /* in the queue */
    bool waiting;              /* is in the queue */
    struct pl__ticket *ticket; /* of its submission, while it waits for the first time */

    /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t news;
    int refs; /* the caller's and the engine's */
    bool started, finished, signalled;
    size_t prefilled;
    size_t count; /* tokens in the log; the engine thread alone changes it, and may read it without the lock */
    pl_outcome outcome;

    /* the log; entry i is written before count passes i and never changes afterwards */
    int32_t *token;     /* [max_tokens] */
    float *logprob;     /* [max_tokens], or NULL */
    int32_t *top;       /* [max_tokens][tops], or NULL */
    float *top_logprob; /* [max_tokens][tops], or NULL */

    /* the reader's place, guarded by lock */
    bool read_started, read_finished;
    size_t read_prefilled, read_count;
};

/* A stream with both references, its copies made and its log reserved. PL_ENOMEM, PL_ELIMIT. */
pl_status pl__stream_new(pl_stream **stream, const pl_request *request, struct pl_engine *engine, pl_error *err);
/* Undo pl__stream_new of a stream that was never handed out: stop_free is not called. */
void pl__stream_discard(pl_stream *stream);
/* Drop one reference. */
void pl__stream_unref(pl_stream *stream);

/* What the log says of the reply so far: its tokens, their hash, when the first one came. Engine thread. */
void pl__stream_account(const pl_stream *stream, pl_outcome *outcome);

/* Engine side: publish what happened. */
void pl__stream_start(pl_stream *stream);
void pl__stream_prefilled(pl_stream *stream, size_t prefilled);
void pl__stream_commit(pl_stream *stream); /* the log's entry [count] is written: show it */
void pl__stream_finish(pl_stream *stream, const pl_outcome *outcome);

#endif
