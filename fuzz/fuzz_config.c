/* config.json. What is accepted has an inventory of the promised size, of tensors that are not empty. */
#include "checkpoint/inventory.h"

#include <stdlib.h>

static pl_status check_item(void *arg, const pl_item *item, pl_error *err)
{
    (void)err;
    ++*(int64_t *)arg;
    if (item->dim[0] < 1 || (item->rank == 2 && item->dim[1] < 1) || item->bytes == 0 || item->bytes > INT64_MAX)
        abort();
    return PL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_config c;
    pl_error err;
    if (pl_config_parse(&c, (const char *)data, size, "fuzz", &err) != PL_OK)
        return 0;
    if (pl_inventory_count(&c) > 20000) /* walking a million names tells nothing new and takes a second */
        return 0;
    int64_t visited = 0;
    (void)pl_inventory_each(&c, check_item, &visited, NULL);
    if (visited != pl_inventory_count(&c))
        abort();
    return 0;
}
