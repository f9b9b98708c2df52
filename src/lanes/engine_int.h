/* Inside of the engine: what its thread, its queue and its core share. */
#ifndef PL_LANES_ENGINE_INT_H
#define PL_LANES_ENGINE_INT_H

#include "lanes/engine.h"
#include "lanes/stream_int.h"
#include "model/sampler.h"

struct pl_engine {
    pl_target target;
    pl_engine_settings settings;
    pthread_t thread;
    pl_sampler *sampler; /* the engine thread's, as the history is */
    pl_history history;  /* of the running stream */

    pthread_mutex_t lock; /* guards what follows; taken before a stream's lock, never after */
    pthread_cond_t work;
    pl_stream *first, *last; /* waiting, in order of arrival */
    pl_stream *current;      /* running; NULL between two */
    size_t submissions;      /* waiting submissions: what settings.queue bounds */
    bool draining, closing;
    pl_error fault; /* status PL_OK while there is none */
    pl_engine_counts counts;
};

/* Make one reply from beginning to end, in slot 0: everything between admission and the outcome. Engine thread. Returns
 * the target's status, which is PL_OK also for a reply that was cancelled. */
pl_status pl__solo_run(pl_engine *engine, pl_stream *stream, pl_outcome *outcome);

/* Count prompt tokens that were run. */
void pl__engine_count_prompt(pl_engine *engine, size_t tokens);

#endif
