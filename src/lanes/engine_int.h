/* Inside of the engine: what its thread and its callers share. */
#ifndef PL_LANES_ENGINE_INT_H
#define PL_LANES_ENGINE_INT_H

#include "lanes/core.h"
#include "lanes/engine.h"
#include "lanes/queue.h"

struct pl_engine {
    pl__core core; /* the engine thread's, but for core.abort and what is fixed at open */
    int queue_most;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows; taken before a stream's lock, never after */
    pthread_cond_t work;
    pl__queue queue;
    pl_stream **running; /* [slots] in lanes; NULL entries are free */
    bool draining, closing;
    pl_error fault; /* status PL_OK while there is none */
    pl_engine_counts counts;
};

#endif
