/* paceline tokenize: text to token ids and back.
 *
 *   in                         plain                          --decode
 *   TEXT, - or --text FILE|-   the text                       ids: separated by commas or blanks, or a JSON array
 *   --jsonl FILE|-             {"s": TEXT} a line             a JSON array of ids a line; no line may be empty
 *   out
 *   default                    ids on a line, blanks between  the bytes, nothing added
 *   --json                     a JSON array of ids            a JSON string (what is not UTF-8 as U+FFFD)
 *   --jsonl                    a JSON array of ids a line     {"s": TEXT} a line
 *   --no-special               everything is plain text       tokens marked special are left out */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "text/tokenizer.h"

enum { INPUT_CAP = 1 << 30, OUTPUT_FLUSH = 1 << 16 };

typedef struct job {
    const pl_settings *settings;
    pl_tokenizer *tok;
    bool special; /* match added tokens; decoding: keep special ones */
    bool json;
    pl_ids ids;
    pl_buf text; /* bytes decoded from ids */
    pl_buf out;
    const char *where; /* the input, for messages */
    size_t line;       /* of the JSONL file, from 1; 0 elsewhere */
} job;

/* Input errors name the line they are in. */
static pl_status bad_line(const job *j, pl_error *err, const char *what)
{
    if (j->line == 0)
        return pl_fail(err, PL_EINVAL, "%s: %s", j->where, what);
    return pl_fail(err, PL_EINVAL, "%s, line %zu: %s", j->where, j->line, what);
}

/* Why a JSON text was not read. Never for want of memory: fatal.c sees to that. */
static pl_status bad_json(const job *j, const json_error_t *why, const char *expected, pl_error *err)
{
    char what[256];
    snprintf(what, sizeof what, "%s: %s", expected, why->text);
    return bad_line(j, err, what);
}

static pl_status put_ids(job *j, pl_error *err)
{
    bool array = j->json || j->line > 0;
    if (array)
        PL_TRY(pl_buf_addc(&j->out, '[', err));
    for (size_t i = 0; i < j->ids.len; i++)
        PL_TRY(pl_buf_addf(&j->out, err, "%s%d", i == 0 ? "" : array ? "," : " ", (int)j->ids.data[i]));
    return pl_buf_adds(&j->out, array ? "]\n" : "\n", err);
}

static pl_status encode_one(job *j, const char *text, size_t len, pl_error *err)
{
    pl_ids_clear(&j->ids);
    pl_error why;
    pl_status status = pl_tokenizer_encode(j->tok, text, len, j->special, &j->ids, &why);
    if (status != PL_OK && j->line)
        return pl_fail(err, status, "%s, line %zu: %s", j->where, j->line, why.message);
    return status == PL_OK ? put_ids(j, err) : pl_fail(err, status, "%s: %s", j->where, why.message);
}

static pl_status add_id(job *j, const json_t *value, pl_error *err)
{
    json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id >= 0 && id < pl_tokenizer_size(j->tok))
        return pl_ids_push(&j->ids, (int32_t)id, err);
    char what[128], *found = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    snprintf(what, sizeof what, "expected token ids from 0 to %d, found %.40s", (int)pl_tokenizer_size(j->tok) - 1,
             found ? found : "something else");
    free(found);
    return bad_line(j, err, what);
}

static pl_status ids_from_json(job *j, const char *text, size_t len, pl_error *err)
{
    json_error_t why;
    json_t *array = json_loadb(text, len, 0, &why), *value;
    size_t i;
    static const char expected[] = "expected a JSON array of token ids";
    if (!array)
        return bad_json(j, &why, expected, err);
    pl_status status = json_is_array(array) ? PL_OK : bad_line(j, err, expected);
    json_array_foreach(array, i, value)
    {
        if (status == PL_OK)
            status = add_id(j, value, err);
    }
    json_decref(array);
    return status;
}

static pl_status ids_from_words(job *j, const char *text, size_t len, pl_error *err)
{
    for (size_t at = 0; at < len;) {
        if (strchr(", \t\r\n", text[at]) && text[at] != '\0') {
            at++;
            continue;
        }
        size_t start = at;
        int64_t id = 0, top = pl_tokenizer_size(j->tok) - 1;
        for (; at < len && text[at] >= '0' && text[at] <= '9' && id <= top; at++)
            id = id * 10 + (text[at] - '0');
        if (at == start || id > top)
            return pl_fail_at(err, PL_EINVAL, (int64_t)start,
                              "%s: expected ids from 0 to %d separated by commas or blanks, found something else at "
                              "offset %zu",
                              j->where, (int)top, start);
        PL_TRY(pl_ids_push(&j->ids, (int32_t)id, err));
    }
    return PL_OK;
}

/* Append text as a JSON string, repaired where it is not UTF-8. */
static pl_status put_json_text(job *j, pl_error *err)
{
    pl_buf whole;
    pl_buf_init(&whole, INPUT_CAP, "text");
    pl_status status = pl_utf8_repair(&whole, j->text.data ? j->text.data : "", j->text.len, err);
    json_t *value = status == PL_OK ? json_stringn_nocheck(whole.data ? whole.data : "", whole.len) : NULL;
    char *shown = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (status == PL_OK)
        status = shown ? pl_buf_adds(&j->out, shown, err) : pl_fail(err, PL_ENOMEM, "no memory for the text");
    free(shown);
    json_decref(value);
    pl_buf_free(&whole);
    return status;
}

static pl_status decode_one(job *j, const char *text, size_t len, pl_error *err)
{
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", text[at]) && text[at] != '\0')
        at++;
    pl_ids_clear(&j->ids);
    pl_buf_clear(&j->text);
    if (j->line > 0 || (at < len && text[at] == '['))
        PL_TRY(ids_from_json(j, text, len, err));
    else
        PL_TRY(ids_from_words(j, text, len, err));
    PL_TRY(pl_tokenizer_decode(j->tok, j->ids.data, j->ids.len, !j->special, &j->text, err));
    if (!j->json && j->line == 0)
        return pl_buf_add(&j->out, j->text.data ? j->text.data : "", j->text.len, err);
    if (j->line > 0)
        PL_TRY(pl_buf_adds(&j->out, "{\"s\": ", err));
    PL_TRY(put_json_text(j, err));
    return pl_buf_adds(&j->out, j->line > 0 ? "}\n" : "\n", err);
}

static pl_status encode_line(job *j, const char *line, size_t len, pl_error *err)
{
    json_error_t why;
    json_t *object = json_loadb(line, len, JSON_ALLOW_NUL, &why);
    const json_t *text = json_object_get(object, "s");
    static const char expected[] = "expected a JSON object {\"s\": TEXT} in UTF-8";
    if (!object)
        return bad_json(j, &why, expected, err);
    pl_status status = json_is_string(text) ? encode_one(j, json_string_value(text), json_string_length(text), err)
                                            : bad_line(j, err, expected);
    json_decref(object);
    return status;
}

static pl_status flush(job *j, pl_error *err)
{
    PL_TRY(cmd_print(j->out.data ? j->out.data : "", j->out.len, err));
    pl_buf_clear(&j->out);
    return PL_OK;
}

static bool is_blank(const char *text, size_t len)
{
    while (len && strchr(" \t\r", text[len - 1]) && text[len - 1] != '\0')
        len--;
    return len == 0;
}

static pl_status each_line(job *j, const char *text, size_t len, bool decode, pl_error *err)
{
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t n = newline ? (size_t)(newline - text) - at : len - at;
        j->line++;
        if (is_blank(text + at, n))
            return bad_line(j, err,
                            decode ? "expected a JSON array of token ids, found an empty line"
                                   : "expected a JSON object {\"s\": TEXT}, found an empty line");
        PL_TRY(decode ? decode_one(j, text + at, n, err) : encode_line(j, text + at, n, err));
        if (j->out.len >= OUTPUT_FLUSH)
            PL_TRY(flush(j, err));
        at += n + 1;
    }
    return PL_OK;
}

static pl_status load(const pl_settings *settings, pl_tokenizer **tok, pl_error *err)
{
    if (pl_set_given(settings, PL_SET_TOKENIZER))
        return pl_tokenizer_load(tok, pl_set_text(settings, PL_SET_TOKENIZER), err);
    char *dir;
    PL_TRY(cmd_model_dir(settings, &dir, err));
    char *path = pl_path_join(dir, "tokenizer.json");
    free(dir);
    pl_status status = path ? pl_tokenizer_load(tok, path, err) : pl_fail(err, PL_ENOMEM, "no memory for a path");
    free(path);
    return status;
}

static pl_status check(const pl_settings *s, pl_error *err)
{
    if (pl_set_given(s, PL_SET_TOKENIZER) && pl_set_given(s, PL_SET_MODEL))
        return pl_fail_param(err, PL_EINVAL, "tokenizer", "--tokenizer and -m both name a tokenizer: give one");
    int inputs = pl_set_given(s, PL_SET_JSONL) + pl_set_given(s, PL_SET_TEXT) + (s->args > 0);
    if (inputs > 1)
        return pl_fail_param(err, PL_EINVAL, "text", "--text, --jsonl and a text in the command line: give one");
    return PL_OK;
}

static pl_status work(job *j, pl_error *err)
{
    const pl_settings *s = j->settings;
    PL_TRY(load(s, &j->tok, err));
    bool decode = pl_set_on(s, PL_SET_DECODE), lines = pl_set_given(s, PL_SET_JSONL);
    pl_buf in;
    pl_buf_init(&in, INPUT_CAP, "input");
    const char *path = pl_set_text(s, lines ? PL_SET_JSONL : PL_SET_TEXT); /* "-" when nothing was named */
    bool word = s->args > 0 && strcmp(s->arg[0], "-") != 0;
    j->where = word ? "the text given" : pl_input_name(path);
    pl_status status = word ? pl_buf_adds(&in, s->arg[0], err) : pl_input_read(&in, path, err);
    const char *text = in.data ? in.data : "";
    if (status == PL_OK && lines)
        status = each_line(j, text, in.len, decode, err);
    else if (status == PL_OK)
        status = decode ? decode_one(j, text, in.len, err) : encode_one(j, text, in.len, err);
    if (status == PL_OK)
        status = flush(j, err);
    pl_buf_free(&in);
    return status;
}

int cmd_tokenize(const pl_settings *settings)
{
    pl_error err;
    job j = {.settings = settings,
             .special = pl_set_on(settings, PL_SET_SPECIAL),
             .json = pl_set_on(settings, PL_SET_JSON_IDS)};
    pl_ids_init(&j.ids, PL_IDS_MAX * 4);
    pl_buf_init(&j.text, INPUT_CAP, "text");
    pl_buf_init(&j.out, INPUT_CAP, "output");
    pl_status status = check(settings, &err);
    if (status == PL_OK)
        status = work(&j, &err);
    pl_tokenizer_close(j.tok);
    pl_ids_free(&j.ids);
    pl_buf_free(&j.text);
    pl_buf_free(&j.out);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
