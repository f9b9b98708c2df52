/* Small checkpoints that a test may spoil: read a folder into memory, change it, write it again. */
#ifndef PL_TESTS_CHECKPOINT_FIXTURE_H
#define PL_TESTS_CHECKPOINT_FIXTURE_H

#include "base/check.h"

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/synth.h"

#include <dirent.h>

#define SMALL_CONFIG "tests/checkpoint/small.json"

typedef struct fx_tensor {
    char name[PL__MAX_NAME + 1];
    char type[16];
    int rank;
    int64_t dim[2];
    unsigned char *data;
    size_t bytes;
} fx_tensor;

typedef struct fx {
    char dir[64]; /* the folder, in /tmp */
    char *config; /* text of config.json */
    fx_tensor *tensor;
    size_t tensors;
} fx;

/* How fx_write lays the folder out. Zero: one shard "model-00001-of-00001.safetensors" with its index. */
typedef struct fx_layout {
    bool single;       /* model.safetensors without an index */
    bool unaligned;    /* the header's length makes every tensor start on an odd address */
    size_t cut;        /* leave so many bytes at the shard's end out */
    size_t extra;      /* append so many zero bytes */
    const char *shard; /* in the index, instead of the true name */
    const char *add;   /* a tensor that only the index has */
    const char *drop;  /* a tensor that only the shard has */
} fx_layout;

static inline char *fx_path(const fx *f, const char *name)
{
    char *path = pl_path_join(f->dir, name);
    assert_non_null(path);
    return path;
}

static inline char *fx_read_text(const char *path)
{
    pl_buf text;
    pl_buf_init(&text, 64 << 20, "test file");
    assert_int_equal(pl_file_read(&text, path, NULL), PL_OK);
    return text.data;
}

static inline void fx_put(const fx *f, const char *name, const void *bytes, size_t n)
{
    char *path = fx_path(f, name);
    FILE *file = fopen(path, "wb"); /* plain: a test needs no flush to the disk */
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void fx_remove_folder(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char *path = pl_path_join(dir, e->d_name);
        unlink(path);
        free(path);
    }
    closedir(d);
    rmdir(dir);
}

static inline pl_status fx_classes(void *arg, const char *json, size_t len, int64_t *classes, pl_error *err)
{
    (void)arg, (void)json, (void)len, (void)err;
    *classes = 250;
    return PL_OK;
}

/* Write the synthetic checkpoint of a config into f->dir (made before). */
static inline pl_status fx_synth(const char *config_path, const char *dir, uint64_t seed, pl_error *err)
{
    char *config = fx_read_text(config_path);
    pl_synth synth = {.config_json = config,
                      .config_len = strlen(config),
                      .where = config_path,
                      .seed = seed,
                      .out = dir,
                      .classes = fx_classes};
    pl_status status = pl_synth_write(&synth, err);
    free(config);
    return status;
}

static inline void fx_load_shard(fx *f, const char *path)
{
    pl_map map;
    pl_error err = {0};
    pl_st_header header;
    assert_int_equal(pl_map_open(&map, path, &err), PL_OK);
    assert_int_equal(pl_safetensors_parse(&header, map.data, map.size, path, &err), PL_OK);
    f->tensor = realloc(f->tensor, (f->tensors + header.names.count + 8) * sizeof *f->tensor); /* 8: room to add */
    assert_non_null(f->tensor);
    for (size_t i = 0; i < header.names.count; i++) {
        const pl_st_tensor *s = &header.tensor[i];
        fx_tensor *t = &f->tensor[f->tensors++];
        *t = (fx_tensor){.rank = s->rank, .dim = {s->dim[0], s->dim[1]}, .bytes = (size_t)(s->end - s->begin)};
        snprintf(t->name, sizeof t->name, "%s", pl__names_at(&header.names, i));
        snprintf(t->type, sizeof t->type, "%s", pl_st_type_name(s->type));
        t->data = malloc(t->bytes + 1);
        assert_non_null(t->data);
        memcpy(t->data, map.data + header.data + s->begin, t->bytes);
    }
    pl_safetensors_free(&header);
    pl_map_close(&map);
}

/* Read all shards of a folder; f->dir becomes a fresh folder. */
static inline void fx_load(fx *f, const char *dir)
{
    *f = (fx){0};
    make_folder(f->dir);
    char *path = pl_path_join(dir, "config.json");
    f->config = fx_read_text(path);
    free(path);
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!strstr(e->d_name, ".safetensors") || strstr(e->d_name, ".json"))
            continue;
        path = pl_path_join(dir, e->d_name);
        fx_load_shard(f, path);
        free(path);
    }
    closedir(d);
}

static char fx_master[64];

static inline void fx_remove_master(void)
{
    fx_remove_folder(fx_master);
}

/* The small synthetic checkpoint, in memory. Written once a program. */
static inline void fx_small(fx *f)
{
    if (!fx_master[0]) {
        pl_error err;
        make_folder(fx_master);
        assert_int_equal(fx_synth(SMALL_CONFIG, fx_master, 1, &err), PL_OK);
        atexit(fx_remove_master);
    }
    fx_load(f, fx_master);
}

static inline fx_tensor *fx_find(fx *f, const char *name)
{
    for (size_t i = 0; i < f->tensors; i++)
        if (strcmp(f->tensor[i].name, name) == 0)
            return &f->tensor[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static inline void fx_drop(fx *f, const char *name)
{
    fx_tensor *t = fx_find(f, name);
    free(t->data);
    *t = f->tensor[--f->tensors];
}

/* Add a tensor of zeros (at most 8 a fixture). */
static inline void fx_add(fx *f, const char *name, const char *type, int rank, int64_t rows, int64_t cols, size_t bytes)
{
    fx_tensor *t = &f->tensor[f->tensors++];
    *t = (fx_tensor){.rank = rank, .dim = {rows, cols}, .bytes = bytes};
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->type, sizeof t->type, "%s", type);
    t->data = calloc(1, bytes + 1);
    assert_non_null(t->data);
}

static inline void fx_write_index(const fx *f, const fx_layout *l, const char *shard)
{
    pl_buf text;
    pl_buf_init(&text, 1 << 20, "index");
    assert_int_equal(pl_buf_adds(&text, "{\"metadata\":{\"x\":[1,{\"y\":null}]},\"weight_map\":{", NULL), PL_OK);
    for (size_t i = 0; i < f->tensors; i++)
        if (!l->drop || strcmp(l->drop, f->tensor[i].name) != 0)
            assert_int_equal(pl_buf_addf(&text, NULL, "\"%s\":\"%s\",", f->tensor[i].name, shard), PL_OK);
    if (l->add)
        assert_int_equal(pl_buf_addf(&text, NULL, "\"%s\":\"%s\",", l->add, shard), PL_OK);
    text.len--;
    assert_int_equal(pl_buf_adds(&text, "}}", NULL), PL_OK);
    fx_put(f, "model.safetensors.index.json", text.data, text.len);
    pl_buf_free(&text);
}

static inline void fx_write(const fx *f, const fx_layout *layout)
{
    static const fx_layout plain;
    const fx_layout *l = layout ? layout : &plain;
    const char *shard = l->single ? "model.safetensors" : "model-00001-of-00001.safetensors";
    pl_buf text;
    pl_buf_init(&text, 64 << 20, "shard");
    assert_int_equal(pl_buf_add(&text, "\0\0\0\0\0\0\0\0{", 9, NULL), PL_OK);
    size_t at = 0;
    for (size_t i = 0; i < f->tensors; i++) {
        const fx_tensor *t = &f->tensor[i];
        char shape[64];
        assert_int_equal(pl_buf_addf(&text, NULL, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                                     i ? "," : "", t->name, t->type, pl_shape_text(t->rank, t->dim, shape), at,
                                     at + t->bytes),
                         PL_OK);
        at += t->bytes;
    }
    assert_int_equal(pl_buf_adds(&text, "}", NULL), PL_OK);
    while (text.len % 8 != (l->unaligned ? 1 : 0))
        assert_int_equal(pl_buf_addc(&text, ' ', NULL), PL_OK);
    for (int i = 0; i < 8; i++)
        text.data[i] = (char)((text.len - 8) >> (8 * i) & 255);
    for (size_t i = 0; i < f->tensors; i++)
        assert_int_equal(pl_buf_add(&text, f->tensor[i].data, f->tensor[i].bytes, NULL), PL_OK);
    for (size_t i = 0; i < l->extra; i++)
        assert_int_equal(pl_buf_addc(&text, 0, NULL), PL_OK);
    fx_put(f, shard, text.data, text.len - l->cut);
    pl_buf_free(&text);
    fx_put(f, "config.json", f->config, strlen(f->config));
    if (!l->single)
        fx_write_index(f, l, l->shard ? l->shard : shard);
}

static inline void fx_free(fx *f)
{
    fx_remove_folder(f->dir);
    for (size_t i = 0; i < f->tensors; i++)
        free(f->tensor[i].data);
    free(f->tensor);
    free(f->config);
}

/* Opening the folder fails with status, and the message has all of the texts (NULL ends them). */
static inline void fx_refused(const fx *f, pl_status status, ...)
{
    pl_error err;
    pl_checkpoint *checkpoint;
    assert_fails(status, &err, pl_checkpoint_open(&checkpoint, f->dir, 2, NULL, NULL, &err));
    assert_null(checkpoint);
    va_list args;
    va_start(args, status);
    for (const char *text; (text = va_arg(args, const char *));)
        if (!strstr(err.message, text))
            fail_msg("expected \"%s\" in: %s", text, err.message);
    va_end(args);
}

static inline pl_checkpoint *fx_open(const char *dir)
{
    pl_error err = {0};
    pl_checkpoint *checkpoint;
    if (pl_checkpoint_open(&checkpoint, dir, 2, NULL, NULL, &err) != PL_OK)
        fail_msg("%s", err.message);
    return checkpoint;
}

#endif
