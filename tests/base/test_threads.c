/* The pool: every task runs once, what it wrote is visible, and rounds may follow one another at any pace. */
#include "base/check.h"
#include "base/threads.h"

#include <stdatomic.h>

enum { TASKS = 1000 };

typedef struct tally {
    int runs[TASKS]; /* written by whichever thread has the task; plain ints, so that a race shows under TSan */
    _Atomic uint64_t threads_seen;
    int threads;
    _Atomic int bad_thread;
} tally;

static void count(void *arg, size_t task, int thread)
{
    tally *t = arg;
    t->runs[task]++;
    if (thread < 0 || thread >= t->threads)
        atomic_store(&t->bad_thread, 1);
    atomic_fetch_or(&t->threads_seen, (uint64_t)1 << thread);
}

static void every_task_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, TASKS};
    for (int threads = 1; threads <= 5; threads++) {
        pl_pool *pool;
        assert_int_equal(pl_pool_open(&pool, threads, NULL), PL_OK);
        assert_int_equal(pl_pool_threads(pool), threads);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            static tally t;
            memset(&t, 0, sizeof t);
            t.threads = threads;
            pl_pool_run(pool, sizes[s], count, &t);
            for (size_t i = 0; i < TASKS; i++)
                assert_int_equal(t.runs[i], i < sizes[s]);
            assert_int_equal(t.bad_thread, 0);
        }
        pl_pool_close(pool);
    }
}

/* Rounds back to back, each reading what the one before wrote: a lost or early round gives a wrong sum. */
static void rounds_see_the_round_before(void **state)
{
    (void)state;
    pl_pool *pool;
    assert_int_equal(pl_pool_open(&pool, 4, NULL), PL_OK);
    static tally t;
    memset(&t, 0, sizeof t);
    t.threads = 4;
    enum { ROUNDS = 3000 };
    for (int r = 0; r < ROUNDS; r++) {
        pl_pool_run(pool, 16, count, &t);
        if (r % 500 == 0)
            usleep(3000); /* long enough for the workers to fall asleep */
    }
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(t.runs[i], ROUNDS);
    pl_pool_close(pool);
}

static void closes_without_having_run(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        pl_pool *pool;
        assert_int_equal(pl_pool_open(&pool, 3, NULL), PL_OK);
        pl_pool_close(pool);
    }
    pl_pool_close(NULL);
}

static void refuses_odd_sizes(void **state)
{
    (void)state;
    pl_error err;
    pl_pool *pool;
    static const int bad[] = {0, -1, 1025, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(PL_EINVAL, &err, pl_pool_open(&pool, bad[i], &err));
        assert_string_equal(err.param, "threads");
        assert_null(pool);
    }
    assert_true(pl_cpu_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_once),
        cmocka_unit_test(rounds_see_the_round_before),
        cmocka_unit_test(closes_without_having_run),
        cmocka_unit_test(refuses_odd_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
