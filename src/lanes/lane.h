/* A slot and the stream in it. Owned by the core. */
#ifndef PL_LANES_LANE_H
#define PL_LANES_LANE_H

#include "lanes/copy.h"
#include "lanes/stream_int.h"
#include "model/history.h"
#include "model/sampler.h"

enum { PL_WINDOW_DRAFTS = 15 /* most drafts of one window */, PL_BLOCK_MOST = 16 /* of one proposal */ };

typedef enum pl__phase { PL__FREE, PL__PROMPT, PL__REPLY } pl__phase;

typedef struct pl__lane {
    int slot;
    pl__phase phase;
    pl_stream *stream; /* NULL when free */
    pl_outcome outcome;
    pl_history history;
    pl__copy copy;
    int32_t *token; /* [context] prompt and committed reply; the last one is pending while it replies */
    int tokens;
    int kept; /* of them, in the slot */
    int goal; /* PROMPT: rows to run before the reply begins or goes on */

    int passed_over;  /* PROMPT: pieces that others got since its last */
    uint64_t served;  /* REPLY: which of all windows its last one was; 0: none yet */
    bool over;        /* REPLY: ended in this round */
    uint64_t arrival; /* order of admission */
    int64_t admitted_ns;

    /* drafts at hand, for one round */
    int heads;
    int32_t head[PL_BLOCK_MOST];
    float confidence[PL_BLOCK_MOST];
    int32_t copied[PL_WINDOW_DRAFTS];
    int32_t window[PL_WINDOW_DRAFTS + 1]; /* the rows of the launch */
} pl__lane;

/* The stream's own: what it asks for. */
static inline const pl_request *pl__lane_request(const pl__lane *lane)
{
    return &lane->stream->request;
}

static inline bool pl__lane_cancelled(const pl__lane *lane)
{
    return atomic_load_explicit(&lane->stream->cancel, memory_order_relaxed);
}

/* Absolute position of the token to be drawn next. */
static inline int64_t pl__lane_position(const pl__lane *lane)
{
    return lane->tokens;
}

#endif
