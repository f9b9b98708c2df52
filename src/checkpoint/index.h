/* model.safetensors.index.json: which shard holds which tensor. */
#ifndef PL_CHECKPOINT_INDEX_H
#define PL_CHECKPOINT_INDEX_H

#include "checkpoint/names.h"

enum { PL_MAX_INDEX_BYTES = 64 * 1024 * 1024, PL_MAX_SHARDS = 4096 };

typedef struct pl_index {
    pl__names tensors;  /* in file order */
    uint32_t *shard_of; /* per tensor: number in shards */
    size_t room;        /* private */
    pl__names shards;   /* file names */
    uint64_t total;     /* metadata.total_size; 0 when there is none */
} pl_index;

/* Parse the index text. A duplicate tensor, a shard name that is no plain file name ending in .safetensors (a slash,
 * "..", an empty name, a control byte), or anything else than {"weight_map": {TEXT: TEXT}} with optional metadata is
 * PL_EFORMAT. PL_ELIMIT, PL_ENOMEM. On failure the index is already freed. */
pl_status pl_index_parse(pl_index *index, const char *json, size_t len, const char *where, pl_error *err);

/* The index of a single file that has none: no tensors yet, one shard. */
pl_status pl_index_single(pl_index *index, const char *shard, pl_error *err);

/* Add a tensor. PL_EFORMAT when it is there already, PL_ELIMIT, PL_ENOMEM. */
pl_status pl_index_add(pl_index *index, const char *name, size_t shard, const char *where, pl_error *err);
void pl_index_free(pl_index *index);

#endif
