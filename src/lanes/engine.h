/* The engine: one thread that owns the model's state and makes replies, as many at once as the target has slots.
 *
 *   any thread --submit--> bounded queue --engine thread--> core --> the stream's log --next/wait--> any thread
 *
 * A request gets the next free slot; foreground requests before background ones, each in order of arrival. When all
 * slots are taken and a foreground request waits, a background stream gives its slot up, waits in front of its kind,
 * and later runs what it had again: its reply goes on with the token that it would have had. */
#ifndef PL_LANES_ENGINE_H
#define PL_LANES_ENGINE_H

#include "lanes/stream.h"
#include "lanes/target.h"

typedef struct pl_engine pl_engine;

typedef enum pl_prompt_order {
    PL_PROMPTS_SHORTEST, /* fewest tokens left first; who was passed over long enough goes next */
    PL_PROMPTS_ARRIVAL
} pl_prompt_order;

typedef struct pl_core_settings {
    bool drafts;            /* without it no stream drafts */
    int plain_streams;      /* rounds of so many streams or more are plain; 0: none are (depth.h) */
    int joint;              /* depths of two streams and more: 0, 1, 2 (depth.h) */
    int fixed_depth;        /* 0: by the rule; else so many drafts whenever they are there (for measuring) */
    double decode_share;    /* of the time, while prompts and replies are both at work; 0 to 0.95 */
    pl_prompt_order order;  /* of prompts, a piece at a time */
    const char *accept_log; /* file that gets a line of JSON a round, appended to; NULL: none */
    bool profile;           /* tell the log now and then where a round's time goes */
} pl_core_settings;

typedef struct pl_engine_settings {
    int queue; /* most submissions that wait; at least 1 */
    pl_core_settings core;
} pl_engine_settings;

/* Start the engine thread. The tables are copied; what they point to must outlive the engine and belongs to the
 * engine's thread until pl_engine_close. drafter may be NULL: nobody drafts. PL_EINVAL, PL_ENOMEM, PL_EIO (the accept
 * log). */
pl_status pl_engine_open(pl_engine **engine, const pl_target *target, const pl_draft_table *drafter,
                         const pl_engine_settings *settings, pl_error *err);

/* Bytes that pl_engine_open reserves: lanes, draws, rounds. Queues and logs come with the requests and go with them. */
size_t pl_engine_bytes(const pl_target *target, const pl_draft_table *drafter);

/* End it: waiting and running requests finish as cancelled within a part of a layer, the thread is joined. Streams may
 * be read and released afterwards, but not before it has returned from another thread. NULL is allowed. */
void pl_engine_close(pl_engine *engine);

/* Hand in n requests as one submission (the choices of one reply): all are taken, in order, or none. Any thread.
 * On PL_OK the caller owns streams[0..n). PL_EBUSY: the queue is full or the engine is draining. PL_EFAULT: the model
 * failed before (pl_engine_fault). PL_EINVAL (param at fault) for a request that breaks request.h's bounds; PL_ELIMIT
 * (param "max_tokens" or "prompt") where prompt and reply do not fit the context. PL_ENOMEM. */
pl_status pl_engine_submit(pl_engine *engine, const pl_request *request, size_t n, pl_stream **streams, pl_error *err);

/* Take no more submissions (PL_EBUSY from now on); what is there goes on. */
void pl_engine_drain(pl_engine *engine);
/* Cancel everything, waiting or running. */
void pl_engine_cancel_all(pl_engine *engine);

typedef struct pl_engine_counts {
    size_t waiting;                                           /* requests in the queue */
    size_t running;                                           /* in slots */
    size_t prompts;                                           /* of them, with a prompt that still runs */
    uint64_t submitted, refused, finished, cancelled, failed; /* requests since the start */
    uint64_t prompt_tokens, reply_tokens;                     /* run and drawn since the start */
    uint64_t launches, passes;                                /* of windows; of the drafter */
    pl_numbers numbers;                                       /* of all streams since the start */
    int64_t prefill_ns, decode_ns;                            /* spent in pieces; in rounds */
} pl_engine_counts;

/* As they stand. Any thread. */
void pl_engine_counts_now(pl_engine *engine, pl_engine_counts *counts);

/* Has the model failed in a way that no later request can survive (PL_EFAULT from the target)? *err (may be NULL) then
 * tells how. Any thread. */
bool pl_engine_fault(pl_engine *engine, pl_error *err);

#endif
