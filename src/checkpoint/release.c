/* The tensors of a folder against the inventory of its config. */
#include "checkpoint/open.h"

#include "checkpoint/safetensors.h"
#include "checkpoint/scan.h"

static bool same_shape(const pl_item *item, const pl__entry *entry)
{
    return entry->rank == item->rank && entry->dim[0] == item->dim[0] &&
           (item->rank < 2 || entry->dim[1] == item->dim[1]);
}

static pl_status match(void *arg, const pl_item *item, pl_error *err)
{
    pl_checkpoint *c = arg;
    char expected[64], found[64];
    pl_shape_text(item->rank, item->dim, expected);
    pl__entry *entry = pl__entry_find(c, item->name);
    if (!entry && item->optional)
        return PL_OK;
    if (!entry)
        return pl_fail_param(err, PL_EFORMAT, item->name, "%s: tensor %s: expected %s %s, found none", c->index_path,
                             item->name, pl_dtype_name(item->dtype), expected);
    if (entry->type != item->dtype || !same_shape(item, entry))
        return pl_fail_param(err, PL_EFORMAT, item->name, "%s: tensor %s: expected %s %s, found %s %s",
                             pl__entry_path(c, entry), item->name, pl_dtype_name(item->dtype), expected,
                             pl_st_type_name(entry->type), pl_shape_text(entry->rank, entry->dim, found));
    entry->role = (uint8_t)item->role;
    entry->part = (uint8_t)item->part;
    entry->flags |= PL__KNOWN;
    return PL_OK;
}

pl_status pl__release_match(pl_checkpoint *checkpoint, pl_error *err)
{
    PL_TRY(pl_inventory_each(&checkpoint->config, match, checkpoint, err));
    for (size_t i = 0; i < checkpoint->index.tensors.count; i++) {
        pl__entry *entry = &checkpoint->entry[i];
        const char *name = pl__entry_name(checkpoint, entry);
        if (entry->flags & PL__KNOWN)
            continue;
        if (!pl_inventory_ignores(name)) {
            char shown[100];
            pl__printable(name, shown, sizeof shown);
            return pl_fail_param(err, PL_EFORMAT, shown, "%s: tensor %s: the config has no such tensor",
                                 pl__entry_path(checkpoint, entry), shown);
        }
        entry->part = PL_PART_UNUSED;
    }
    return PL_OK;
}

void pl_tally_checkpoint(const pl_checkpoint *checkpoint, pl_tally *tally)
{
    *tally = (pl_tally){0};
    for (size_t i = 0; i < checkpoint->index.tensors.count; i++)
        pl_tally_add(tally, (pl_part)checkpoint->entry[i].part, checkpoint->entry[i].bytes);
}
