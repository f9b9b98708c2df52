/* Private to this folder: an open checkpoint while it is put together. */
#ifndef PL_CHECKPOINT_OPEN_H
#define PL_CHECKPOINT_OPEN_H

#include "base/arena.h"
#include "base/file.h"
#include "checkpoint/index.h"
#include "checkpoint/inventory.h"

enum {
    PL__LOADED = 1, /* its shard's header has it */
    PL__KNOWN = 2,  /* the inventory has it; otherwise it is one of the ignored */
    PL__WIDE = 4,   /* scales: a byte outside the exact range */
    PL__NAN = 8     /* scales: a byte 255 */
};

/* Entry i belongs to name i of the index. */
typedef struct pl__entry {
    const unsigned char *data;
    uint64_t bytes;
    int64_t dim[2];
    uint8_t type, rank, role, part, flags;
} pl__entry;

struct pl_checkpoint {
    char *dir;
    pl_config config;
    pl_index index;
    char *index_path; /* for messages: the index, or the single shard */
    char **path;      /* per shard */
    pl_map *map;      /* per shard */
    pl__entry *entry;
    size_t entry_room;
    pl_arena copies;
};

/* Compare all entries with the inventory: PL_EFORMAT for the first that is missing, unknown, or of another type or
 * shape. Fills role, part and PL__KNOWN. */
pl_status pl__release_match(pl_checkpoint *checkpoint, pl_error *err);

/* Read every scale byte. PL_EFORMAT for a NaN; PL__WIDE set and logged. */
pl_status pl__scales_check(pl_checkpoint *checkpoint, int threads, pl_progress_fn *progress, void *arg, pl_error *err);

/* The entry of a name, NULL when there is none. */
pl__entry *pl__entry_find(const pl_checkpoint *checkpoint, const char *name);
const char *pl__entry_name(const pl_checkpoint *checkpoint, const pl__entry *entry);
/* The path of the shard that holds it. */
const char *pl__entry_path(const pl_checkpoint *checkpoint, const pl__entry *entry);

#endif
