#include "checkpoint/names.h"

#include <stdlib.h>
#include <string.h>

void pl__names_init(pl__names *names, size_t max, const char *what)
{
    *names = (pl__names){.max = max};
    pl_buf_init(&names->text, max * (PL__MAX_NAME + 1) < UINT32_MAX ? max * (PL__MAX_NAME + 1) : UINT32_MAX, what);
}

void pl__names_free(pl__names *names)
{
    pl_buf_free(&names->text);
    free(names->offset);
    free(names->slot);
    names->offset = names->slot = NULL;
    names->count = names->room = names->slots = 0;
}

static uint64_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a, then a final mix so that the low bits depend on all of it */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93;
    return h ^ h >> 32;
}

/* The slot that holds the name, or the free one where it would go. slots is a power of two, never full. */
static size_t seek(const pl__names *names, const char *name)
{
    size_t i = hash(name) & (names->slots - 1);
    while (names->slot[i] && strcmp(pl__names_at(names, names->slot[i] - 1), name) != 0)
        i = (i + 1) & (names->slots - 1);
    return i;
}

size_t pl__names_slots(size_t count)
{
    size_t slots = 0;
    while (slots < 2 * count)
        slots = slots ? slots * 2 : 128;
    return slots;
}

static pl_status grow(pl__names *names, pl_error *err)
{
    size_t room = names->room ? names->room * 2 : 64, slots = pl__names_slots(room);
    uint32_t *offset = realloc(names->offset, room * sizeof *offset);
    if (offset) {
        names->offset = offset;
        names->room = room;
    }
    uint32_t *slot = offset ? calloc(slots, sizeof *slot) : NULL;
    if (!slot)
        return pl_fail(err, PL_ENOMEM, "no memory for %zu names of %s", room, names->text.name);
    free(names->slot);
    names->slot = slot;
    names->slots = slots;
    for (size_t i = 0; i < names->count; i++)
        slot[seek(names, pl__names_at(names, i))] = (uint32_t)i + 1;
    return PL_OK;
}

pl_status pl__names_add(pl__names *names, const char *where, const char *name, size_t *number, bool *fresh,
                        pl_error *err)
{
    if (names->slots < 2 * (names->count + 1))
        PL_TRY(grow(names, err));
    size_t i = seek(names, name);
    *fresh = names->slot[i] == 0;
    if (*fresh) {
        if (names->count == names->max)
            return pl_fail(err, PL_ELIMIT, "%s: expected at most %zu %s, found more", where, names->max,
                           names->text.name);
        size_t at = names->text.len;
        PL_TRY(pl_buf_add(&names->text, name, strlen(name) + 1, err));
        names->offset[names->count] = (uint32_t)at;
        names->slot[i] = (uint32_t)++names->count;
    }
    *number = names->slot[i] - 1;
    return PL_OK;
}

size_t pl__names_find(const pl__names *names, const char *name)
{
    if (!names->count)
        return SIZE_MAX;
    uint32_t found = names->slot[seek(names, name)];
    return found ? found - 1 : SIZE_MAX;
}

const char *pl__names_at(const pl__names *names, size_t number)
{
    return names->text.data + names->offset[number];
}

size_t pl__names_bytes(const pl__names *names)
{
    return names->text.len + names->count * sizeof *names->offset + names->slots * sizeof *names->slot;
}
