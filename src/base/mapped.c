#include "base/mapped.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Fixed places, because a handler may look at any moment: `begin` is set last and cleared first, so that a place with
 * a begin is whole. */
enum { PLACES = 1024 };
static struct {
    atomic_bool taken;
    atomic_uintptr_t begin;
    size_t size;
    char *name;
} places[PLACES];

const char *pl_mapped_name(const void *address, size_t *size)
{
    uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < PLACES; i++) {
        uintptr_t begin = atomic_load(&places[i].begin);
        if (begin && at >= begin && at - begin < places[i].size) {
            *size = places[i].size;
            return places[i].name;
        }
    }
    return NULL;
}

void pl__mapped_add(const void *data, size_t size, const char *path)
{
    char *name = strdup(path);
    for (int i = 0; name && i < PLACES; i++)
        if (!atomic_exchange(&places[i].taken, true)) {
            places[i].size = size;
            places[i].name = name;
            atomic_store(&places[i].begin, (uintptr_t)data);
            return;
        }
    free(name);
}

void pl__mapped_remove(const void *data)
{
    for (int i = 0; i < PLACES; i++)
        if (atomic_load(&places[i].begin) == (uintptr_t)data) {
            atomic_store(&places[i].begin, 0);
            free(places[i].name);
            atomic_store(&places[i].taken, false);
            return;
        }
}
