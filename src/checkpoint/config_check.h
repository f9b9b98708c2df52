/* Private to this folder: the lists of a config as they were read, and the check of all fields against one another. */
#ifndef PL_CHECKPOINT_CONFIG_CHECK_H
#define PL_CHECKPOINT_CONFIG_CHECK_H

#include "checkpoint/config.h"

typedef struct pl__config_lists {
    int64_t ratio[PL_MAX_LAYERS], kv[PL_MAX_LAYERS], index[PL_MAX_LAYERS];
    int ratios, kvs, indexes; /* how many of each */
    int engram_rows;          /* entries of engram_num_embeddings */
} pl__config_lists;

/* Check every field against the others and fill the derived ones (ratio, kv_owner, index_owner). PL_EFORMAT. */
pl_status pl__config_check(pl_config *config, const pl__config_lists *lists, const char *where, pl_error *err);

#endif
