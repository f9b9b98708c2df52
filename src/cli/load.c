#include "cli/load.h"

#include "base/clock.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs shorter than this say nothing about their progress. */
#define QUIET_NS 2000000000LL

pl_status cli_require(const pl_settings *settings, pl_setting_id id, pl_error *err)
{
    if (pl_set_given(settings, id))
        return PL_OK;
    const pl_setting *s = &pl_setting_table[id];
    return pl_fail_param(err, PL_EINVAL, s->name, "--%s %s is needed; usage: paceline %s %s", s->name, s->arg,
                         settings->command->name, settings->command->usage);
}

static pl_status read_ids(cli_model *m, const pl_settings *settings, pl_error *err)
{
    size_t count;
    PL_TRY(cli_require(settings, PL_SET_IDS, err));
    PL_TRY(pl_ids_parse(pl_set_text(settings, PL_SET_IDS), &m->ids, &count, err));
    if (count > (size_t)m->config->max_positions)
        return pl_fail_param(err, PL_EINVAL, "ids", "--ids: at most %d ids (the model's positions) expected, found %zu",
                             m->config->max_positions, count);
    m->count = (int)count;
    for (int i = 0; i < m->count; i++)
        if (m->ids[i] >= m->config->vocab_size)
            return pl_fail_param(err, PL_EINVAL, "ids", "--ids: ids below %d (the vocabulary) expected, found %" PRId32,
                                 m->config->vocab_size, m->ids[i]);
    return PL_OK;
}

/* The Engram classes, which need the tokenizer; a model without Engram layers needs neither. */
static pl_status read_map(const cli_model *m, const pl_settings *settings, pl_token_map *map, pl_error *err)
{
    if (m->config->engrams == 0)
        return PL_OK;
    char *path = pl_path_join(pl_checkpoint_dir(m->checkpoint), "tokenizer.json");
    if (!path)
        return pl_fail(err, PL_ENOMEM, "no memory for the tokenizer's name");
    pl_tokenizer *tokenizer = NULL;
    pl_status status = pl_tokenizer_load(&tokenizer, path, err);
    if (status == PL_OK)
        status = pl_token_map_open(map, tokenizer, m->config->vocab_size, m->config->engram_classes,
                                   pl_set_text(settings, PL_SET_CACHE_DIR), err);
    pl_tokenizer_close(tokenizer);
    free(path);
    return status;
}

static pl_status open_model(cli_model *m, const pl_settings *settings, int spare, pl_error *err)
{
    char *dir = NULL;
    PL_TRY(cmd_model_dir(settings, &dir, err));
    pl_status status = pl_checkpoint_open(&m->checkpoint, dir, cmd_threads(settings), NULL, NULL, err);
    free(dir);
    PL_TRY(status);
    m->config = pl_checkpoint_config(m->checkpoint);
    PL_TRY(read_ids(m, settings, err));
    pl_model_settings model = {
        .threads = cmd_threads(settings), .slots = 1, .context = m->count, .isa = pl_set_text(settings, PL_SET_ISA)};
    if (spare > m->config->max_positions - m->count)
        spare = m->config->max_positions - m->count;
    model.context += spare;
    pl_token_map map = {0};
    PL_TRY(read_map(m, settings, &map, err));
    status = pl_model_open(&m->model, m->checkpoint, map.map, &model, err);
    pl_token_map_close(&map);
    return status;
}

pl_status cli_model_open(cli_model *m, const pl_settings *settings, int spare, pl_error *err)
{
    *m = (cli_model){0};
    pl_status status = open_model(m, settings, spare, err);
    if (status != PL_OK)
        cli_model_close(m);
    return status;
}

void cli_model_close(cli_model *m)
{
    pl_model_close(m->model);
    pl_checkpoint_close(m->checkpoint);
    free(m->ids);
    *m = (cli_model){0};
}

pl_status cli_model_run(cli_model *m, int rows, pl_want want, const pl_tracer *tracer, cli_launch_fn *each, void *arg,
                        pl_error *err)
{
    int most = pl_model_settings_of(m->model)->piece;
    if (rows > 0 && rows < most)
        most = rows;
    int64_t began = pl_now_ns();
    bool told = false;
    for (int pos = 0; pos < m->count;) {
        int n = m->count - pos < most ? m->count - pos : most;
        bool last = pos + n == m->count;
        pl_run run = {.slot = 0,
                      .pos = pos,
                      .rows = n,
                      .token = m->ids + pos,
                      .want = want == PL_WANT_LAST && !last ? PL_WANT_NONE : want};
        PL_TRY(pl_model_forward(m->model, &run, 1, NULL, tracer, err));
        if (each)
            PL_TRY(each(arg, pos, n, err));
        pos += n;
        told |= isatty(STDERR_FILENO) && !last && pl_now_ns() - began > QUIET_NS;
        if (told)
            fprintf(stderr, "\r%d of %d tokens%s", pos, m->count, last ? "\n" : "");
    }
    return PL_OK;
}
