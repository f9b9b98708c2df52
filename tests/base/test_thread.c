/* A thread of ours: it runs, it can be joined, and its stack is too small for a huge page and large enough for us. */
#include "base/check.h"
#include "base/thread.h"

typedef struct seen {
    size_t stack;
    int sum;
} seen;

/* A frame of a kibibyte a level. */
static int descend(int levels)
{
    volatile char frame[1000];
    frame[0] = (char)levels;
    return levels ? descend(levels - 1) + (frame[0] == (char)levels) : 0;
}

static void *look(void *arg)
{
    seen *s = arg;
    pthread_attr_t attr;
    void *lowest;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &lowest, &s->stack);
        pthread_attr_destroy(&attr);
    }
    s->sum = descend(1000);
    return arg;
}

static void runs_on_a_stack_below_a_huge_page(void **state)
{
    (void)state;
    pthread_t thread;
    seen s = {0};
    void *result = NULL;
    assert_int_equal(pl_thread_start(&thread, look, &s), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &s);
    assert_int_equal(s.sum, 1000);
    assert_true(s.stack >= 1 << 20);
    assert_true(s.stack < 2 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_on_a_stack_below_a_huge_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
