/* The options of a tokenizer.json: everything must be what the code implements, else the file is refused by name. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "text/pretokenize.h"
#include "text/tokenizer_read.h"

pl_status pl__tokfile_bad(const pl__tokfile *f, const char *fmt, ...)
{
    char message[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return pl_fail(f->err, PL_EFORMAT, "%s: %s", f->where, message);
}

pl_status pl__tokfile_keys(const pl__tokfile *f, const json_t *obj, const char *part, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)obj, key, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return pl__tokfile_bad(f, "%s: the key \"%.100s\" is not known to this tokenizer", part, key);
    }
    return PL_OK;
}

const char *pl__tokfile_shown(const json_t *value, char out[64])
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    snprintf(out, 64, "%.60s", !value ? "nothing" : text ? text : "something else");
    free(text);
    return out;
}

static bool is_string(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

typedef enum expected { IS_NULL, IS_FALSE, IS_EMPTY } expected;

/* An option that must be off. It may be left out, or be null, or (by `how`) false or "". */
static pl_status is_off(const pl__tokfile *f, const json_t *obj, const char *part, const char *key, expected how)
{
    const json_t *v = json_object_get(obj, key);
    if (!v || json_is_null(v) || (how == IS_FALSE && json_is_false(v)) || (how == IS_EMPTY && is_string(v, "")))
        return PL_OK;
    char found[64];
    return pl__tokfile_bad(f, "%s%s%s is not implemented: expected %s, found %s", part, *part ? "." : "", key,
                           how == IS_FALSE ? "false" : "null", pl__tokfile_shown(v, found));
}

static pl_status has_type(const pl__tokfile *f, const json_t *obj, const char *part, const char *type)
{
    char found[64];
    if (json_is_object(obj) && is_string(json_object_get(obj, "type"), type))
        return PL_OK;
    if (json_is_object(obj))
        obj = json_object_get(obj, "type");
    return pl__tokfile_bad(f, "%s: expected type \"%s\", found %s", part, type, pl__tokfile_shown(obj, found));
}

static pl_status check_model(const pl__tokfile *f, const json_t *model)
{
    static const char *const known[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    PL_TRY(has_type(f, model, "model", "BPE"));
    PL_TRY(pl__tokfile_keys(f, model, "model", known));
    PL_TRY(is_off(f, model, "model", "dropout", IS_NULL));
    PL_TRY(is_off(f, model, "model", "unk_token", IS_NULL));
    PL_TRY(is_off(f, model, "model", "continuing_subword_prefix", IS_EMPTY));
    PL_TRY(is_off(f, model, "model", "end_of_word_suffix", IS_EMPTY));
    PL_TRY(is_off(f, model, "model", "fuse_unk", IS_FALSE));
    PL_TRY(is_off(f, model, "model", "byte_fallback", IS_FALSE));
    return is_off(f, model, "model", "ignore_merges", IS_FALSE);
}

static pl_status check_normalizer(const pl__tokfile *f, const json_t *normalizer)
{
    static const char *const known[] = {"type", "normalizers", NULL};
    if (!normalizer || json_is_null(normalizer))
        return PL_OK;
    PL_TRY(has_type(f, normalizer, "normalizer", "Sequence"));
    PL_TRY(pl__tokfile_keys(f, normalizer, "normalizer", known));
    const json_t *list = json_object_get(normalizer, "normalizers");
    if (!json_is_array(list) || json_array_size(list) != 0)
        return pl__tokfile_bad(f, "normalizer: expected none (an empty sequence), found %zu steps",
                               json_array_size(list));
    return PL_OK;
}

static pl_status check_split(const pl__tokfile *f, const json_t *step, int index)
{
    static const char *const known[] = {"type", "pattern", "behavior", "invert", NULL};
    char part[48], found[64];
    snprintf(part, sizeof part, "pre_tokenizer step %d", index + 1);
    PL_TRY(has_type(f, step, part, "Split"));
    PL_TRY(pl__tokfile_keys(f, step, part, known));
    const json_t *pattern = json_object_get(step, "pattern");
    const json_t *regex =
        json_is_object(pattern) && json_object_size(pattern) == 1 ? json_object_get(pattern, "Regex") : NULL;
    if (!regex || !is_string(regex, pl__split_regex[index]))
        return pl__tokfile_bad(f, "%s: expected the regular expression %.40s..., found %s", part,
                               pl__split_regex[index], pl__tokfile_shown(regex ? regex : pattern, found));
    if (!is_string(json_object_get(step, "behavior"), "Isolated"))
        return pl__tokfile_bad(f, "%s: expected behavior \"Isolated\", found %s", part,
                               pl__tokfile_shown(json_object_get(step, "behavior"), found));
    return is_off(f, step, part, "invert", IS_FALSE);
}

static pl_status check_pre_tokenizer(const pl__tokfile *f, const json_t *pre)
{
    static const char *const known[] = {"type", "pretokenizers", NULL};
    static const char *const bytes_known[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    PL_TRY(has_type(f, pre, "pre_tokenizer", "Sequence"));
    PL_TRY(pl__tokfile_keys(f, pre, "pre_tokenizer", known));
    const json_t *list = json_object_get(pre, "pretokenizers");
    if (!json_is_array(list) || json_array_size(list) != 4)
        return pl__tokfile_bad(f, "pre_tokenizer: expected 4 steps (three splits, then bytes), found %zu",
                               json_array_size(list));
    for (int i = 0; i < 3; i++)
        PL_TRY(check_split(f, json_array_get(list, (size_t)i), i));
    const json_t *bytes = json_array_get(list, 3);
    PL_TRY(has_type(f, bytes, "pre_tokenizer step 4", "ByteLevel"));
    PL_TRY(pl__tokfile_keys(f, bytes, "pre_tokenizer step 4", bytes_known));
    /* Both default to true in the reference library: left out is not off. trim_offsets moves offsets only. */
    char found[64];
    static const char *const off[] = {"add_prefix_space", "use_regex"};
    for (int i = 0; i < 2; i++)
        if (!json_is_false(json_object_get(bytes, off[i])))
            return pl__tokfile_bad(f, "pre_tokenizer step 4: expected %s false, found %s", off[i],
                                   pl__tokfile_shown(json_object_get(bytes, off[i]), found));
    return PL_OK;
}

static pl_status check_options(const pl__tokfile *f)
{
    static const char *const known[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    char found[64];
    const json_t *root = f->root;
    if (!json_is_object(root))
        return pl__tokfile_bad(f, "expected a JSON object, found %s", pl__tokfile_shown(root, found));
    PL_TRY(pl__tokfile_keys(f, root, "the file", known));
    if (!is_string(json_object_get(root, "version"), "1.0"))
        return pl__tokfile_bad(f, "expected version \"1.0\", found %s",
                               pl__tokfile_shown(json_object_get(root, "version"), found));
    PL_TRY(is_off(f, root, "", "truncation", IS_NULL));
    PL_TRY(is_off(f, root, "", "padding", IS_NULL));
    PL_TRY(check_model(f, json_object_get(root, "model")));
    PL_TRY(check_normalizer(f, json_object_get(root, "normalizer")));
    PL_TRY(check_pre_tokenizer(f, json_object_get(root, "pre_tokenizer")));
    /* A byte-level post-processor moves offsets only; any other could add tokens, which is the chat encoding's work. */
    const json_t *post = json_object_get(root, "post_processor");
    if (post && !json_is_null(post))
        PL_TRY(has_type(f, post, "post_processor", "ByteLevel"));
    return has_type(f, json_object_get(root, "decoder"), "decoder", "ByteLevel");
}

pl_status pl_tokenizer_parse(pl_tokenizer **out, const char *json, size_t len, const char *where, pl_error *err)
{
    *out = NULL;
    if (len > PL_TOKENIZER_FILE_MAX)
        return pl_fail(err, PL_ELIMIT, "%s: %zu bytes, a tokenizer has at most %d", where, len, PL_TOKENIZER_FILE_MAX);
    pl_tokenizer *tok = calloc(1, sizeof *tok);
    if (!tok)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for a tokenizer", where);
    pl_buf_init(&tok->bytes, PL_TOKENIZER_FILE_MAX, "the tokens of a tokenizer");
    tok->where = strdup(where);
    pl_sha256 sha;
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, json, len);
    pl_sha256_digest(&sha, tok->sha256);

    json_error_t why;
    pl__tokfile f = {.tok = tok, .where = where, .err = err};
    f.root = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    pl_status status = PL_OK;
    if (!tok->where || (!f.root && why.line < 0)) /* the reader gives no other sign of it */
        status = pl_fail(err, PL_ENOMEM, "%s: no memory to read it", where);
    else if (!f.root)
        status = pl__tokfile_bad(&f, "not JSON: %s (line %d, column %d)", why.text, why.line, why.column);
    if (status == PL_OK)
        status = check_options(&f);
    if (status == PL_OK)
        status = pl__tokfile_tokens(&f);
    json_decref(f.root);
    if (status != PL_OK) {
        pl_tokenizer_close(tok);
        return status;
    }
    *out = tok;
    return PL_OK;
}

pl_status pl_tokenizer_load(pl_tokenizer **out, const char *path, pl_error *err)
{
    *out = NULL;
    pl_map map;
    PL_TRY(pl_map_open(&map, path, err));
    pl_status status = pl_tokenizer_parse(out, map.data ? (const char *)map.data : "", map.size, path, err);
    pl_map_close(&map);
    return status;
}
