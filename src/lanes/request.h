/* What a caller asks of the engine: a prompt, how to draw, when to stop. */
#ifndef PL_LANES_REQUEST_H
#define PL_LANES_REQUEST_H

#include "model/sampling.h"

/* Called on the engine thread with every token, in order, right after it was committed and only when the end token did
 * not end the reply already. True ends the reply with this token (a stop string was completed). It must be quick and
 * must not call the engine. */
typedef bool pl_stop_check(void *arg, int32_t token);

/* Something happened: pl_stream_next has news. Called on the engine thread or on one that cancels, with a lock held:
 * hand the word on (wake a loop), return, call nothing of this module. */
typedef void pl_stream_notify(void *arg);

enum { PL_TOP_LOGPROBS_MAX = 20 };

typedef struct pl_request {
    const int32_t *prompt; /* copied */
    size_t prompt_len;     /* at least 1, below the context */
    pl_sampling sampling;  /* resolved: a seed, no defaults open; its bias list is copied */
    int64_t max_tokens;    /* at least 1; prompt_len + max_tokens is at most the context */
    int32_t eos;           /* the token that ends a reply; -1: none does */
    int64_t think_budget; /* the prompt ends inside a thinking block, which gets at most so many tokens before think_end
                              takes the next one's place; 0: no bound */
    int32_t think_end;    /* the token that closes it; only with a budget */
    bool draft;           /* the drafter may work ahead; it changes no token */
    bool background;      /* gives way to requests that are not */
    int top_logprobs;     /* -1: no logprobs; else how many likeliest tokens to list, 0..PL_TOP_LOGPROBS_MAX */

    pl_stop_check *stop; /* may be NULL */
    void *stop_arg;
    void (*stop_free)(
        void *arg); /* may be NULL; called once when the engine and the caller are both done with the stream,
                                     and not at all when the submission fails */

    pl_stream_notify *notify; /* may be NULL */
    void *notify_arg;         /* outlives pl_stream_release */
} pl_request;

/* Does it hold together, and fit a target of this context and vocabulary? PL_EINVAL or PL_ELIMIT with the parameter. */
pl_status pl__request_check(const pl_request *request, int context, int vocab, pl_error *err);

#endif
