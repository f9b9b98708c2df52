/* Finding the spellings of added tokens in a text: leftmost, then longest. */
#ifndef PL_TEXT_ADDED_H
#define PL_TEXT_ADDED_H

#include "base/status.h"

typedef struct pl__spelling {
    const char *bytes; /* owned by the tokenizer */
    uint32_t len;      /* at least 1 */
    int32_t id;
} pl__spelling;

typedef struct pl__added {
    pl__spelling *list; /* [count] in order of bytes, once sealed */
    size_t count, room;
    bool starts[256]; /* some spelling starts with this byte */
} pl__added;

/* Append one. PL_ENOMEM. */
pl_status pl__added_push(pl__added *added, pl__spelling spelling, pl_error *err);

/* Sort; returns an index i with list[i] and list[i + 1] spelled alike, or -1 when all differ. */
int64_t pl__added_seal(pl__added *added);
void pl__added_free(pl__added *added);

/* The first spelling in text at or behind *at: *at is moved to where it starts; NULL (and *at = len) when there is
 * none. Where several start at one place, the longest. */
const pl__spelling *pl__added_next(const pl__added *added, const char *text, size_t len, size_t *at);

/* The spelling with exactly these bytes, or NULL. */
const pl__spelling *pl__added_find(const pl__added *added, const char *bytes, size_t len);

#endif
