#include "text/segments.h"

#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

void pl_segments_init(pl_segments *segments, size_t cap)
{
    *segments = (pl_segments){0};
    pl_buf_init(&segments->text, cap, "prompt text");
}

void pl_segments_free(pl_segments *segments)
{
    pl_buf_free(&segments->text);
    free(segments->items);
    segments->items = NULL;
    segments->count = segments->room = 0;
}

/* A new piece of len bytes; the list is unchanged on failure. */
static pl_status add(pl_segments *segments, bool control, const char *bytes, size_t len, pl_error *err)
{
    if (segments->count == segments->room) {
        size_t room = segments->room ? segments->room * 2 : 32;
        pl_segment *items = room > SIZE_MAX / sizeof *items ? NULL : realloc(segments->items, room * sizeof *items);
        if (!items)
            return pl_fail(err, PL_ENOMEM, "prompt: no memory for %zu pieces", room);
        segments->items = items;
        segments->room = room;
    }
    size_t offset = segments->text.len;
    PL_TRY(pl_buf_add(&segments->text, bytes, len, err));
    segments->items[segments->count++] = (pl_segment){.control = control, .offset = offset, .len = len};
    return PL_OK;
}

pl_status pl_segments_control(pl_segments *segments, const char *spelling, pl_error *err)
{
    return add(segments, true, spelling, strlen(spelling), err);
}

pl_status pl_segments_text(pl_segments *segments, const char *bytes, size_t len, pl_error *err)
{
    if (!len)
        return PL_OK;
    pl_segment *last = segments->count ? segments->items + segments->count - 1 : NULL;
    if (!last || last->control)
        return add(segments, false, bytes, len, err);
    PL_TRY(pl_buf_add(&segments->text, bytes, len, err));
    last->len += len;
    return PL_OK;
}

pl_status pl_segments_encode(const pl_tokenizer *tokenizer, const pl_segments *segments, pl_ids *ids, pl_error *err)
{
    char spelling[128];
    for (size_t i = 0; i < segments->count; i++) {
        const pl_segment *s = segments->items + i;
        const char *bytes = segments->text.data + s->offset;
        if (!s->control) {
            PL_TRY(pl_tokenizer_encode(tokenizer, bytes, s->len, false, ids, err));
            continue;
        }
        int32_t id = -1;
        if (s->len < sizeof spelling) {
            memcpy(spelling, bytes, s->len);
            spelling[s->len] = '\0';
            id = pl_tokenizer_find(tokenizer, spelling);
        }
        if (id < 0)
            return pl_fail(
                err, PL_ENOTFOUND,
                "the tokenizer has no control token %.*s, which the chat encoding needs: this tokenizer.json "
                "is not DeepSeek-V4.1's",
                (int)(s->len < 100 ? s->len : 100), bytes);
        PL_TRY(pl_ids_push(ids, id, err));
    }
    return PL_OK;
}
