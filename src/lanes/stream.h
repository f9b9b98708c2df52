/* One request on its way: the caller's handle, and the queue its events come out of.
 *
 * The queue is an append-only log of at most max_tokens entries, planned when the request is submitted. So it is
 * bounded, a reader that stops reading loses nothing, and it never holds the engine up: whoever reads late finds
 * everything there. Progress is a number, not a list, and is told as it stands. */
#ifndef PL_LANES_STREAM_H
#define PL_LANES_STREAM_H

#include "lanes/numbers.h"
#include "lanes/request.h"

typedef struct pl_stream pl_stream;

typedef enum pl_finish {
    PL_FINISH_STOP,      /* the end token, or a stop string */
    PL_FINISH_LENGTH,    /* max_tokens */
    PL_FINISH_CANCELLED, /* pl_stream_cancel */
    PL_FINISH_ERROR      /* see the error */
} pl_finish;

/* Nanoseconds; a part that was not reached is 0. */
typedef struct pl_timings {
    int64_t queued;  /* from submission to admission */
    int64_t prefill; /* from admission to the prompt's last logits */
    int64_t first;   /* from submission to the first token */
    int64_t decode;  /* from the first token to the last */
} pl_timings;

typedef struct pl_outcome {
    pl_finish reason;
    bool by_stop_check; /* PL_FINISH_STOP: by the stop check, not by the end token */
    size_t prompt_tokens;
    size_t tokens; /* of the reply, the end token included */
    pl_numbers numbers;
    char token_sha[65]; /* SHA-256 of all of them as 4-byte little-endian ids */
    pl_timings timings;
    pl_error error; /* PL_FINISH_ERROR only */
} pl_outcome;

typedef enum pl_stream_event_kind {
    PL_STREAM_STARTED, /* admitted: no longer waiting */
    PL_STREAM_PREFILL, /* prefilled has grown */
    PL_STREAM_TOKEN,   /* one token of the reply */
    PL_STREAM_FINISHED /* the last event */
} pl_stream_event_kind;

typedef struct pl_stream_event {
    pl_stream_event_kind kind;
    size_t prefilled; /* PREFILL: prompt tokens run so far */
    /* TOKEN */
    int32_t token;
    float logprob;      /* of the token at temperature 1, before penalties; only when asked for */
    int tops;           /* entries of the two lists below, likeliest first */
    const int32_t *top; /* owned by the stream */
    const float *top_logprob;
    /* FINISHED */
    const pl_outcome *outcome; /* owned by the stream */
} pl_stream_event;

/* The next event, without waiting; false when there is none yet (or after FINISHED). One reader at a time. */
bool pl_stream_next(pl_stream *stream, pl_stream_event *event);

/* Wait until pl_stream_next has an event, at most timeout_ms (negative: for ever). False when the time ran out. */
bool pl_stream_wait(pl_stream *stream, int timeout_ms);

/* Give the reply up; any thread. A waiting request finishes at once; a running one within one prefill layer or one
 * token. FINISHED (cancelled) still comes, unless the reply was finished before. */
void pl_stream_cancel(pl_stream *stream);

/* The caller is done with it: cancelled if it still runs, no notification after the return, freed when the engine is
 * done too. NULL is allowed. */
void pl_stream_release(pl_stream *stream);

#endif
