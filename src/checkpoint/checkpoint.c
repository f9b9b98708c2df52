#include "checkpoint/checkpoint.h"

#include "base/log.h"
#include "checkpoint/open.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/scan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the table keeps of a tensor beside its name: its entry, its shard's number. */
static const size_t per_tensor = sizeof(pl__entry) + sizeof(uint32_t);

static const char index_name[] = "model.safetensors.index.json", single_name[] = "model.safetensors";

pl__entry *pl__entry_find(const pl_checkpoint *checkpoint, const char *name)
{
    size_t number = pl__names_find(&checkpoint->index.tensors, name);
    return number == SIZE_MAX ? NULL : &checkpoint->entry[number];
}

const char *pl__entry_name(const pl_checkpoint *checkpoint, const pl__entry *entry)
{
    return pl__names_at(&checkpoint->index.tensors, (size_t)(entry - checkpoint->entry));
}

const char *pl__entry_path(const pl_checkpoint *checkpoint, const pl__entry *entry)
{
    return checkpoint->path[checkpoint->index.shard_of[entry - checkpoint->entry]];
}

static pl_status no_memory(const pl_checkpoint *c, pl_error *err)
{
    return pl_fail(err, PL_ENOMEM, "%s: no memory for its tables", c->dir);
}

static pl_status load_index(pl_checkpoint *c, pl_error *err)
{
    c->index_path = pl_path_join(c->dir, index_name);
    if (!c->index_path)
        return no_memory(c, err);
    if (access(c->index_path, F_OK) == 0) {
        pl_buf text;
        pl_buf_init(&text, PL_MAX_INDEX_BYTES, c->index_path);
        pl_status status = pl_file_read(&text, c->index_path, err);
        if (status == PL_OK)
            status = pl_index_parse(&c->index, text.data, text.len, c->index_path, err);
        pl_buf_free(&text);
        return status;
    }
    free(c->index_path);
    c->index_path = pl_path_join(c->dir, single_name);
    if (!c->index_path)
        return no_memory(c, err);
    if (access(c->index_path, F_OK) != 0)
        return pl_fail(err, PL_ENOTFOUND, "%s: neither %s nor %s", c->dir, index_name, single_name);
    return pl_index_single(&c->index, single_name, err);
}

/* Does the resolved path lie inside the resolved folder? */
static bool is_inside(const char *path, const char *folder)
{
    char p[PATH_MAX], f[PATH_MAX];
    if (!realpath(path, p) || !realpath(folder, f))
        return false;
    size_t n = strlen(f);
    return strncmp(p, f, n) == 0 && (p[n] == '/' || (n == 1 && f[0] == '/'));
}

/* A shard is a file of the folder (a regular one: pl_map_open sees to that). A link may lead to another file of it, or,
 * as in the download cache of the Hugging Face tools (snapshots/REVISION/FILE -> ../../blobs/HASH), into the blobs
 * folder two levels up. */
static pl_status check_shard_file(const pl_checkpoint *c, const char *path, pl_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return pl_fail(err, errno == ENOENT ? PL_ENOTFOUND : PL_EIO, "%s: %s", path, strerror(errno));
    if (is_inside(path, c->dir))
        return PL_OK;
    char *blobs = pl_path_join(c->dir, "../../blobs");
    bool cached = blobs && is_inside(path, blobs);
    free(blobs);
    return cached ? PL_OK
                  : pl_fail(err, PL_EFORMAT, "%s: expected a file of this folder, found a link that leaves it", path);
}

static pl_status make_entries(pl_checkpoint *c, pl_error *err)
{
    size_t n = c->index.tensors.count;
    if (n <= c->entry_room)
        return PL_OK;
    c->entry = calloc(n, sizeof *c->entry);
    c->entry_room = n;
    return c->entry ? PL_OK : no_memory(c, err);
}

/* Enter the tensors of one shard's header into the table. */
static pl_status enter(pl_checkpoint *c, size_t shard, const pl_st_header *header, bool single, pl_error *err)
{
    const char *path = c->path[shard];
    for (size_t i = 0; single && i < header->names.count; i++)
        PL_TRY(pl_index_add(&c->index, pl__names_at(&header->names, i), shard, path, err));
    PL_TRY(make_entries(c, err));
    for (size_t i = 0; i < header->names.count; i++) {
        const char *name = pl__names_at(&header->names, i);
        pl__entry *entry = pl__entry_find(c, name);
        if (!entry || c->index.shard_of[entry - c->entry] != shard) {
            char shown[100];
            pl__printable(name, shown, sizeof shown);
            return pl_fail_param(err, PL_EFORMAT, shown, "%s: tensor %s: %s: expected %s, found it here", path, shown,
                                 index_name, entry ? pl__entry_path(c, entry) : "no such tensor");
        }
        const pl_st_tensor *t = &header->tensor[i];
        *entry = (pl__entry){.data = c->map[shard].data + header->data + t->begin,
                             .bytes = t->end - t->begin,
                             .dim = {t->dim[0], t->dim[1]},
                             .type = (uint8_t)t->type,
                             .rank = (uint8_t)t->rank,
                             .flags = PL__LOADED};
    }
    return PL_OK;
}

static pl_status load_shard(pl_checkpoint *c, size_t shard, bool single, pl_error *err)
{
    const char *path = c->path[shard];
    PL_TRY(check_shard_file(c, path, err));
    PL_TRY(pl_map_open(&c->map[shard], path, err));
    pl_st_header header;
    PL_TRY(pl_safetensors_parse(&header, c->map[shard].data, c->map[shard].size, path, err));
    pl_status status = enter(c, shard, &header, single, err);
    pl_safetensors_free(&header);
    return status;
}

static pl_status load_shards(pl_checkpoint *c, pl_error *err)
{
    size_t n = c->index.shards.count;
    bool single = c->index.tensors.count == 0;
    c->path = calloc(n ? n : 1, sizeof *c->path);
    c->map = calloc(n ? n : 1, sizeof *c->map);
    if (!c->path || !c->map)
        return no_memory(c, err);
    for (size_t i = 0; i < n; i++) {
        c->path[i] = pl_path_join(c->dir, pl__names_at(&c->index.shards, i));
        if (!c->path[i])
            return no_memory(c, err);
    }
    for (size_t i = 0; i < n; i++)
        PL_TRY(load_shard(c, i, single, err));
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->index.tensors.count; i++) {
        const pl__entry *entry = &c->entry[i];
        bytes += entry->bytes;
        if (entry->flags & PL__LOADED)
            continue;
        char shown[100];
        pl__printable(pl__entry_name(c, entry), shown, sizeof shown);
        return pl_fail_param(err, PL_EFORMAT, shown, "%s: tensor %s: expected in %s, which does not hold it",
                             c->index_path, shown, pl__entry_path(c, entry));
    }
    if (c->index.total && c->index.total != bytes)
        pl_log(PL_LOG_WARNING, "%s: metadata.total_size says %llu, the shards hold %llu bytes", c->index_path,
               (unsigned long long)c->index.total, (unsigned long long)bytes);
    return PL_OK;
}

static bool needs_copy(const pl__entry *e)
{
    if (!(e->flags & PL__KNOWN) || e->part == PL_PART_VISION)
        return false;
    size_t size = (size_t)pl_dtype_size((pl_dtype)e->type);
    return (uintptr_t)e->data % size != 0;
}

/* Kernels load BF16 and F32 values as such. */
static pl_status align(pl_checkpoint *c, pl_error *err)
{
    size_t need = 0, copies = 0;
    for (size_t i = 0; i < c->index.tensors.count; i++)
        if (needs_copy(&c->entry[i])) {
            need += pl_arena_need((size_t)c->entry[i].bytes);
            copies++;
        }
    if (!copies)
        return PL_OK;
    pl_log(PL_LOG_WARNING, "%s: %zu tensors lie unaligned in their files: %zu bytes are copied to memory", c->dir,
           copies, need);
    PL_TRY(pl_arena_open(&c->copies, need, "copies of unaligned tensors", err));
    for (size_t i = 0; i < c->index.tensors.count; i++) {
        pl__entry *e = &c->entry[i];
        if (!needs_copy(e))
            continue;
        void *copy = pl_arena_take(&c->copies, (size_t)e->bytes);
        if (!copy)
            return pl_fail(err, PL_EFAULT, "%s: the copies outgrew their plan", c->dir);
        memcpy(copy, e->data, (size_t)e->bytes);
        e->data = copy;
    }
    return PL_OK;
}

static pl_status open_all(pl_checkpoint *c, int threads, pl_progress_fn *progress, void *arg, pl_error *err)
{
    char *path = pl_path_join(c->dir, "config.json");
    if (!path)
        return no_memory(c, err);
    pl_status status = pl_config_load(&c->config, path, err);
    free(path);
    if (status != PL_OK)
        return status;
    PL_TRY(load_index(c, err));
    PL_TRY(load_shards(c, err));
    PL_TRY(pl__release_match(c, err));
    PL_TRY(pl__scales_check(c, threads, progress, arg, err));
    return align(c, err);
}

pl_status pl_checkpoint_open(pl_checkpoint **checkpoint, const char *dir, int threads, pl_progress_fn *progress,
                             void *arg, pl_error *err)
{
    *checkpoint = NULL;
    pl_checkpoint *c = calloc(1, sizeof *c);
    if (!c || !(c->dir = strdup(dir))) {
        free(c);
        return pl_fail(err, PL_ENOMEM, "%s: no memory to open it", dir);
    }
    pl_status status = open_all(c, threads, progress, arg, err);
    if (status == PL_OK)
        *checkpoint = c;
    else
        pl_checkpoint_close(c);
    return status;
}

void pl_checkpoint_close(pl_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->index.shards.count; i++) {
        if (checkpoint->map)
            pl_map_close(&checkpoint->map[i]);
        if (checkpoint->path)
            free(checkpoint->path[i]);
    }
    free(checkpoint->map);
    free(checkpoint->path);
    free(checkpoint->entry);
    pl_index_free(&checkpoint->index);
    pl_arena_close(&checkpoint->copies);
    free(checkpoint->index_path);
    free(checkpoint->dir);
    free(checkpoint);
}

const pl_config *pl_checkpoint_config(const pl_checkpoint *checkpoint)
{
    return &checkpoint->config;
}

const char *pl_checkpoint_dir(const pl_checkpoint *checkpoint)
{
    return checkpoint->dir;
}

/* The entry of a tensor that the model may read, NULL when there is none. */
static const pl__entry *find_known(const pl_checkpoint *checkpoint, const char *name, const char *ending)
{
    char full[PL__MAX_NAME + 1];
    int n = snprintf(full, sizeof full, "%s%s", name, ending);
    const pl__entry *e = n > 0 && (size_t)n < sizeof full ? pl__entry_find(checkpoint, full) : NULL;
    return e && (e->flags & PL__KNOWN) ? e : NULL;
}

pl_status pl_checkpoint_tensor(const pl_checkpoint *checkpoint, const char *name, pl_tensor *tensor, pl_error *err)
{
    const pl__entry *e = find_known(checkpoint, name, "");
    if (!e)
        return pl_fail_param(err, PL_ENOTFOUND, name, "%s: no tensor %s", checkpoint->dir, name);
    *tensor = (pl_tensor){.dtype = (pl_dtype)e->type,
                          .rank = e->rank,
                          .dim = {e->dim[0], e->dim[1]},
                          .data = e->data,
                          .bytes = (size_t)e->bytes};
    return PL_OK;
}

pl_status pl_checkpoint_mat(const pl_checkpoint *checkpoint, const char *name, pl_mat *mat, pl_error *err)
{
    const pl__entry *e = find_known(checkpoint, name, ".weight");
    const pl__entry *scale = e ? find_known(checkpoint, name, ".scale") : NULL;
    if (!e)
        e = find_known(checkpoint, name, "");
    if (!e)
        return pl_fail_param(err, PL_ENOTFOUND, name, "%s: no matrix %s", checkpoint->dir, name);
    if (e->role == PL_ROLE_TABLE || e->type == PL_F8_E8M0)
        return pl_fail_param(err, PL_EINVAL, name, "%s: %s is no matrix of weights", checkpoint->dir, name);
    static const pl_format format[] = {
        [PL_BF16] = PL_FMT_BF16, [PL_F32] = PL_FMT_F32, [PL_F8_E4M3] = PL_FMT_FP8, [PL_I8] = PL_FMT_FP4};
    *mat = (pl_mat){.format = format[e->type],
                    .out = e->rank == 1 ? 1 : (int)e->dim[0],
                    .in = (int)(e->rank == 1 ? e->dim[0] : e->dim[1]),
                    .data = e->data,
                    .scale = scale ? scale->data : NULL,
                    .wide = scale && (scale->flags & PL__WIDE)};
    if (e->type == PL_I8)
        mat->in *= 2;
    return PL_OK;
}

void pl_checkpoint_info_get(const pl_checkpoint *checkpoint, pl_checkpoint_info *info)
{
    *info = (pl_checkpoint_info){.shards = checkpoint->index.shards.count, .tensors = checkpoint->index.tensors.count};
    for (size_t i = 0; i < info->tensors; i++)
        info->bytes += checkpoint->entry[i].bytes;
    for (size_t i = 0; i < info->shards; i++)
        info->mapped += checkpoint->map[i].size;
    info->heap = pl__names_bytes(&checkpoint->index.tensors) + info->tensors * per_tensor + checkpoint->copies.used;
}

static pl_status add_name(void *arg, const pl_item *item, pl_error *err)
{
    (void)err;
    *(uint64_t *)arg += strlen(item->name) + 1 + sizeof(uint32_t) + per_tensor;
    return PL_OK;
}

uint64_t pl_checkpoint_table_bytes(const pl_config *config)
{
    uint64_t bytes = pl__names_slots((size_t)pl_inventory_count(config)) * sizeof(uint32_t);
    (void)pl_inventory_each(config, add_name, &bytes, NULL); /* add_name cannot fail */
    return bytes;
}
