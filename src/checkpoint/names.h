/* Private to this folder: a set of names, numbered in order of arrival, found by hash. */
#ifndef PL_CHECKPOINT_NAMES_H
#define PL_CHECKPOINT_NAMES_H

#include "base/buf.h"

typedef struct pl__names {
    pl_buf text;      /* the names, each with its NUL */
    uint32_t *offset; /* of name i in text */
    uint32_t *slot;   /* hash table: 1 + number of the name, 0 when free */
    size_t count, room, slots, max;
} pl__names;

enum { PL__MAX_NAME = 255 }; /* bytes of one name */

/* An empty set of at most max names. Nothing is allocated yet. */
void pl__names_init(pl__names *names, size_t max, const char *what);
void pl__names_free(pl__names *names);

/* Add a name of at most PL__MAX_NAME bytes. *number is its number; *fresh is false when it was there already (then
 * nothing changes). where: the file, for messages. PL_ENOMEM, PL_ELIMIT. */
pl_status pl__names_add(pl__names *names, const char *where, const char *name, size_t *number, bool *fresh,
                        pl_error *err);

/* The number of a name, SIZE_MAX when it is not there. */
size_t pl__names_find(const pl__names *names, const char *name);
const char *pl__names_at(const pl__names *names, size_t number);

/* Slots of the hash table for so many names. */
size_t pl__names_slots(size_t count);

/* Bytes of memory in use (what was reserved for growth and never touched costs nothing). */
size_t pl__names_bytes(const pl__names *names);

#endif
