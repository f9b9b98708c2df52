/* The shard index. No accepted shard name may leave the folder. */
#include "checkpoint/index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err;
    pl_index x;
    if (pl_index_parse(&x, (const char *)data, size, "fuzz", &err) != PL_OK)
        return 0;
    for (size_t i = 0; i < x.shards.count; i++) {
        const char *name = pl__names_at(&x.shards, i);
        if (!*name || *name == '.' || strchr(name, '/'))
            abort();
    }
    for (size_t i = 0; i < x.tensors.count; i++)
        if (x.shard_of[i] >= x.shards.count)
            abort();
    pl_index_free(&x);
    return 0;
}
