#include "base/heap.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { BLOCK = 128 << 10 /* glibc's own first values: naming them is what stops it from raising them */ };

void pl_heap_fix(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, BLOCK);
    mallopt(M_TRIM_THRESHOLD, BLOCK);
#endif
}

void pl_heap_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
