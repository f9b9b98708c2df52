#include "base/thread.h"

enum { STACK_BYTES = (2048 - 64) << 10 };

int pl_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc)
        return rc;
    rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (rc == 0)
        rc = pthread_create(thread, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return rc;
}
