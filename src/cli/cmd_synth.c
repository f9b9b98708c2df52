/* `paceline synth --config FILE --seed N --out DIR`: a random checkpoint of any shape in the release layout. */
#include "base/file.h"
#include "checkpoint/synth.h"
#include "cli/cmd.h"
#include "text/token_map.h"

#include <stdio.h>
#include <unistd.h>

/* The Engram classes of a tokenizer, by the rule that the engine checks when it loads. */
static pl_status count_classes(void *arg, const char *json, size_t len, int64_t *classes, pl_error *err)
{
    (void)arg;
    pl_tokenizer *tokenizer;
    PL_TRY(pl_tokenizer_parse(&tokenizer, json, len, "tokenizer.json", err));
    pl_token_map map = {0};
    pl_status status = pl_token_map_build(&map, tokenizer, err);
    if (status == PL_OK)
        *classes = map.classes;
    pl_token_map_close(&map);
    pl_tokenizer_close(tokenizer);
    return status;
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    (void)arg;
    fprintf(stderr, "\r%s: %llu of %llu MB%s", what, (unsigned long long)(done / 1000000),
            (unsigned long long)(total / 1000000), done == total ? "\n" : "");
}

int cmd_synth(const pl_settings *settings)
{
    pl_error err;
    const char *file = pl_set_text(settings, PL_SET_CONFIG);
    pl_buf config;
    pl_buf_init(&config, PL_MAX_CONFIG_BYTES, "config.json");
    pl_status status = PL_OK;
    if (!*file)
        status = pl_fail_param(&err, PL_EINVAL, "config", "--config FILE is needed: the shapes to write");
    else if (!*pl_set_text(settings, PL_SET_OUT_DIR))
        status = pl_fail_param(&err, PL_EINVAL, "out", "--out DIR is needed: the folder to write");
    if (status == PL_OK)
        status = pl_file_read(&config, file, &err);
    if (status == PL_OK) {
        const pl_synth synth = {.config_json = config.data ? config.data : "",
                                .config_len = config.len,
                                .where = pl_input_name(file),
                                .seed = (uint64_t)pl_set_int(settings, PL_SET_SYNTH_SEED),
                                .out = pl_set_text(settings, PL_SET_OUT_DIR),
                                .classes = count_classes,
                                .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
        status = pl_synth_write(&synth, &err);
    }
    pl_buf_free(&config);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
