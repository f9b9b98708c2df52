#include "text/ids.h"

#include <stdlib.h>
#include <string.h>

void pl_ids_init(pl_ids *ids, size_t cap)
{
    *ids = (pl_ids){.cap = cap < SIZE_MAX / sizeof(int32_t) ? cap : SIZE_MAX / sizeof(int32_t)};
}

void pl_ids_free(pl_ids *ids)
{
    free(ids->data);
    pl_ids_init(ids, ids->cap);
}

void pl_ids_clear(pl_ids *ids)
{
    ids->len = 0;
}

static pl_status reserve(pl_ids *ids, size_t n, pl_error *err)
{
    if (n > ids->cap - ids->len)
        return pl_fail(err, PL_ELIMIT, "the text has more than %zu tokens", ids->cap);
    size_t need = ids->len + n;
    if (need <= ids->room)
        return PL_OK;
    size_t room = ids->room < 32 ? 64 : ids->room <= ids->cap / 2 ? ids->room * 2 : ids->cap;
    if (room < need)
        room = need;
    if (room > ids->cap)
        room = ids->cap;
    int32_t *data = realloc(ids->data, room * sizeof *data);
    if (!data)
        return pl_fail(err, PL_ENOMEM, "no memory for a list of %zu token ids", room);
    ids->data = data;
    ids->room = room;
    return PL_OK;
}

pl_status pl_ids_add(pl_ids *ids, const int32_t *add, size_t n, pl_error *err)
{
    if (n == 0)
        return PL_OK;
    PL_TRY(reserve(ids, n, err));
    memcpy(ids->data + ids->len, add, n * sizeof *add);
    ids->len += n;
    return PL_OK;
}

pl_status pl_ids_push(pl_ids *ids, int32_t id, pl_error *err)
{
    return pl_ids_add(ids, &id, 1, err);
}
