#include "checkpoint/safetensors.h"

#include "base/num.h"
#include "checkpoint/inventory.h"
#include "checkpoint/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first five stand in the order of pl_dtype. */
static const struct {
    const char *name;
    int bits;
} types[] = {{"BF16", 16}, {"F32", 32}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I8", 8},      {"U8", 8},     {"BOOL", 8},
             {"F16", 16},  {"F64", 64}, {"I16", 16},    {"U16", 16},    {"I32", 32},    {"U32", 32},   {"I64", 64},
             {"U64", 64},  {"C64", 64}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E5M2", 8}};
enum { TYPES = sizeof types / sizeof *types, MAX_RANK = 32 };

const char *pl_st_type_name(int type)
{
    return types[type].name;
}

const char *pl_shape_text(int rank, const int64_t dim[2], char out[64])
{
    if (rank == 0)
        snprintf(out, 64, "[]");
    else if (rank == 1)
        snprintf(out, 64, "[%lld]", (long long)dim[0]);
    else
        snprintf(out, 64, "[%lld,%lld%s]", (long long)dim[0], (long long)dim[1], rank > 2 ? ",..." : "");
    return out;
}

void pl_safetensors_free(pl_st_header *header)
{
    pl__names_free(&header->names);
    free(header->tensor);
    *header = (pl_st_header){0};
}

static pl_status bad_tensor(const pl__scan *s, const char *name, const char *what)
{
    char shown[100];
    pl__printable(name, shown, sizeof shown);
    return pl_fail_param(s->err, PL_EFORMAT, shown, "%s: tensor %s: %s", s->where, shown, what);
}

static pl_status scan_type(pl__scan *s, const char *name, pl_st_tensor *t)
{
    char text[16], what[64];
    PL_TRY(pl__scan_string(s, text, sizeof text));
    for (t->type = 0; t->type < TYPES; t->type++)
        if (strcmp(types[t->type].name, text) == 0)
            return PL_OK;
    char shown[16];
    snprintf(what, sizeof what, "expected a dtype of the format, found \"%s\"",
             pl__printable(text, shown, sizeof shown));
    return bad_tensor(s, name, what);
}

/* The shape; *values is its product. */
static pl_status scan_shape(pl__scan *s, const char *name, pl_st_tensor *t, uint64_t *values)
{
    *values = 1;
    PL_TRY(pl__scan_expect(s, '['));
    if (pl__scan_take(s, ']'))
        return PL_OK;
    do {
        uint64_t dim;
        PL_TRY(pl__scan_uint(s, &dim));
        if (t->rank == MAX_RANK)
            return bad_tensor(s, name, "more than 32 dimensions");
        if (t->rank < 2)
            t->dim[t->rank] = (int64_t)dim;
        t->rank++;
        if (__builtin_mul_overflow(*values, dim, values))
            return bad_tensor(s, name, "the product of its shape does not fit 64 bits");
    } while (pl__scan_take(s, ','));
    return pl__scan_expect(s, ']');
}

static pl_status scan_offsets(pl__scan *s, pl_st_tensor *t)
{
    PL_TRY(pl__scan_expect(s, '['));
    PL_TRY(pl__scan_uint(s, &t->begin));
    PL_TRY(pl__scan_expect(s, ','));
    PL_TRY(pl__scan_uint(s, &t->end));
    return pl__scan_expect(s, ']');
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...} in any order, each once. */
static pl_status scan_tensor(pl__scan *s, const char *name, uint64_t room, pl_st_tensor *t)
{
    unsigned seen = 0;
    uint64_t values = 0, bits;
    *t = (pl_st_tensor){0};
    PL_TRY(pl__scan_expect(s, '{'));
    do {
        char key[32];
        PL_TRY(pl__scan_string(s, key, sizeof key));
        PL_TRY(pl__scan_expect(s, ':'));
        unsigned bit = strcmp(key, "dtype") == 0 ? 1 : strcmp(key, "shape") == 0 ? 2 : 4;
        if (bit == 4 && strcmp(key, "data_offsets") != 0) {
            char what[96], shown[32];
            snprintf(what, sizeof what, "expected dtype, shape and data_offsets, found \"%s\"",
                     pl__printable(key, shown, sizeof shown));
            return bad_tensor(s, name, what);
        }
        if (seen & bit)
            return bad_tensor(s, name, "dtype, shape or data_offsets given twice");
        seen |= bit;
        PL_TRY(bit == 1 ? scan_type(s, name, t) : bit == 2 ? scan_shape(s, name, t, &values) : scan_offsets(s, t));
    } while (pl__scan_take(s, ','));
    PL_TRY(pl__scan_expect(s, '}'));
    if (seen != 7)
        return bad_tensor(s, name, "dtype, shape or data_offsets missing");
    char what[160], shape[64];
    if (t->begin > t->end || t->end > room) {
        snprintf(what, sizeof what,
                 "expected offsets inside the file's %llu bytes of data, found [%llu,%llu] (truncated file?)",
                 (unsigned long long)room, (unsigned long long)t->begin, (unsigned long long)t->end);
        return bad_tensor(s, name, what);
    }
    if (__builtin_mul_overflow(values, (uint64_t)types[t->type].bits, &bits) || bits % 8 ||
        bits / 8 != t->end - t->begin) {
        snprintf(what, sizeof what, "%s %s does not fill the %llu bytes of its offsets", types[t->type].name,
                 pl_shape_text(t->rank, t->dim, shape), (unsigned long long)(t->end - t->begin));
        return bad_tensor(s, name, what);
    }
    return PL_OK;
}

/* {"key": "value", ...} */
static pl_status scan_metadata(pl__scan *s)
{
    PL_TRY(pl__scan_expect(s, '{'));
    if (pl__scan_take(s, '}'))
        return PL_OK;
    do {
        bool text = pl__scan_take(s, '"');
        if (!text)
            return pl__scan_fail(s, "a text key of __metadata__");
        s->p--;
        PL_TRY(pl__scan_skip(s));
        PL_TRY(pl__scan_expect(s, ':'));
        if (!pl__scan_take(s, '"'))
            return pl__scan_fail(s, "a text value of __metadata__");
        s->p--;
        PL_TRY(pl__scan_skip(s));
    } while (pl__scan_take(s, ','));
    return pl__scan_expect(s, '}');
}

static pl_status store(pl_st_header *header, pl__scan *s, const char *name, const pl_st_tensor *t)
{
    size_t number;
    bool fresh;
    PL_TRY(pl__names_add(&header->names, s->where, name, &number, &fresh, s->err));
    if (!fresh)
        return bad_tensor(s, name, "listed twice in the header");
    if (number >= header->room) {
        size_t room = header->room ? header->room * 2 : 64;
        pl_st_tensor *grown = realloc(header->tensor, room * sizeof *grown);
        if (!grown)
            return pl_fail(s->err, PL_ENOMEM, "%s: no memory for %zu tensors", s->where, room);
        header->tensor = grown;
        header->room = room;
    }
    header->tensor[number] = *t;
    return PL_OK;
}

static pl_status scan_header(pl_st_header *header, pl__scan *s, uint64_t room)
{
    bool metadata = false;
    if (s->p == s->end || *s->p != '{') /* the format allows no space here */
        return pl__scan_fail(s, "'{'");
    s->p++;
    if (pl__scan_take(s, '}'))
        return pl__scan_end(s);
    do {
        char name[PL__MAX_NAME + 1];
        PL_TRY(pl__scan_string(s, name, sizeof name));
        PL_TRY(pl__scan_expect(s, ':'));
        if (strcmp(name, "__metadata__") == 0) {
            if (metadata)
                return bad_tensor(s, name, "listed twice in the header");
            metadata = true;
            PL_TRY(scan_metadata(s));
            continue;
        }
        pl_st_tensor t;
        s->tensor = name;
        PL_TRY(scan_tensor(s, name, room, &t));
        s->tensor = NULL;
        PL_TRY(store(header, s, name, &t));
    } while (pl__scan_take(s, ','));
    PL_TRY(pl__scan_expect(s, '}'));
    return pl__scan_end(s);
}

typedef struct span {
    uint64_t begin, end;
    size_t number;
} span;

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); /* an empty tensor comes before the one that starts with it */
}

static pl_status check_coverage(const pl_st_header *header, const pl__scan *s, uint64_t room)
{
    size_t n = header->names.count;
    span *spans = malloc((n ? n : 1) * sizeof *spans);
    if (!spans)
        return pl_fail(s->err, PL_ENOMEM, "%s: no memory to sort %zu tensors", s->where, n);
    for (size_t i = 0; i < n; i++)
        spans[i] = (span){header->tensor[i].begin, header->tensor[i].end, i};
    qsort(spans, n, sizeof *spans, by_begin);
    pl_status status = PL_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < n && status == PL_OK; i++) {
        if (spans[i].begin != at) {
            char what[128];
            snprintf(what, sizeof what, "expected to begin at byte %llu of the data, found %llu: %s",
                     (unsigned long long)at, (unsigned long long)spans[i].begin,
                     spans[i].begin < at ? "it overlaps another tensor" : "a hole before it");
            status = bad_tensor(s, pl__names_at(&header->names, spans[i].number), what);
        }
        at = spans[i].end;
    }
    free(spans);
    if (status == PL_OK && at != room)
        return pl_fail(s->err, PL_EFORMAT, "%s: expected %llu bytes of data after the header, found %llu", s->where,
                       (unsigned long long)at, (unsigned long long)room);
    return status;
}

pl_status pl_safetensors_parse(pl_st_header *header, const unsigned char *file, size_t size, const char *where,
                               pl_error *err)
{
    *header = (pl_st_header){0};
    uint64_t n = 0;
    if (size < 8)
        return pl_fail(err, PL_EFORMAT, "%s: expected at least 8 bytes, found %zu", where, size);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | file[i];
    if (n > PL_MAX_HEADER_BYTES)
        return pl_fail(err, PL_EFORMAT, "%s: expected a header of at most %d bytes, found %llu", where,
                       PL_MAX_HEADER_BYTES, (unsigned long long)n);
    if (n > size - 8)
        return pl_fail(err, PL_EFORMAT, "%s: expected a header of %llu bytes, the file ends after %zu", where,
                       (unsigned long long)n, size - 8);
    pl__names_init(&header->names, PL_MAX_TENSORS, "tensors");
    header->data = 8 + (size_t)n;
    const char *text = (const char *)file;
    pl__scan s = {.start = text, .p = text + 8, .end = text + header->data, .where = where, .err = err};
    uint64_t room = size - header->data;
    pl_status status = scan_header(header, &s, room);
    if (status == PL_OK)
        status = check_coverage(header, &s, room);
    if (status != PL_OK)
        pl_safetensors_free(header);
    return status;
}
