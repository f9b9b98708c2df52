#include "model/support.h"

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/synth.h"
#include "text/token_map.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <math.h>

void *load_array(const char *path, size_t size, size_t count)
{
    pl_buf buf;
    pl_error err;
    pl_buf_init(&buf, 64 << 20, path);
    if (pl_file_read(&buf, path, &err) != PL_OK)
        fail_msg("%s", err.message);
    if (buf.len != size * count)
        fail_msg("%s: %zu bytes expected, found %zu", path, size * count, buf.len);
    return buf.data; /* malloc'ed by the buffer */
}

int32_t *load_i32(const char *path, size_t count)
{
    return load_array(path, 4, count);
}

float *load_f32(const char *path, size_t count)
{
    return load_array(path, 4, count);
}

pl_bf16 *load_bf16(const char *path, size_t count)
{
    return load_array(path, 2, count);
}

int32_t *load_prompt(const char *name, int *count)
{
    json_error_t error;
    json_t *root = json_load_file(TINY "vectors/prompts.json", 0, &error);
    assert_non_null(root);
    json_t *ids = json_object_get(root, name);
    assert_true(json_is_array(ids));
    *count = (int)json_array_size(ids);
    int32_t *out = malloc(sizeof *out * (size_t)*count);
    for (int i = 0; i < *count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    json_decref(root);
    return out;
}

static uint32_t *load_map(const char *dir, const pl_config *config)
{
    pl_error err;
    char path[256];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    pl_tokenizer *tok;
    if (pl_tokenizer_load(&tok, path, &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_token_map map;
    if (pl_token_map_build(&map, tok, &err) != PL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(map.size, config->vocab_size);
    assert_int_equal(map.classes, config->engram_classes);
    pl_tokenizer_close(tok);
    return map.map; /* the caller's to free */
}

void open_checkpoint(fixture *f, const char *dir)
{
    pl_error err;
    *f = (fixture){0};
    if (pl_checkpoint_open(&f->checkpoint, dir, 1, NULL, NULL, &err) != PL_OK)
        fail_msg("%s", err.message);
    if (pl_checkpoint_config(f->checkpoint)->engrams)
        f->token_map = load_map(dir, pl_checkpoint_config(f->checkpoint));
}

void open_fixture(fixture *f, const char *dir, pl_model_settings settings)
{
    open_checkpoint(f, dir);
    reopen_model(f, settings);
}

void reopen_model(fixture *f, pl_model_settings settings)
{
    pl_error err;
    pl_model_close(f->model);
    f->model = NULL;
    if (pl_model_open(&f->model, f->checkpoint, f->token_map, &settings, &err) != PL_OK)
        fail_msg("%s", err.message);
}

void close_fixture(fixture *f)
{
    pl_model_close(f->model);
    pl_checkpoint_close(f->checkpoint);
    free(f->token_map);
}

void run_rows(pl_model *model, const int32_t *tokens, int from, int to, float *out)
{
    pl_error err;
    size_t v = (size_t)pl_model_config(model)->vocab_size;
    const pl_model_settings *s = pl_model_settings_of(model);
    int most = out && s->rows < s->piece ? s->rows : s->piece;
    for (int at = from; at < to; at += most) {
        int rows = to - at < most ? to - at : most;
        pl_run run = {.pos = at, .rows = rows, .token = tokens + at, .want = out ? PL_WANT_ALL : PL_WANT_NONE};
        if (pl_model_forward(model, &run, 1, NULL, NULL, &err) != PL_OK)
            fail_msg("%s", err.message);
        for (int r = 0; out && r < rows; r++)
            memcpy(out + (size_t)(at - from + r) * v, pl_model_logits(model, r), v * sizeof *out);
    }
}

difference compare(const float *a, const float *b, size_t count)
{
    difference d = {0, 0};
    for (size_t i = 0; i < count; i++) {
        double e = fabs((double)a[i] - (double)b[i]);
        if (!(e <= d.max))
            d.max = e; /* a NaN counts as the largest */
        d.mean += e / (double)count;
    }
    return d;
}

int best_of(const float *row, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

float margin_of(const float *row, int count)
{
    int best = best_of(row, count);
    float second = -INFINITY;
    for (int i = 0; i < count; i++)
        if (i != best && row[i] > second)
            second = row[i];
    return row[best] - second;
}

uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

uint64_t print_seed(void)
{
    const char *given = getenv("PL_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)pl_now_ns() | 1;
    print_message("seed %llu (PL_TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

static pl_status count_classes(void *arg, const char *json, size_t len, int64_t *classes, pl_error *err)
{
    (void)arg;
    pl_tokenizer *tokenizer;
    PL_TRY(pl_tokenizer_parse(&tokenizer, json, len, "tokenizer.json", err));
    pl_token_map map = {0};
    pl_status status = pl_token_map_build(&map, tokenizer, err);
    *classes = map.classes;
    pl_token_map_close(&map);
    pl_tokenizer_close(tokenizer);
    return status;
}

void make_checkpoint(const char *dir, const char *config, size_t len, const char *where, uint64_t seed)
{
    pl_error err;
    pl_synth synth = {
        .config_json = config, .config_len = len, .where = where, .seed = seed, .out = dir, .classes = count_classes};
    if (pl_synth_write(&synth, &err) != PL_OK)
        fail_msg("%s: %s", where, err.message);
}

void remove_folder(const char *dir)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}
