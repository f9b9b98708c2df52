/* The reader. A document is the input, copied, with strings decoded in place (no escape is shorter than what it stands
 * for), and one flat array of nodes in the order of the text:
 *
 *   [1, {"a": 2}]   ->   ARRAY len 2 | INT "1" next 1 | OBJECT len 1 next 0 | KEY "a" next 0 | INT "2"
 *
 * The first child of a container is the node behind it; `next` is the distance to the next sibling. In an object the
 * siblings are the keys, and a key's value is the node behind the key. While a container is open its `next` holds the
 * distance back to its parent, so nesting needs no stack. A key that came twice keeps its first place: the node of its
 * first value becomes a MOVED one, with the distance to the last value, and the later keys leave the chain. */
#include "text/json_int.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    JSON_NODES_MAX = (1 << 28) - 1, /* what `next` can span */
    JSON_DEPTH_MAX = 1024           /* the writer recurses */
};

const pl_json_limits pl_json_default_limits = {
    .max_bytes = (size_t)64 << 20, .max_values = (size_t)4 << 20, .max_depth = 128, .max_members = 16 << 10};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct reader {
    pl_json_doc *doc;
    pl_json_limits limits;
    size_t at;   /* next byte */
    size_t room; /* nodes allocated */
    pl_error *err;
} reader;

static pl_status wrong(reader *r, size_t at, const char *expected)
{
    const pl_json_doc *doc = r->doc;
    unsigned char c = at < doc->len ? (unsigned char)doc->text[at] : 0;
    if (at >= doc->len)
        return pl_fail_at(r->err, PL_EFORMAT, (int64_t)at, "JSON: expected %s at byte %zu, found the end", expected,
                          at);
    if (c > 0x20 && c < 0x7F)
        return pl_fail_at(r->err, PL_EFORMAT, (int64_t)at, "JSON: expected %s at byte %zu, found '%c'", expected, at,
                          c);
    return pl_fail_at(r->err, PL_EFORMAT, (int64_t)at, "JSON: expected %s at byte %zu, found the byte 0x%02X", expected,
                      at, c);
}

static void skip_blanks(reader *r)
{
    const char *text = r->doc->text;
    while (r->at < r->doc->len &&
           (text[r->at] == ' ' || text[r->at] == '\n' || text[r->at] == '\r' || text[r->at] == '\t'))
        r->at++;
}

/* The next byte, 0 at the end (a NUL byte in the input is never expected, so the two need no telling apart). */
static char peek(const reader *r)
{
    return r->at < r->doc->len ? r->doc->text[r->at] : '\0';
}

static pl_status push(reader *r, unsigned type, const char *text, size_t len)
{
    pl_json_doc *doc = r->doc;
    if (doc->count >= r->limits.max_values)
        return pl_fail_at(r->err, PL_ELIMIT, text - doc->text, "JSON: more than %zu values", r->limits.max_values);
    if (doc->count == r->room) {
        size_t room = r->room ? r->room * 2 : 64;
        if (room > r->limits.max_values)
            room = r->limits.max_values;
        pl_json *nodes = realloc(doc->nodes, room * sizeof *nodes);
        if (!nodes)
            return pl_fail(r->err, PL_ENOMEM, "JSON: no memory for %zu values", room);
        doc->nodes = nodes;
        r->room = room;
    }
    doc->nodes[doc->count++] = (pl_json){.text = text, .len = (uint32_t)len, .next = 0, .type = type & 15};
    return PL_OK;
}

/* The four hex digits of a \u escape at `at`, or -1. */
static int hex4(const reader *r, size_t at)
{
    int v = 0;
    if (r->doc->len < 4 || at > r->doc->len - 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        char c = r->doc->text[at + i];
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

/* The escape at r->at (a backslash); writes its bytes at to and advances *to. */
static pl_status escape(reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    size_t start = r->at++;
    char c = peek(r);
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        *(*to)++ = into[known - from];
        r->at++;
        return PL_OK;
    }
    if (c != 'u')
        return wrong(r, r->at, "one of \"\\/bfnrtu after a backslash");
    int unit = hex4(r, start + 2);
    if (unit < 0)
        return wrong(r, start + 2, "four hex digits after \\u");
    r->at = start + 6;
    uint32_t cp = (uint32_t)unit;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        int low = r->at + 1 < r->doc->len && r->doc->text[r->at] == '\\' && r->doc->text[r->at + 1] == 'u'
                      ? hex4(r, r->at + 2)
                      : -1;
        if (unit <= 0xDBFF && low >= 0xDC00 && low <= 0xDFFF) {
            cp = 0x10000 + (((uint32_t)unit - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
            r->at += 6;
        } else {
            cp = 0xFFFD; /* half a character: see the header */
        }
    }
    *to += pl_utf8_put(cp, *to);
    return PL_OK;
}

static pl_status read_string(reader *r, const char *expected)
{
    char *text = r->doc->text, *start = text + r->at + 1, *to = start;
    if (peek(r) != '"')
        return wrong(r, r->at, expected);
    r->at++;
    for (;;) {
        if (r->at >= r->doc->len)
            return wrong(r, r->at, "the closing quote of a string");
        unsigned char c = (unsigned char)text[r->at];
        if (c == '"')
            break;
        if (c < 0x20)
            return wrong(r, r->at, "an escape for a control character in a string");
        if (c == '\\') {
            PL_TRY(escape(r, &to));
        } else if (c < 0x80) {
            *to++ = text[r->at++];
        } else {
            uint32_t cp;
            int n = pl_utf8_next(text + r->at, r->doc->len - r->at, &cp);
            if (n < 0)
                return wrong(r, r->at, "UTF-8");
            memmove(to, text + r->at, (size_t)n);
            to += n;
            r->at += (size_t)n;
        }
    }
    r->at++;
    *to = '\0'; /* at the closing quote or before it */
    return push(r, PL_JSON_STRING, start, (size_t)(to - start));
}

static size_t digits(reader *r)
{
    size_t start = r->at;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return r->at - start;
}

static pl_status read_number(reader *r)
{
    size_t start = r->at;
    unsigned type = PL_JSON_INT;
    if (peek(r) == '-')
        r->at++;
    size_t first = r->at, n = digits(r);
    if (!n)
        return wrong(r, r->at, "a digit");
    if (n > 1 && r->doc->text[first] == '0')
        return wrong(r, first + 1, "no digit behind a leading zero");
    if (peek(r) == '.') {
        r->at++;
        type = PL_JSON_REAL;
        if (!digits(r))
            return wrong(r, r->at, "a digit behind the decimal point");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        type = PL_JSON_REAL;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        if (!digits(r))
            return wrong(r, r->at, "a digit of the exponent");
    }
    return push(r, type, r->doc->text + start, r->at - start);
}

static pl_status read_word(reader *r, const char *word, unsigned type)
{
    size_t n = strlen(word), start = r->at;
    if (r->doc->len - start < n || memcmp(r->doc->text + start, word, n) != 0)
        return wrong(r, start, "a JSON value");
    r->at += n;
    return push(r, type, r->doc->text + start, 0);
}

static pl_status read_scalar(reader *r)
{
    switch (peek(r)) {
    case '"': return read_string(r, "a string");
    case 't': return read_word(r, "true", PL_JSON_TRUE);
    case 'f': return read_word(r, "false", PL_JSON_FALSE);
    case 'n': return read_word(r, "null", PL_JSON_NULL);
    default: break;
    }
    if (peek(r) == '-' || (peek(r) >= '0' && peek(r) <= '9'))
        return read_number(r);
    return wrong(r, r->at, "a JSON value");
}

static int by_bytes(const void *a, const void *b)
{
    const pl_json *x = *(const pl_json *const *)a, *y = *(const pl_json *const *)b;
    uint32_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->text, y->text, n);
    if (c)
        return c;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x < y ? -1 : x > y; /* equal keys in the order of the text */
}

static bool same_key(const pl_json *a, const pl_json *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* The value of first becomes that of last; last leaves the chain (drop_dead). */
static void supersede(pl_json *first, pl_json *last)
{
    first[1].type = PL__JSON_MOVED;
    first[1].len = (uint32_t)(last - first);
    last->type = PL__JSON_DEAD_KEY;
}

static void drop_dead(pl_json *object)
{
    pl_json *key = object + 1; /* the first key is never dead */
    while (key->next) {
        pl_json *next = key + key->next;
        if (next->type != PL__JSON_DEAD_KEY) {
            key = next;
            continue;
        }
        key->next = next->next ? key->next + next->next : 0;
        object->len--;
    }
}

/* Last value, first place, for every key that came twice. Sorting keeps this n log n for hostile keys. */
static pl_status merge_keys(reader *r, pl_json *object)
{
    enum { FEW = 16 };
    uint32_t n = object->len;
    bool dead = false;
    pl_json *few[FEW], **keys = few;
    if (n < 2)
        return PL_OK;
    if (n > FEW && !(keys = malloc(n * sizeof *keys)))
        return pl_fail(r->err, PL_ENOMEM, "JSON: no memory for an object of %u keys", n);
    pl_json *key = object + 1;
    for (uint32_t i = 0; i < n; i++, key += key->next)
        keys[i] = key;
    qsort(keys, n, sizeof *keys, by_bytes);
    for (uint32_t first = 0; first < n;) {
        uint32_t end = first + 1;
        for (; end < n && same_key(keys[first], keys[end]); end++) {
            supersede(keys[first], keys[end]);
            dead = true;
        }
        first = end;
    }
    if (keys != few)
        free(keys);
    if (dead)
        drop_dead(object);
    return PL_OK;
}

/* Where the walk stands: the open container, and the last item or key in it. Indices, for the nodes may move. */
typedef struct place {
    size_t open, last;
    unsigned depth;
} place;

static pl_status open_container(reader *r, place *p)
{
    if (p->depth >= r->limits.max_depth)
        return pl_fail_at(r->err, PL_ELIMIT, (int64_t)r->at, "JSON: nested deeper than %u at byte %zu",
                          r->limits.max_depth, r->at);
    size_t self = r->doc->count;
    PL_TRY(push(r, peek(r) == '{' ? PL_JSON_OBJECT : PL_JSON_ARRAY, r->doc->text + r->at, 0));
    r->doc->nodes[self].next = p->depth ? (unsigned)(self - p->open) & JSON_NODES_MAX : 0;
    r->at++;
    p->open = self;
    p->depth++;
    return PL_OK;
}

static pl_status close_container(reader *r, place *p)
{
    pl_json *self = r->doc->nodes + p->open;
    size_t parent = p->open - self->next;
    self->next = 0;
    r->at++;
    if (self->type == PL_JSON_OBJECT)
        PL_TRY(merge_keys(r, self));
    p->depth--;
    p->last = p->depth && r->doc->nodes[parent].type == PL_JSON_OBJECT ? p->open - 1 : p->open;
    p->open = parent;
    return PL_OK;
}

/* Enter the child that starts at node `child` into the open container. */
static void link_child(reader *r, place *p, size_t child)
{
    pl_json *nodes = r->doc->nodes;
    if (nodes[p->open].len++)
        nodes[p->last].next = (unsigned)(child - p->last) & JSON_NODES_MAX;
    p->last = child;
}

static bool in_object(const reader *r, const place *p)
{
    return p->depth && r->doc->nodes[p->open].type == PL_JSON_OBJECT;
}

static pl_status read_key(reader *r, place *p)
{
    size_t key = r->doc->count;
    if (r->limits.max_members && r->doc->nodes[p->open].len >= r->limits.max_members)
        return pl_fail_at(r->err, PL_ELIMIT, (int64_t)r->at, "JSON: more than %zu members in one object",
                          r->limits.max_members);
    PL_TRY(read_string(r, "a key in double quotes"));
    link_child(r, p, key);
    skip_blanks(r);
    if (peek(r) != ':')
        return wrong(r, r->at, "':' behind a key");
    r->at++;
    skip_blanks(r);
    return PL_OK;
}

/* Behind a value: commas and closing brackets, until the next value is due or (*done) the text is over. */
static pl_status behind_value(reader *r, place *p, bool *done)
{
    for (;;) {
        skip_blanks(r);
        if (!p->depth) {
            *done = true;
            return r->at == r->doc->len ? PL_OK : wrong(r, r->at, "the end of the text");
        }
        char close = in_object(r, p) ? '}' : ']';
        if (peek(r) == ',') {
            r->at++;
            skip_blanks(r);
            return PL_OK;
        }
        if (peek(r) != close)
            return wrong(r, r->at, close == '}' ? "',' or '}'" : "',' or ']'");
        PL_TRY(close_container(r, p));
    }
}

static pl_status read_document(reader *r)
{
    place p = {0};
    bool done = false;
    skip_blanks(r);
    while (!done) {
        if (in_object(r, &p))
            PL_TRY(read_key(r, &p));
        else if (p.depth)
            link_child(r, &p, r->doc->count);
        if (peek(r) != '{' && peek(r) != '[') {
            PL_TRY(read_scalar(r));
            PL_TRY(behind_value(r, &p, &done));
            continue;
        }
        PL_TRY(open_container(r, &p));
        skip_blanks(r);
        if (peek(r) == (in_object(r, &p) ? '}' : ']')) {
            PL_TRY(close_container(r, &p));
            PL_TRY(behind_value(r, &p, &done));
        }
    }
    return PL_OK;
}

pl_status pl_json_parse(const char *bytes, size_t len, const pl_json_limits *limits, pl_json_doc **out, pl_error *err)
{
    reader r = {.limits = limits ? *limits : pl_json_default_limits, .err = err};
    *out = NULL;
    if (r.limits.max_values > JSON_NODES_MAX)
        r.limits.max_values = JSON_NODES_MAX;
    if (r.limits.max_depth > JSON_DEPTH_MAX)
        r.limits.max_depth = JSON_DEPTH_MAX;
    if (len > r.limits.max_bytes || len >= UINT32_MAX)
        return pl_fail_at(err, PL_ELIMIT, 0, "JSON: %zu bytes, at most %zu are read", len, r.limits.max_bytes);
    pl_json_doc *doc = calloc(1, sizeof *doc);
    if (doc)
        doc->text = malloc(len + 1);
    if (!doc || !doc->text) {
        free(doc);
        return pl_fail(err, PL_ENOMEM, "JSON: no memory for %zu bytes", len);
    }
    if (len)
        memcpy(doc->text, bytes, len);
    doc->text[len] = '\0';
    doc->len = len;
    r.doc = doc;
    pl_status status = read_document(&r);
    if (status != PL_OK) {
        pl_json_free(doc);
        return status;
    }
    pl_json *fit = realloc(doc->nodes, doc->count * sizeof *fit);
    if (fit)
        doc->nodes = fit;
    *out = doc;
    return PL_OK;
}

void pl_json_free(pl_json_doc *doc)
{
    if (!doc)
        return;
    free(doc->nodes);
    free(doc->text);
    free(doc);
}
