/* A pool of threads that share loops. */
#ifndef PL_BASE_THREADS_H
#define PL_BASE_THREADS_H

#include "base/status.h"

typedef struct pl_pool pl_pool;

/* One task of a loop. thread is 0..pool threads - 1 (for per-thread scratch); the caller is thread 0. */
typedef void pl_task_fn(void *arg, size_t task, int thread);

/* A pool of `threads` in all, the calling thread counted (1 = no thread is made). PL_EINVAL, PL_ENOMEM. */
pl_status pl_pool_open(pl_pool **pool, int threads, pl_error *err);
void pl_pool_close(pl_pool *pool);
int pl_pool_threads(const pl_pool *pool);

/* Run fn(arg, task, thread) for task 0..tasks-1, in no fixed order, and return when all are done; what they wrote is
 * then visible. Which thread runs which task must not reach a result. One loop at a time, from the thread that owns the
 * pool; a task must not start another. */
void pl_pool_run(pl_pool *pool, size_t tasks, pl_task_fn *fn, void *arg);

/* Hardware threads this process may run on (affinity and cgroup quota counted), at least 1. */
int pl_cpu_count(void);

#endif
