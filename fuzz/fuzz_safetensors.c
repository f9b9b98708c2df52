/* The header of a safetensors shard. The whole input is the file. */
#include "checkpoint/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err;
    pl_st_header h;
    if (pl_safetensors_parse(&h, data, size, "fuzz", &err) != PL_OK)
        return 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < h.names.count; i++) {
        if (h.tensor[i].begin > h.tensor[i].end || h.tensor[i].end > size - h.data)
            abort();
        if (pl__names_find(&h.names, pl__names_at(&h.names, i)) != i)
            abort();
        sum += h.tensor[i].end - h.tensor[i].begin;
    }
    if (sum != size - h.data)
        abort();
    pl_safetensors_free(&h);
    return 0;
}
