/* paceline logits: the target's logits as float32 little-endian rows of vocab_size, for the last position or for
 * all. */
#include "base/file.h"
#include "cli/load.h"

#include <stdio.h>
#include <string.h>

typedef struct sink {
    cli_model *model;
    pl_file_out file;
    size_t rows;
} sink;

static pl_status write_rows(sink *s, int rows, pl_error *err)
{
    size_t bytes = (size_t)s->model->config->vocab_size * sizeof(float);
    for (int i = 0; i < rows; i++)
        PL_TRY(pl_file_write(&s->file, pl_model_logits(s->model->model, i), bytes, err));
    s->rows += (size_t)rows;
    return PL_OK;
}

static pl_status after_launch(void *arg, int pos, int rows, pl_error *err)
{
    (void)pos;
    return write_rows(arg, rows, err);
}

static pl_status run(sink *s, const pl_settings *settings, pl_error *err)
{
    PL_TRY(pl_file_create(&s->file, pl_set_text(settings, PL_SET_OUT), err));
    if (pl_set_on(settings, PL_SET_ALL)) {
        int rows = pl_model_settings_of(s->model->model)->rows; /* the most that get logits in one launch */
        PL_TRY(cli_model_run(s->model, rows, PL_WANT_ALL, NULL, after_launch, s, err));
    } else {
        PL_TRY(cli_model_run(s->model, 0, PL_WANT_LAST, NULL, NULL, NULL, err));
        PL_TRY(write_rows(s, 1, err));
    }
    return pl_file_commit(&s->file, err);
}

int cmd_logits(const pl_settings *settings)
{
    pl_error err;
    cli_model model;
    pl_status status = cli_require(settings, PL_SET_OUT, &err);
    if (status == PL_OK)
        status = cli_model_open(&model, settings, 0, &err);
    if (status != PL_OK)
        return cmd_fail(settings, &err);
    const char *out = pl_set_text(settings, PL_SET_OUT);
    sink s = {.model = &model, .file = {.fd = -1}};
    status = run(&s, settings, &err);
    pl_file_abandon(&s.file);
    if (status == PL_OK)
        fprintf(stderr, "%s: %zu x %d float32\n", strcmp(out, "-") == 0 ? "standard output" : out, s.rows,
                model.config->vocab_size);
    cli_model_close(&model);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
