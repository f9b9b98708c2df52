/* Lists of token ids as users write them: "1,2,3", blanks allowed, "@FILE" with the same inside, or "-" for standard
 * input with the same. */
#include "base/file.h"
#include "base/num.h"
#include "base/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 4 << 20, FILE_CAP = 64 << 20 };

/* What stands at a byte, for messages. */
static const char *found_at(const char *text, size_t len, size_t at, char out[16])
{
    unsigned char c = at < len ? (unsigned char)text[at] : 0;
    snprintf(out, 16, at >= len ? "the end" : c > ' ' && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
    return out;
}

static pl_status read_list(const char *text, size_t len, const char *where, int32_t *ids, size_t *count, pl_error *err)
{
    size_t n = 0;
    char found[16];
    for (size_t at = 0;;) {
        while (at < len && isspace((unsigned char)text[at]))
            at++;
        int64_t id = 0;
        size_t start = at;
        for (; at < len && isdigit((unsigned char)text[at]); at++) {
            id = id * 10 + (text[at] - '0');
            if (id > INT32_MAX)
                return pl_fail_at(err, PL_EINVAL, (int64_t)start, "%s: the id at byte %zu is past 2147483647", where,
                                  start);
        }
        if (at == start)
            return pl_fail_at(err, PL_EINVAL, (int64_t)at, "%s: an id expected at byte %zu, found %s", where, at,
                              found_at(text, len, at, found));
        ids[n++] = (int32_t)id;
        while (at < len && isspace((unsigned char)text[at]))
            at++;
        if (at == len)
            break;
        if (text[at] != ',')
            return pl_fail_at(err, PL_EINVAL, (int64_t)at, "%s: a comma expected at byte %zu, found %s", where, at,
                              found_at(text, len, at, found));
        at++;
    }
    *count = n;
    return PL_OK;
}

static pl_status read_text(const char *text, size_t len, const char *where, int32_t **ids, size_t *count, pl_error *err)
{
    size_t room = 1;
    for (size_t i = 0; i < len; i++)
        room += text[i] == ',';
    if (room > IDS_MAX)
        return pl_fail(err, PL_ELIMIT, "%s: at most %d token ids expected, found %zu", where, IDS_MAX, room);
    int32_t *list = malloc(room * sizeof *list);
    if (!list)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for %zu token ids", where, room);
    pl_status status = read_list(text, len, where, list, count, err);
    if (status == PL_OK)
        *ids = list;
    else
        free(list);
    return status;
}

pl_status pl_ids_parse(const char *text, int32_t **ids, size_t *count, pl_error *err)
{
    *ids = NULL;
    *count = 0;
    bool dash = strcmp(text, "-") == 0;
    if (text[0] != '@' && !dash)
        return read_text(text, strlen(text), "--ids", ids, count, err);
    pl_buf file;
    const char *path = dash ? text : text + 1, *name = pl_input_name(path);
    pl_buf_init(&file, FILE_CAP, name);
    pl_status status = pl_input_read(&file, path, err);
    if (status == PL_OK)
        status = read_text(file.data ? file.data : "", file.len, name, ids, count, err);
    pl_buf_free(&file);
    return status;
}
