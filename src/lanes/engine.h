/* The engine: one thread that owns the model's state and makes replies, one request at a time, in order of arrival.
 *
 *   any thread --submit--> bounded queue --engine thread--> target --> the stream's log --next/wait--> any thread */
#ifndef PL_LANES_ENGINE_H
#define PL_LANES_ENGINE_H

#include "lanes/stream.h"
#include "lanes/target.h"

typedef struct pl_engine pl_engine;

typedef struct pl_engine_settings {
    int queue; /* most submissions that wait; at least 1 */
} pl_engine_settings;

/* Start the engine thread. The target's table is copied; what it points to must outlive the engine and belongs to the
 * engine's thread until pl_engine_close. PL_EINVAL, PL_ENOMEM. */
pl_status pl_engine_open(pl_engine **engine, const pl_target *target, const pl_engine_settings *settings,
                         pl_error *err);

/* Bytes that pl_engine_open reserves: what draws need, for a vocabulary of this size. Queues and logs come with the
 * requests and go with them. */
size_t pl_engine_bytes(int vocab);

/* End it: waiting and running requests finish as cancelled within one layer or token, the thread is joined. Streams may
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
    size_t waiting; /* requests in the queue */
    size_t running;
    uint64_t submitted, refused, finished, cancelled, failed; /* requests since the start */
    uint64_t prompt_tokens, reply_tokens;                     /* run and drawn since the start */
} pl_engine_counts;

/* As they stand. Any thread. */
void pl_engine_counts_now(pl_engine *engine, pl_engine_counts *counts);

/* Has the model failed in a way that no later request can survive (PL_EFAULT from the target)? *err (may be NULL) then
 * tells how. Any thread. */
bool pl_engine_fault(pl_engine *engine, pl_error *err);

#endif
