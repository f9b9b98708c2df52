#include "base/arena.h"

#include "base/num.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

size_t pl_arena_need(size_t n)
{
    size_t up;
    if (!pl_add_size(n, PL_ARENA_ALIGN - 1, &up))
        return SIZE_MAX;
    return up & ~(size_t)(PL_ARENA_ALIGN - 1);
}

pl_status pl_arena_open(pl_arena *arena, size_t size, const char *what, pl_error *err)
{
    *arena = (pl_arena){0};
    if (!size)
        return PL_OK;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED)
        return pl_fail(err, PL_ENOMEM, "%s: %zu bytes could not be reserved: %s", what, size, strerror(errno));
    arena->base = base;
    arena->size = size;
    return PL_OK;
}

void pl_arena_close(pl_arena *arena)
{
    if (arena->base)
        munmap(arena->base, arena->size);
    *arena = (pl_arena){0};
}

void *pl_arena_take(pl_arena *arena, size_t n)
{
    size_t need = pl_arena_need(n);
    if (need > arena->size - arena->used)
        return NULL;
    void *p = arena->base + arena->used;
    arena->used += need;
    return p;
}
