/* Memory that is planned and reserved once, then handed out in order and freed as a whole. */
#ifndef PL_BASE_ARENA_H
#define PL_BASE_ARENA_H

#include "base/status.h"

typedef struct pl_arena {
    unsigned char *base;
    size_t size;
    size_t used;
} pl_arena;

/* Every block starts on a 64-byte line. */
enum { PL_ARENA_ALIGN = 64 };

/* Bytes that a block of n takes in an arena (rounded up to whole lines); SIZE_MAX when it does not fit a size. */
size_t pl_arena_need(size_t n);

/* Reserve size bytes, zeroed and resident: what was planned for is there, and using it never waits for a page.
 * PL_ENOMEM. */
pl_status pl_arena_open(pl_arena *arena, size_t size, const char *what, pl_error *err);
void pl_arena_close(pl_arena *arena);

/* The next n bytes, zeroed, 64-byte aligned; NULL when the arena is spent. */
void *pl_arena_take(pl_arena *arena, size_t n);

#endif
