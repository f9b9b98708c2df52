/* A reply of any bytes, whole, cut in two and byte by byte: the same reasoning and answer, always whole characters.
 * Bytes: flags, number of stop strings, their lengths, where to cut; then the stop strings and the reply. */
#include "base/utf8.h"
#include "text/splitter.h"

#include "base/buf.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct result {
    pl_buf part[2];
    bool stopped;
    size_t index;
} result;

static pl_status collect(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err)
{
    result *r = ctx;
    if (!len || pl_utf8_check(bytes, len) != len || (kind == PL_SPLIT_REASONING && r->part[PL_SPLIT_CONTENT].len))
        __builtin_trap();
    return pl_buf_add(&r->part[kind], bytes, len, err);
}

static void split(const pl_splitter_options *o, const char *text, size_t len, size_t first, size_t rest, result *r)
{
    pl_error err;
    pl_splitter *s;
    *r = (result){0};
    pl_buf_init(&r->part[0], (size_t)64 << 20, "fuzz");
    pl_buf_init(&r->part[1], (size_t)64 << 20, "fuzz");
    if (pl_splitter_new(o, collect, r, &s, &err) != PL_OK || pl_splitter_feed(s, text, first, &err) != PL_OK)
        __builtin_trap();
    for (size_t at = first; at < len; at += rest) {
        if (pl_splitter_feed(s, text + at, rest < len - at ? rest : len - at, &err) != PL_OK)
            __builtin_trap();
    }
    if (pl_splitter_finish(s, &err) != PL_OK)
        __builtin_trap();
    r->stopped = pl_splitter_stopped(s, &r->index);
    pl_splitter_free(s);
}

static void same(const result *a, const result *b)
{
    if (a->stopped != b->stopped || (a->stopped && a->index != b->index))
        __builtin_trap();
    for (int k = 0; k < 2; k++) {
        if (a->part[k].len != b->part[k].len ||
            (a->part[k].len && memcmp(a->part[k].data, b->part[k].data, a->part[k].len) != 0))
            __builtin_trap();
    }
}

static void release(result *r)
{
    pl_buf_free(&r->part[0]);
    pl_buf_free(&r->part[1]);
}

/* The stop strings that stand in front of the reply; returns where the reply starts. */
static size_t take_stops(const uint8_t *data, size_t size, pl_stop stops[PL_SPLIT_STOPS_MAX], size_t *n)
{
    size_t at = 4;
    *n = data[1] % (PL_SPLIT_STOPS_MAX + 1);
    for (size_t i = 0; i < *n; i++) {
        size_t len = data[2] >> i % 5 & 7;
        if (len > size - at)
            len = size - at;
        stops[i] = (pl_stop){(const char *)data + at, len};
        at += len;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    result whole, cut, bytes;
    pl_stop stops[PL_SPLIT_STOPS_MAX];
    if (size < 4)
        return 0;
    pl_splitter_options o = {.in_reasoning = data[0] & 1,
                             .continues = data[0] & 2,
                             .raw = data[0] & 4,
                             .keep_stop = data[0] & 8,
                             .stops = stops};
    size_t at = take_stops(data, size, stops, &o.n_stops);
    const char *text = (const char *)data + at;
    size_t len = size - at;
    split(&o, text, len, len, 1, &whole);
    split(&o, text, len, data[3] < len ? data[3] : len, SIZE_MAX / 2, &cut);
    split(&o, text, len, 0, 1, &bytes);
    same(&whole, &cut);
    same(&whole, &bytes);
    release(&whole);
    release(&cut);
    release(&bytes);
    return 0;
}
