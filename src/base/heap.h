/* The C library's heap, held to what is in use: without this, freed memory stays with the process, and what it takes is
 * no longer what was planned. */
#ifndef PL_BASE_HEAP_H
#define PL_BASE_HEAP_H

/* For a program, before its first thread: one heap for all threads, and blocks from 128 KiB up as mappings of their own
 * for good. (glibc otherwise keeps a heap a thread, and after a freed block of many megabytes takes blocks of that size
 * from the heap, where they stay.) A library leaves this to its program. */
void pl_heap_fix(void);

/* Give free pages back to the system. Any thread; others that allocate wait meanwhile, some milliseconds at most: for
 * the end of something large, not for every request. */
void pl_heap_trim(void);

#endif
