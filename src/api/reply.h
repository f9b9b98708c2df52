/* A reply on its way, as text: a stream of lanes, and the bytes of its tokens split into reasoning and answer.
 *
 * A stop string must end the reply at the same token for every reader and every pace, so it is looked for on the
 * engine's thread, by a splitter of its own. The reader splits once more, on its own thread, and arrives at the same
 * place. */
#ifndef PL_API_REPLY_H
#define PL_API_REPLY_H

#include "api/host.h"
#include "api/spec.h"

typedef struct pl_reply pl_reply;

/* Submit `prompts` specs with n choices each as one submission: replies[prompts * n], those of a prompt together,
 * choice i drawing with seed + i. notify and notify_arg as in pl_request, the same for all. The specs may be freed
 * afterwards; the caller owns the replies. The errors of pl_engine_submit and pl_host_sampling; replies are NULL
 * then. */
pl_status pl_reply_submit(pl_host *host, const pl_spec *spec, size_t prompts, size_t n, pl_stream_notify *notify,
                          void *notify_arg, pl_reply **replies, pl_error *err);
/* Cancels what still runs. NULL is allowed. */
void pl_reply_release(pl_reply *reply);
/* As pl_stream_cancel and pl_stream_wait. */
void pl_reply_cancel(pl_reply *reply);
bool pl_reply_wait(pl_reply *reply, int timeout_ms);

typedef struct pl_reply_event {
    pl_stream_event_kind kind;
    size_t prefilled;
    /* TOKEN */
    int32_t token;
    bool end;      /* it is the end token, and it ended the reply: no text stands for it */
    float logprob; /* as in pl_stream_event, like the three below */
    int tops;
    const int32_t *top;
    const float *top_logprob;
    /* TOKEN and FINISHED: what became certain with this event; valid until the next call, NULL when empty */
    const char *reasoning;
    size_t reasoning_len;
    const char *text;
    size_t text_len;
    /* FINISHED */
    const pl_outcome *outcome; /* owned by the reply */
    size_t reasoning_tokens;   /* of the reply's tokens, those inside the thinking block, its end included */
} pl_reply_event;

/* The next event, without waiting; false when there is none yet. One reader at a time, while the host is open. */
bool pl_reply_next(pl_reply *reply, pl_reply_event *event);

#endif
