#include "text/added.h"

#include <stdlib.h>
#include <string.h>

pl_status pl__added_push(pl__added *added, pl__spelling spelling, pl_error *err)
{
    if (added->count == added->room) {
        size_t room = added->room ? added->room * 2 : 64;
        pl__spelling *list = realloc(added->list, room * sizeof *list);
        if (!list)
            return pl_fail(err, PL_ENOMEM, "no memory for %zu added tokens", room);
        added->list = list;
        added->room = room;
    }
    added->list[added->count++] = spelling;
    added->starts[(unsigned char)spelling.bytes[0]] = true;
    return PL_OK;
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare(const void *a, const void *b)
{
    const pl__spelling *x = a, *y = b;
    return compare_bytes(x->bytes, x->len, y->bytes, y->len);
}

int64_t pl__added_seal(pl__added *added)
{
    if (added->count > 1)
        qsort(added->list, added->count, sizeof *added->list, compare);
    for (size_t i = 0; i + 1 < added->count; i++)
        if (compare(&added->list[i], &added->list[i + 1]) == 0)
            return (int64_t)i;
    return -1;
}

void pl__added_free(pl__added *added)
{
    free(added->list);
    *added = (pl__added){0};
}

/* In list[lo, hi), whose spellings share their first `depth` bytes, the first one whose byte there is at least b (one
 * that ends there comes before all). */
static size_t lower(const pl__added *added, size_t lo, size_t hi, uint32_t depth, int b)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const pl__spelling *s = &added->list[mid];
        int here = s->len > depth ? (unsigned char)s->bytes[depth] : -1;
        if (here < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest spelling that text starts with. */
static const pl__spelling *longest(const pl__added *added, const char *text, size_t len)
{
    const pl__spelling *best = NULL;
    size_t lo = 0, hi = added->count;
    for (uint32_t depth = 0; depth < len && lo < hi; depth++) {
        int b = (unsigned char)text[depth];
        lo = lower(added, lo, hi, depth, b);
        hi = lower(added, lo, hi, depth, b + 1);
        if (lo < hi && added->list[lo].len == depth + 1)
            best = &added->list[lo];
    }
    return best;
}

const pl__spelling *pl__added_next(const pl__added *added, const char *text, size_t len, size_t *at)
{
    size_t i = *at;
    for (; added->count > 0 && i < len; i++) {
        if (!added->starts[(unsigned char)text[i]])
            continue;
        const pl__spelling *found = longest(added, text + i, len - i);
        if (found) {
            *at = i;
            return found;
        }
    }
    *at = len;
    return NULL;
}

const pl__spelling *pl__added_find(const pl__added *added, const char *bytes, size_t len)
{
    size_t lo = 0, hi = added->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_bytes(added->list[mid].bytes, added->list[mid].len, bytes, len);
        if (c == 0)
            return &added->list[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
