#include "base/threads.h"

#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A loop is published by a new `open` word: its round and how many of its tasks nobody has taken yet. A task is taken
 * by lowering that count, so whoever took one knows that its loop is still running and may read fn, arg and tasks; a
 * worker that comes late finds nothing to take. The loop ends with its last task, not with the last worker: one that
 * lost its processor in between holds nobody up. Workers spin briefly for the next loop (they follow one another
 * within microseconds while a reply is made), then sleep on the condition. */
enum { SPINS = 4000, MAX_THREADS = 1024 };
#define ROUND_ONE (UINT64_C(1) << 32)

struct pl_pool {
    int threads;
    pthread_t *workers; /* threads - 1 */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic uint64_t open; /* round << 32 | tasks not taken */
    _Atomic bool quit;
    pl_task_fn *fn;
    void *arg;
    size_t tasks;        /* below 2^32 */
    _Atomic size_t done; /* tasks finished in this round */
};

typedef struct worker_arg {
    pl_pool *pool;
    int thread;
} worker_arg;

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take tasks until none is left; any round's, since a word with tasks in it is always the present one's. */
static void work(pl_pool *pool, int thread)
{
    uint64_t word = atomic_load_explicit(&pool->open, memory_order_acquire);
    while ((uint32_t)word) {
        if (!atomic_compare_exchange_weak_explicit(&pool->open, &word, word - 1, memory_order_acquire,
                                                   memory_order_acquire))
            continue;
        pool->fn(pool->arg, pool->tasks - (uint32_t)word, thread);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        word = atomic_load_explicit(&pool->open, memory_order_acquire);
    }
}

/* Wait for a round other than `seen`; its number. */
static uint32_t wait_round(pl_pool *pool, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t now = (uint32_t)(atomic_load_explicit(&pool->open, memory_order_acquire) >> 32);
        if (now != seen)
            return now;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->lock);
    uint32_t now;
    while ((now = (uint32_t)(atomic_load_explicit(&pool->open, memory_order_acquire) >> 32)) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return now;
}

static void *worker_main(void *p)
{
    worker_arg arg = *(worker_arg *)p;
    free(p);
    uint32_t seen = 0;
    for (;;) {
        seen = wait_round(arg.pool, seen);
        if (atomic_load(&arg.pool->quit))
            return NULL;
        work(arg.pool, arg.thread);
    }
}

/* A new round of so many tasks; fn, arg, tasks and done are set before. */
static void publish(pl_pool *pool, size_t tasks)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t round = atomic_load_explicit(&pool->open, memory_order_relaxed) >> 32;
    atomic_store_explicit(&pool->open, (round + 1) * ROUND_ONE | tasks, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

pl_status pl_pool_open(pl_pool **out, int threads, pl_error *err)
{
    *out = NULL;
    if (threads < 1 || threads > MAX_THREADS)
        return pl_fail_param(err, PL_EINVAL, "threads", "threads: 1..%d expected, found %d", MAX_THREADS, threads);
    pl_pool *pool = calloc(1, sizeof *pool);
    pthread_t *workers = calloc((size_t)threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return pl_fail(err, PL_ENOMEM, "threads: no memory for a pool of %d", threads);
    }
    pool->workers = workers;
    pool->threads = 1;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (int i = 1; i < threads; i++) {
        worker_arg *arg = malloc(sizeof *arg);
        int rc = ENOMEM;
        if (arg) {
            *arg = (worker_arg){.pool = pool, .thread = i};
            rc = pl_thread_start(&workers[i - 1], worker_main, arg);
        }
        if (rc) {
            free(arg);
            pl_pool_close(pool);
            return pl_fail(err, PL_ENOMEM, "threads: thread %d of %d could not be started: %s", i + 1, threads,
                           strerror(rc));
        }
        pool->threads++;
    }
    *out = pool;
    return PL_OK;
}

void pl_pool_close(pl_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->quit, true);
    publish(pool, 0);
    for (int i = 1; i < pool->threads; i++)
        pthread_join(pool->workers[i - 1], NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    free(pool->workers);
    free(pool);
}

int pl_pool_threads(const pl_pool *pool)
{
    return pool->threads;
}

void pl_pool_run(pl_pool *pool, size_t tasks, pl_task_fn *fn, void *arg)
{
    if (pool->threads == 1 || tasks <= 1 || tasks > UINT32_MAX) {
        for (size_t i = 0; i < tasks; i++)
            fn(arg, i, 0);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    publish(pool, tasks);
    work(pool, 0);
    int spins = 0;
    while (atomic_load_explicit(&pool->done, memory_order_acquire) < tasks) {
        if (++spins < SPINS)
            pause_cpu();
        else
            sched_yield(); /* a worker lost its processor in the middle of a task: let it have this one */
    }
}

/* cgroup v2 quota of this process's own group, in whole CPUs rounded up; 0 when there is none to be read. */
static int cgroup_cpus(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f)
        return 0;
    long long quota = 0, period = 0;
    int n = fscanf(f, "%lld %lld", &quota, &period);
    fclose(f);
    return n == 2 && quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int pl_cpu_count(void)
{
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    int quota = cgroup_cpus();
    if (quota && quota < n)
        n = quota;
    return n < 1 ? 1 : n;
}
