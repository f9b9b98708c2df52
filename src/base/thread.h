/* Starting a thread. */
#ifndef PL_BASE_THREAD_H
#define PL_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create, with a stack that is smaller than a huge page of 2 MiB: where the system backs everything with
 * such pages, a thread of the usual 8 MiB takes one at its first touch, of which it needs a hundredth. No function of
 * ours needs a megabyte of stack, nested JSON at its caps included. 0 or the error's number. */
int pl_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg);

#endif
