/* A growable list of token ids that carries its own cap. */
#ifndef PL_TEXT_IDS_H
#define PL_TEXT_IDS_H

#include "base/status.h"

typedef struct pl_ids {
    int32_t *data; /* len ids, all >= 0; NULL while empty and never written */
    size_t len;
    size_t room; /* private: ids allocated */
    size_t cap;  /* most ids it may ever hold */
} pl_ids;

/* The cap of a list whose owner has no tighter one: 16 Mi ids (64 MiB). */
enum { PL_IDS_MAX = 16 << 20 };

/* An empty list of at most cap ids. Nothing is allocated until the first append. */
void pl_ids_init(pl_ids *ids, size_t cap);

/* Free the ids; the list is empty and usable afterwards. */
void pl_ids_free(pl_ids *ids);

/* Forget the content, keep the allocation. */
void pl_ids_clear(pl_ids *ids);

/* Append n ids. PL_ELIMIT past the cap, PL_ENOMEM without memory; the list is unchanged on failure. */
pl_status pl_ids_add(pl_ids *ids, const int32_t *add, size_t n, pl_error *err);
pl_status pl_ids_push(pl_ids *ids, int32_t id, pl_error *err);

#endif
