/* paceline trace: the residual streams and collapse weights after each layer, or one layer alone from given ones.
 *
 * Files, little-endian, C order: h.bf16 [layer][position][stream][dim], pre.f32 [layer][position][stream]; with --layer
 * the same without the layer axis. */
#include "base/file.h"
#include "base/num.h"
#include "cli/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct trace {
    cli_model *model;
    size_t h_row, pre_row; /* bytes of one position */
    int pos;               /* first position of the launch under way */
    pl_file_out h, pre;
} trace;

static pl_status open_files(trace *t, const char *dir, pl_error *err)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return pl_fail(err, PL_EIO, "%s: cannot be made: %s", dir, strerror(errno));
    char *h = pl_path_join(dir, "h.bf16"), *pre = pl_path_join(dir, "pre.f32");
    pl_status status = h && pre ? PL_OK : pl_fail(err, PL_ENOMEM, "%s: no memory for names", dir);
    if (status == PL_OK)
        status = pl_file_create(&t->h, h, err);
    if (status == PL_OK)
        status = pl_file_create(&t->pre, pre, err);
    free(h);
    free(pre);
    return status;
}

/* Launches come one after the other, layers inside a launch: each part has its own place in the files. */
static pl_status note_layer(void *arg, int layer, const uint16_t *h, const float *pre, int rows, pl_error *err)
{
    trace *t = arg;
    uint64_t at = (uint64_t)layer * (uint64_t)t->model->count + (uint64_t)t->pos;
    PL_TRY(pl_file_write_at(&t->h, at * t->h_row, h, (size_t)rows * t->h_row, err));
    return pl_file_write_at(&t->pre, at * t->pre_row, pre, (size_t)rows * t->pre_row, err);
}

static pl_status next_launch(void *arg, int pos, int rows, pl_error *err)
{
    (void)err;
    ((trace *)arg)->pos = pos + rows;
    return PL_OK;
}

static pl_status all_layers(trace *t, pl_error *err)
{
    pl_tracer tracer = {.layer = note_layer, .arg = t};
    return cli_model_run(t->model, 0, PL_WANT_NONE, &tracer, next_launch, t, err);
}

/* Map a file of given streams and hold it against the size that the config and the ids imply. */
static pl_status map_input(const trace *t, const char *path, size_t row, pl_map *map, pl_error *err)
{
    size_t want;
    if (!pl_mul_size(row, (size_t)t->model->count, &want) ||
        !pl_mul_size(want, (size_t)t->model->config->layers, &want))
        return pl_fail(err, PL_ELIMIT, "%s: its size overflows", path);
    PL_TRY(pl_map_open(map, path, err));
    if (map->size == want)
        return PL_OK;
    return pl_fail(err, PL_EFORMAT, "%s: %zu bytes (%d layers x %d positions x %zu) expected, found %zu", path, want,
                   t->model->config->layers, t->model->count, row, map->size);
}

static pl_status run_layer(trace *t, int layer, const pl_map *h, const pl_map *pre, pl_error *err)
{
    size_t h_bytes = (size_t)t->model->count * t->h_row, pre_bytes = (size_t)t->model->count * t->pre_row;
    uint16_t *h_out = malloc(h_bytes);
    float *pre_out = malloc(pre_bytes);
    pl_status status = PL_OK;
    if (!h_out || !pre_out)
        status = pl_fail(err, PL_ENOMEM, "trace: no memory for %zu bytes", h_bytes + pre_bytes);
    if (status == PL_OK)
        status = pl_model_layer(t->model->model, layer, t->model->ids, t->model->count,
                                (const uint16_t *)(const void *)h->data, (const float *)(const void *)pre->data, h_out,
                                pre_out, err);
    if (status == PL_OK)
        status = pl_file_write(&t->h, h_out, h_bytes, err);
    if (status == PL_OK)
        status = pl_file_write(&t->pre, pre_out, pre_bytes, err);
    free(h_out);
    free(pre_out);
    return status;
}

static pl_status one_layer(trace *t, const pl_settings *settings, pl_error *err)
{
    int64_t layer = pl_set_int(settings, PL_SET_LAYER);
    if (layer >= t->model->config->layers)
        return pl_fail_param(err, PL_EINVAL, "layer", "--layer: a layer below %d expected, found %d",
                             t->model->config->layers, (int)layer);
    pl_map h = {0}, pre = {0};
    pl_status status = map_input(t, pl_set_text(settings, PL_SET_H), t->h_row, &h, err);
    if (status == PL_OK)
        status = map_input(t, pl_set_text(settings, PL_SET_PRE), t->pre_row, &pre, err);
    if (status == PL_OK)
        status = run_layer(t, (int)layer, &h, &pre, err);
    pl_map_close(&h);
    pl_map_close(&pre);
    return status;
}

/* --layer, --h and --pre come together or not at all. */
static pl_status check_together(const pl_settings *settings, bool *alone, pl_error *err)
{
    PL_TRY(cli_require(settings, PL_SET_OUT_DIR, err));
    *alone =
        pl_set_given(settings, PL_SET_LAYER) || pl_set_given(settings, PL_SET_H) || pl_set_given(settings, PL_SET_PRE);
    if (!*alone)
        return PL_OK;
    PL_TRY(cli_require(settings, PL_SET_LAYER, err));
    PL_TRY(cli_require(settings, PL_SET_H, err));
    return cli_require(settings, PL_SET_PRE, err);
}

static pl_status run(trace *t, const pl_settings *settings, bool alone, pl_error *err)
{
    const pl_config *config = t->model->config;
    t->h_row = (size_t)config->hc_mult * (size_t)config->hidden * sizeof(uint16_t);
    t->pre_row = (size_t)config->hc_mult * sizeof(float);
    PL_TRY(open_files(t, pl_set_text(settings, PL_SET_OUT_DIR), err));
    PL_TRY(alone ? one_layer(t, settings, err) : all_layers(t, err));
    return pl_file_commit_pair(&t->h, &t->pre, err);
}

int cmd_trace(const pl_settings *settings)
{
    pl_error err;
    bool alone;
    cli_model model;
    pl_status status = check_together(settings, &alone, &err);
    if (status == PL_OK)
        status = cli_model_open(&model, settings, 0, &err);
    if (status != PL_OK)
        return cmd_fail(settings, &err);
    trace t = {.model = &model, .h = {.fd = -1}, .pre = {.fd = -1}};
    status = run(&t, settings, alone, &err);
    pl_file_abandon(&t.h);
    pl_file_abandon(&t.pre);
    if (status == PL_OK)
        fprintf(stderr, "%s: h.bf16 and pre.f32 of %s, %d positions\n", pl_set_text(settings, PL_SET_OUT_DIR),
                alone ? "one layer" : "every layer", model.count);
    cli_model_close(&model);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
