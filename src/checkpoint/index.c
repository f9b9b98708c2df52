#include "checkpoint/index.h"

#include "checkpoint/config.h"
#include "checkpoint/scan.h"

#include <stdlib.h>
#include <string.h>

static void init(pl_index *index)
{
    *index = (pl_index){0};
    pl__names_init(&index->tensors, PL_MAX_TENSORS, "tensors");
    pl__names_init(&index->shards, PL_MAX_SHARDS, "shards");
}

void pl_index_free(pl_index *index)
{
    pl__names_free(&index->tensors);
    pl__names_free(&index->shards);
    free(index->shard_of);
    *index = (pl_index){0};
}

pl_status pl_index_single(pl_index *index, const char *shard, pl_error *err)
{
    size_t number;
    bool fresh;
    init(index);
    return pl__names_add(&index->shards, shard, shard, &number, &fresh, err);
}

pl_status pl_index_add(pl_index *index, const char *name, size_t shard, const char *where, pl_error *err)
{
    size_t number;
    bool fresh;
    PL_TRY(pl__names_add(&index->tensors, where, name, &number, &fresh, err));
    if (!fresh) {
        char shown[100];
        pl__printable(name, shown, sizeof shown);
        return pl_fail_param(err, PL_EFORMAT, shown, "%s: tensor %s: listed twice", where, shown);
    }
    if (number >= index->room) {
        size_t room = index->room ? index->room * 2 : 256;
        uint32_t *grown = realloc(index->shard_of, room * sizeof *grown);
        if (!grown)
            return pl_fail(err, PL_ENOMEM, "%s: no memory for %zu tensors", where, room);
        index->shard_of = grown;
        index->room = room;
    }
    index->shard_of[number] = (uint32_t)shard;
    return PL_OK;
}

/* A plain name of a file in the same folder. */
static bool is_plain(const char *shard)
{
    static const char ending[] = ".safetensors";
    size_t n = strlen(shard);
    if (n <= strlen(ending) || strcmp(shard + n - strlen(ending), ending) != 0 || shard[0] == '.')
        return false;
    for (; *shard; shard++)
        if (*shard == '/' || *shard == '\\' || (unsigned char)*shard < 32 || *shard == 127)
            return false;
    return true;
}

static pl_status scan_map(pl_index *index, pl__scan *s)
{
    PL_TRY(pl__scan_expect(s, '{'));
    if (pl__scan_take(s, '}'))
        return PL_OK;
    do {
        char name[PL__MAX_NAME + 1], shard[PL__MAX_NAME + 1];
        PL_TRY(pl__scan_string(s, name, sizeof name));
        PL_TRY(pl__scan_expect(s, ':'));
        PL_TRY(pl__scan_string(s, shard, sizeof shard));
        if (!is_plain(shard)) {
            char tensor[80], shown[100];
            pl__printable(name, tensor, sizeof tensor);
            return pl_fail_param(
                s->err, PL_EFORMAT, tensor,
                "%s: tensor %s: expected the plain name of a .safetensors file in the same folder, found "
                "\"%s\"",
                s->where, tensor, pl__printable(shard, shown, sizeof shown));
        }
        size_t number;
        bool fresh;
        PL_TRY(pl__names_add(&index->shards, s->where, shard, &number, &fresh, s->err));
        PL_TRY(pl_index_add(index, name, number, s->where, s->err));
    } while (pl__scan_take(s, ','));
    return pl__scan_expect(s, '}');
}

/* Of the metadata only total_size is read, and only when it is a whole number; it is bookkeeping. */
static pl_status scan_metadata(pl_index *index, pl__scan *s)
{
    if (!pl__scan_take(s, '{'))
        return pl__scan_skip(s);
    if (pl__scan_take(s, '}'))
        return PL_OK;
    do {
        char key[PL__MAX_NAME + 1];
        PL_TRY(pl__scan_string(s, key, sizeof key));
        PL_TRY(pl__scan_expect(s, ':'));
        (void)pl__scan_take(s, ' '); /* to the value */
        const char *value = s->p;
        PL_TRY(pl__scan_skip(s));
        pl_error unused;
        pl__scan number = {.start = value, .p = value, .end = s->p, .where = s->where, .err = &unused};
        uint64_t total;
        if (strcmp(key, "total_size") == 0 && pl__scan_uint(&number, &total) == PL_OK && number.p == number.end)
            index->total = total;
    } while (pl__scan_take(s, ','));
    return pl__scan_expect(s, '}');
}

static pl_status scan_index(pl_index *index, pl__scan *s)
{
    bool map = false;
    PL_TRY(pl__scan_expect(s, '{'));
    do {
        char key[PL__MAX_NAME + 1];
        PL_TRY(pl__scan_string(s, key, sizeof key));
        PL_TRY(pl__scan_expect(s, ':'));
        if (strcmp(key, "weight_map") == 0) {
            if (map)
                return pl__scan_fail(s, "one weight_map");
            map = true;
            PL_TRY(scan_map(index, s));
        } else if (strcmp(key, "metadata") == 0)
            PL_TRY(scan_metadata(index, s));
        else
            PL_TRY(pl__scan_skip(s));
    } while (pl__scan_take(s, ','));
    PL_TRY(pl__scan_expect(s, '}'));
    PL_TRY(pl__scan_end(s));
    return map ? PL_OK : pl_fail(s->err, PL_EFORMAT, "%s: expected a weight_map, found none", s->where);
}

pl_status pl_index_parse(pl_index *index, const char *json, size_t len, const char *where, pl_error *err)
{
    init(index);
    if (len > PL_MAX_INDEX_BYTES)
        return pl_fail(err, PL_ELIMIT, "%s: %zu bytes, the cap is %d", where, len, PL_MAX_INDEX_BYTES);
    const char *text = json ? json : "";
    pl__scan s = {.start = text, .p = text, .end = text + len, .where = where, .err = err};
    pl_status status = scan_index(index, &s);
    if (status != PL_OK)
        pl_index_free(index);
    return status;
}
