/* Lists of token ids as users write them: "1,2,3", blanks allowed, or "@FILE" with the same inside. */
#include "base/file.h"
#include "base/num.h"
#include "base/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 4 << 20, FILE_CAP = 64 << 20 };

static pl_status read_list(const char *text, size_t len, int32_t *ids, size_t *count, pl_error *err)
{
    size_t n = 0;
    for (size_t at = 0;;) {
        while (at < len && isspace((unsigned char)text[at]))
            at++;
        int64_t id = 0;
        size_t start = at;
        for (; at < len && isdigit((unsigned char)text[at]); at++) {
            id = id * 10 + (text[at] - '0');
            if (id > INT32_MAX)
                return pl_fail_at(err, PL_EINVAL, (int64_t)start, "token ids: the id at byte %zu is past 2147483647",
                                  start);
        }
        if (at == start)
            return pl_fail_at(err, PL_EINVAL, (int64_t)at, "token ids: an id expected at byte %zu", at);
        ids[n++] = (int32_t)id;
        while (at < len && isspace((unsigned char)text[at]))
            at++;
        if (at == len)
            break;
        if (text[at++] != ',')
            return pl_fail_at(err, PL_EINVAL, (int64_t)at - 1, "token ids: a comma expected at byte %zu", at - 1);
    }
    *count = n;
    return PL_OK;
}

static pl_status read_text(const char *text, size_t len, int32_t **ids, size_t *count, pl_error *err)
{
    size_t room = 1;
    for (size_t i = 0; i < len; i++)
        room += text[i] == ',';
    if (room > IDS_MAX)
        return pl_fail(err, PL_ELIMIT, "token ids: at most %d expected, found %zu", IDS_MAX, room);
    int32_t *list = malloc(room * sizeof *list);
    if (!list)
        return pl_fail(err, PL_ENOMEM, "token ids: no memory for %zu", room);
    pl_status status = read_list(text, len, list, count, err);
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
    if (text[0] != '@')
        return read_text(text, strlen(text), ids, count, err);
    pl_buf file;
    pl_buf_init(&file, FILE_CAP, "list of token ids");
    pl_status status = pl_file_read(&file, text + 1, err);
    if (status == PL_OK)
        status = read_text(file.data ? file.data : "", file.len, ids, count, err);
    pl_buf_free(&file);
    return status;
}
