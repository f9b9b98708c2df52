#include "checkpoint/synth.h"

#include "base/file.h"
#include "base/num.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/synth_text.h"
#include "checkpoint/synth_tokenizer.h"
#include "checkpoint/synth_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, TOKENIZER_CAP = 64 << 20, MADE_CAP = 64 << 20 };

typedef struct writer {
    const pl_synth *synth;
    const pl_config *config;
    int shards;
    pl_item *item; /* of the shard that is being collected */
    size_t items, room;
    unsigned char *chunk;
    pl_buf map; /* the index's weight_map */
    uint64_t done, total;
    pl_buf made; /* paths of what was made, each with its NUL, folders first: a failure takes them back */
    int folders; /* how many of them are folders */
} writer;

static char *path_in(const writer *w, const char *name, pl_error *err)
{
    char *path = pl_path_join(w->synth->out, name);
    if (!path)
        pl_fail(err, PL_ENOMEM, "%s: no memory for a path", w->synth->out);
    return path;
}

static pl_status note_made(writer *w, const char *path, pl_error *err)
{
    return pl_buf_add(&w->made, path, strlen(path) + 1, err);
}

/* Take back what was made: the files, then the folders, the inner ones first. A folder that holds something else
 * stays. */
static void undo(const writer *w)
{
    const char *begin = w->made.data, *files = begin;
    for (int i = 0; i < w->folders; i++)
        files += strlen(files) + 1;
    for (const char *p = files; begin && p < begin + w->made.len; p += strlen(p) + 1)
        unlink(p);
    for (int last = w->folders - 1; last >= 0; last--) {
        const char *p = begin;
        for (int i = 0; i < last; i++)
            p += strlen(p) + 1;
        rmdir(p);
    }
}

static pl_status put_file(writer *w, const char *name, const pl_buf *text, pl_error *err)
{
    char *path = path_in(w, name, err);
    if (!path)
        return PL_ENOMEM;
    size_t before = w->made.len;
    pl_status status = note_made(w, path, err);
    if (status == PL_OK)
        status = pl_file_put(path, text->data, text->len, err);
    if (status != PL_OK)
        w->made.len = before;
    free(path);
    return status;
}

static void shard_name(int shard, int shards, char out[64])
{
    snprintf(out, 64, "model-%05d-of-%05d.safetensors", shard + 1, shards);
}

/* Place in the shard: Engram rows first, as in the release, their scales next where that keeps the rest aligned, then
 * the wider types, so that every value lies on a multiple of its size. */
static int place(const pl_item *item)
{
    if (item->role == PL_ROLE_TABLE)
        return 0;
    if (item->role == PL_ROLE_TABLE_SCALE)
        return item->bytes % 8 == 0 ? 1 : 4;
    return item->dtype == PL_F32 ? 2 : item->dtype == PL_BF16 ? 3 : 4;
}

static pl_status write_header(writer *w, const char *name, pl_file_out *file, pl_error *err)
{
    pl_buf text;
    pl_buf_init(&text, PL_MAX_HEADER_BYTES, "shard header");
    static const char start[] = "\0\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}"; /* 8 bytes for the length */
    pl_status status = pl_buf_add(&text, start, sizeof start - 1, err);
    uint64_t at = 0;
    for (int p = 0; p <= 4; p++)
        for (size_t i = 0; i < w->items && status == PL_OK; i++) {
            const pl_item *item = &w->item[i];
            char shape[64];
            if (place(item) != p)
                continue;
            status = pl_buf_addf(&text, err, ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}",
                                 item->name, pl_dtype_name(item->dtype), pl_shape_text(item->rank, item->dim, shape),
                                 (unsigned long long)at, (unsigned long long)(at + item->bytes));
            at += item->bytes;
            if (status == PL_OK)
                status = pl_buf_addf(&w->map, err, "%s    \"%s\": \"%s\"", w->map.len ? ",\n" : "", item->name, name);
        }
    if (status == PL_OK)
        status = pl_buf_addc(&text, '}', err);
    while (status == PL_OK && text.len % 8)
        status = pl_buf_addc(&text, ' ', err);
    if (status == PL_OK) {
        uint64_t n = text.len - 8;
        for (int i = 0; i < 8; i++)
            text.data[i] = (char)(n >> (8 * i) & 255);
        status = pl_file_write(file, text.data, text.len, err);
    }
    pl_buf_free(&text);
    return status;
}

static pl_status write_tensor(writer *w, const pl_item *item, pl_file_out *file, pl_error *err)
{
    pl__values values;
    pl__values_init(&values, w->config, item, w->synth->seed);
    for (uint64_t at = 0; at < item->bytes; at += CHUNK) {
        size_t n = item->bytes - at < CHUNK ? (size_t)(item->bytes - at) : CHUNK;
        pl__values_fill(&values, at, w->chunk, n);
        PL_TRY(pl_file_write(file, w->chunk, n, err));
        w->done += n;
    }
    return PL_OK;
}

static pl_status write_shard(writer *w, pl_error *err)
{
    char name[64];
    pl_file_out file;
    shard_name(w->item[0].shard, w->shards, name);
    char *path = path_in(w, name, err);
    if (!path)
        return PL_ENOMEM;
    size_t before = w->made.len;
    pl_status status = note_made(w, path, err);
    if (status == PL_OK)
        status = pl_file_create(&file, path, err);
    free(path);
    if (status != PL_OK) {
        w->made.len = before;
        return status;
    }
    status = write_header(w, name, &file, err);
    for (int p = 0; p <= 4; p++)
        for (size_t i = 0; i < w->items && status == PL_OK; i++)
            if (place(&w->item[i]) == p)
                status = write_tensor(w, &w->item[i], &file, err);
    if (status == PL_OK)
        status = pl_file_commit(&file, err);
    else
        pl_file_abandon(&file);
    if (status != PL_OK)
        w->made.len = before; /* what stands under that name is not ours */
    w->items = 0;
    if (status == PL_OK && w->synth->progress)
        w->synth->progress(w->synth->progress_arg, "writing weights", w->done, w->total);
    return status;
}

static pl_status collect(void *arg, const pl_item *item, pl_error *err)
{
    writer *w = arg;
    if (w->items && w->item[0].shard != item->shard)
        PL_TRY(write_shard(w, err));
    if (w->items == w->room) {
        size_t room = w->room ? w->room * 2 : 256;
        pl_item *grown = realloc(w->item, room * sizeof *grown);
        if (!grown)
            return pl_fail(err, PL_ENOMEM, "no memory for %zu tensors of a shard", room);
        w->item = grown;
        w->room = room;
    }
    w->item[w->items++] = *item;
    return PL_OK;
}

static pl_status write_weights(writer *w, pl_error *err)
{
    PL_TRY(pl_inventory_each(w->config, collect, w, err));
    PL_TRY(write_shard(w, err));
    pl_buf text;
    pl_buf_init(&text, PL_MAX_INDEX_BYTES, "index");
    pl_status status =
        pl_buf_addf(&text, err, "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n  \"weight_map\": {\n",
                    (unsigned long long)w->total);
    if (status == PL_OK)
        status = pl_buf_add(&text, w->map.data, w->map.len, err);
    if (status == PL_OK)
        status = pl_buf_adds(&text, "\n  }\n}\n", err);
    if (status == PL_OK)
        status = put_file(w, "model.safetensors.index.json", &text, err);
    pl_buf_free(&text);
    return status;
}

static pl_status make_folder(writer *w, const char *path, pl_error *err)
{
    char *part = strdup(path);
    if (!part)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for a path", path);
    pl_status status = PL_OK;
    for (char *p = part; status == PL_OK && *p; p++) {
        bool last = p[1] == 0;
        if (!last && (p[1] != '/' || p[0] == '/'))
            continue;
        char kept = p[1];
        p[1] = 0;
        if (mkdir(part, 0777) == 0) {
            status = note_made(w, part, err);
            w->folders += status == PL_OK;
        } else if (errno != EEXIST)
            status = pl_fail(err, PL_EIO, "%s: cannot be made: %s", part, strerror(errno));
        p[1] = kept;
    }
    free(part);
    return status;
}

static pl_status check_folder(writer *w, pl_error *err)
{
    const char *out = w->synth->out;
    PL_TRY(make_folder(w, out, err));
    char *path = path_in(w, "config.json", err);
    if (!path)
        return PL_ENOMEM;
    bool taken = access(path, F_OK) == 0;
    free(path);
    if (taken)
        return pl_fail_param(err, PL_EINVAL, "out", "%s: expected a new folder, found a checkpoint (config.json)", out);
    struct statvfs disk;
    if (statvfs(out, &disk) != 0)
        return pl_fail(err, PL_EIO, "%s: %s", out, strerror(errno));
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (room < w->total)
        return pl_fail_param(err, PL_EIO, "out", "%s: expected room for %llu bytes, found %llu free", out,
                             (unsigned long long)w->total, (unsigned long long)room);
    return PL_OK;
}

/* Everything, config.json last: a folder without it is no checkpoint yet and may be written again. */
static pl_status write_all(writer *w, const pl_buf *tokenizer, const pl_buf *config_text, pl_error *err)
{
    PL_TRY(check_folder(w, err));
    PL_TRY(write_weights(w, err));
    PL_TRY(put_file(w, "tokenizer.json", tokenizer, err));
    pl_buf text;
    pl_buf_init(&text, PL_MAX_CONFIG_BYTES, "small files");
    pl_status status = pl__synth_tokenizer_config(w->config, &text, err);
    if (status == PL_OK)
        status = put_file(w, "tokenizer_config.json", &text, err);
    pl_buf_clear(&text);
    if (status == PL_OK)
        status = pl__synth_generation_config(w->config, &text, err);
    if (status == PL_OK)
        status = put_file(w, "generation_config.json", &text, err);
    pl_buf_free(&text);
    return status == PL_OK ? put_file(w, "config.json", config_text, err) : status;
}

static pl_status prepare(const pl_synth *synth, pl_config *config, pl_buf *tokenizer, pl_buf *config_text,
                         pl_error *err)
{
    int64_t classes = -1;
    PL_TRY(pl_config_parse(config, synth->config_json, synth->config_len, synth->where, err));
    PL_TRY(pl__synth_tokenizer(config, tokenizer, err));
    if (config->engrams)
        PL_TRY(synth->classes(synth->classes_arg, tokenizer->data, tokenizer->len, &classes, err));
    PL_TRY(pl__synth_config(synth->config_json, synth->config_len, classes, config_text, err));
    return pl_config_parse(config, config_text->data, config_text->len, "the config to be written", err);
}

pl_status pl_synth_write(const pl_synth *synth, pl_error *err)
{
    pl_config config;
    pl_tally tally;
    pl_buf tokenizer, config_text;
    pl_buf_init(&tokenizer, TOKENIZER_CAP, "tokenizer.json");
    pl_buf_init(&config_text, PL_MAX_CONFIG_BYTES, "config.json");
    pl_status status = prepare(synth, &config, &tokenizer, &config_text, err);
    if (status == PL_OK) {
        pl_tally_config(&config, &tally);
        writer w = {.synth = synth,
                    .config = &config,
                    .shards = pl_inventory_shards(&config),
                    .chunk = malloc(CHUNK),
                    .total = tally.total_bytes};
        pl_buf_init(&w.map, PL_MAX_INDEX_BYTES, "index");
        pl_buf_init(&w.made, MADE_CAP, "list of files");
        status = w.chunk ? write_all(&w, &tokenizer, &config_text, err)
                         : pl_fail(err, PL_ENOMEM, "no memory for a piece of a shard");
        if (status != PL_OK)
            undo(&w);
        free(w.chunk);
        free(w.item);
        pl_buf_free(&w.made);
        pl_buf_free(&w.map);
    }
    pl_buf_free(&tokenizer);
    pl_buf_free(&config_text);
    return status;
}
