#include "checkpoint/generation.h"

#include "base/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_CAP = 1 << 20 };

typedef struct reader {
    const json_t *object;
    const char *where;
    pl_error *err;
} reader;

static pl_status bad(const reader *r, const char *key, const char *expected, const json_t *found)
{
    char *text = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    pl_status status = pl_fail_param(r->err, PL_EFORMAT, key, "%s: %s: expected %s, found %.60s", r->where, key,
                                     expected, text ? text : "something else");
    free(text);
    return status;
}

/* NULL for a field that is missing or null. */
static const json_t *field(const reader *r, const char *key)
{
    const json_t *value = json_object_get(r->object, key);
    return json_is_null(value) ? NULL : value;
}

static pl_status read_bool(const reader *r, const char *key, bool *out, bool *given)
{
    const json_t *value = field(r, key);
    *given = value != NULL;
    if (!value)
        return PL_OK;
    if (!json_is_boolean(value))
        return bad(r, key, "true or false", value);
    *out = json_is_true(value);
    return PL_OK;
}

typedef struct number {
    const char *key;
    unsigned bit;
    float max;
    bool zero; /* 0 is allowed */
    float *out;
} number;

static pl_status read_numbers(const reader *r, pl_generation *g)
{
    const number numbers[] = {{"temperature", PL_GEN_TEMPERATURE, 2, true, &g->temperature},
                              {"top_p", PL_GEN_TOP_P, 1, false, &g->top_p},
                              {"min_p", PL_GEN_MIN_P, 1, true, &g->min_p},
                              {"repetition_penalty", PL_GEN_REPETITION, 100, false, &g->repetition_penalty}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const number *n = &numbers[i];
        const json_t *value = field(r, n->key);
        if (!value)
            continue;
        /* judged as the float32 that it becomes: 1e-50 is 0 there */
        double v = json_is_number(value) ? json_number_value(value) : -1;
        float f = v >= 0 && v <= (double)n->max ? (float)v : -1;
        if (f < 0 || (f == 0 && !n->zero)) {
            char expected[64];
            snprintf(expected, sizeof expected, "a number %s 0 and at most %g", n->zero ? "of at least" : "above",
                     (double)n->max);
            return bad(r, n->key, expected, value);
        }
        *n->out = f;
        g->has |= n->bit;
    }
    return PL_OK;
}

static bool named_already(const pl_generation *g, int32_t id)
{
    for (int i = 0; i < g->eos_count; i++)
        if (g->eos[i] == id)
            return true;
    return false;
}

static pl_status read_eos(const reader *r, pl_generation *g)
{
    static const char key[] = "eos_token_id", expected[] = "a token id or a list of 1 to 16 of them";
    const json_t *value = field(r, key);
    if (!value)
        return PL_OK;
    bool list = json_is_array(value);
    size_t count = list ? json_array_size(value) : 1;
    if (count < 1 || count > PL_GEN_EOS_MAX)
        return bad(r, key, expected, value);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = list ? json_array_get(value, i) : value;
        json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id > INT32_MAX)
            return bad(r, key, expected, value);
        if (!named_already(g, (int32_t)id))
            g->eos[g->eos_count++] = (int32_t)id;
    }
    return PL_OK;
}

static pl_status read_all(const reader *r, pl_generation *g)
{
    PL_TRY(read_numbers(r, g));
    PL_TRY(read_eos(r, g));
    const json_t *top_k = field(r, "top_k");
    if (top_k) {
        json_int_t k = json_is_integer(top_k) ? json_integer_value(top_k) : -2;
        if (k < -1 || k > INT_MAX)
            return bad(r, "top_k", "an integer of at least -1", top_k);
        g->top_k = k < 0 ? 0 : (int)k;
        g->has |= PL_GEN_TOP_K;
    }
    bool sample = true, given;
    PL_TRY(read_bool(r, "do_sample", &sample, &given));
    if (!sample) {
        g->temperature = 0;
        g->has |= PL_GEN_TEMPERATURE;
    }
    PL_TRY(read_bool(r, "thinking", &g->thinking, &given));
    if (given)
        g->has |= PL_GEN_THINKING;
    return PL_OK;
}

pl_status pl_generation_parse(pl_generation *out, const char *json, size_t len, const char *where, pl_error *err)
{
    *out = (pl_generation){0};
    json_error_t at;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &at);
    if (!root)
        return pl_fail_at(err, PL_EFORMAT, at.position, "%s: not JSON: %s (line %d)", where, at.text, at.line);
    reader r = {root, where, err};
    pl_generation read = {0};
    pl_status status =
        json_is_object(root) ? read_all(&r, &read) : pl_fail(err, PL_EFORMAT, "%s: expected one JSON object", where);
    json_decref(root);
    if (status == PL_OK)
        *out = read;
    return status;
}

pl_status pl_generation_load(pl_generation *out, const char *path, pl_error *err)
{
    *out = (pl_generation){0};
    pl_buf text;
    pl_buf_init(&text, FILE_CAP, path);
    pl_status status = pl_file_read(&text, path, err);
    if (status == PL_OK)
        status = pl_generation_parse(out, (const char *)text.data, text.len, path, err);
    else if (status == PL_ENOTFOUND)
        status = PL_OK;
    pl_buf_free(&text);
    return status;
}
