#include "text/token_map.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

enum {
    /* Compatibility decomposition makes at most 18 code points of one (U+FDFA), which takes 3 bytes. */
    POINTS_MAX = PL_TOKEN_BYTES_MAX * 6,
    KEY_MAX = POINTS_MAX * 4,
    /* Stands for the lone space while the ends are trimmed; the rule's own choice, so text with it reads as space. */
    SENTINEL = 0xe000
};

typedef struct key {
    size_t at;
    uint32_t len;
    uint32_t class;
} key;

/* The keys seen so far, and the scratch of one key. */
typedef struct builder {
    key *slots; /* open addressing; len 0 with class UINT32_MAX: empty */
    size_t mask;
    pl_buf bytes; /* of all keys */
    uint32_t classes;
    utf8proc_int32_t *points; /* [POINTS_MAX] */
    char *text;               /* [KEY_MAX] the key in the making */
} builder;

static void builder_free(builder *b)
{
    free(b->slots);
    free(b->points);
    free(b->text);
    pl_buf_free(&b->bytes);
}

static pl_status builder_init(builder *b, size_t ids, pl_error *err)
{
    size_t slots = 64;
    while (slots / 2 < ids)
        slots *= 2;
    *b = (builder){.mask = slots - 1};
    pl_buf_init(&b->bytes, (size_t)PL_TOKENIZER_FILE_MAX * 8, "the keys of a token map");
    b->slots = malloc(slots * sizeof *b->slots);
    b->points = malloc(POINTS_MAX * sizeof *b->points);
    b->text = malloc(KEY_MAX);
    if (!b->slots || !b->points || !b->text) {
        builder_free(b);
        return pl_fail(err, PL_ENOMEM, "no memory for the token map of %zu ids", ids);
    }
    for (size_t i = 0; i < slots; i++)
        b->slots[i] = (key){.class = UINT32_MAX};
    return PL_OK;
}

/* The class of a key, a new one when it was not seen before. */
static pl_status class_of(builder *b, const char *text, size_t len, uint32_t *class, pl_error *err)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    for (size_t at = (h ^ h >> 32) & b->mask;; at = (at + 1) & b->mask) {
        key *k = &b->slots[at];
        if (k->class == UINT32_MAX) {
            *k = (key){.at = b->bytes.len, .len = (uint32_t)len, .class = b->classes};
            *class = b->classes++;
            return pl_buf_add(&b->bytes, text, len, err);
        }
        if (k->len == len && (len == 0 || memcmp(b->bytes.data + k->at, text, len) == 0)) {
            *class = k->class;
            return PL_OK;
        }
    }
}

/* The reference lowers each character by itself, in full; U+0130 alone becomes two (Unicode SpecialCasing). */
static size_t lower(utf8proc_int32_t cp, char *out)
{
    if (cp == 0x130) {
        memcpy(out, "i\xcc\x87", 3);
        return 3;
    }
    return (size_t)pl_utf8_put((uint32_t)utf8proc_tolower(cp), out);
}

static bool is_blank(utf8proc_int32_t cp)
{
    return cp == ' ' || cp == '\t' || cp == '\r' || cp == '\n';
}

/* Without marks, in lower case, runs of blanks as one space: the length written to b->text. */
static size_t fold(builder *b, size_t points)
{
    size_t n = 0;
    bool blank = false; /* the last character written came of blanks */
    for (size_t i = 0; i < points; i++) {
        utf8proc_int32_t cp = b->points[i];
        if (pl_unicode_class((uint32_t)cp) == PL_U_MARK)
            continue;
        if (!is_blank(cp))
            n += lower(cp, b->text + n);
        else if (!blank)
            b->text[n++] = ' ';
        blank = is_blank(cp);
    }
    return n;
}

/* Trim White_Space at both ends and write a space for the sentinel: the length, text moved to the start of b->text. */
static size_t trim(builder *b, size_t n)
{
    if (n == 1 && b->text[0] == ' ')
        return 1;
    size_t out = 0, keep = 0; /* keep: the length up to the last character that is no space */
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0;
        int len = pl_utf8_next(b->text + at, n - at, &cp);
        pl_uclass cls = pl_unicode_class(cp);
        bool space = cls == PL_U_SPACE || cls == PL_U_NEWLINE;
        if (cp == SENTINEL)
            b->text[out++] = ' ';
        else if (!space || keep > 0) {
            memmove(b->text + out, b->text + at, (size_t)len);
            out += (size_t)len;
        }
        if (!space)
            keep = out;
        at += (size_t)len;
    }
    return keep;
}

/* The bytes of plain text: the normalised text, or the text itself where nothing is left of it. */
static pl_status normal_key(builder *b, const pl_tokenizer *tok, const pl_token *t, const char **text, size_t *len,
                            pl_error *err)
{
    /* NFD after NFKC is NFKD. */
    utf8proc_ssize_t points =
        utf8proc_decompose((const utf8proc_uint8_t *)t->bytes, (utf8proc_ssize_t)t->len, b->points, POINTS_MAX,
                           UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    if (points < 0 || points > POINTS_MAX)
        return pl_fail(err, PL_EFAULT, "%s: utf8proc could not decompose a token of %zu bytes: %s", tok->where, t->len,
                       points < 0 ? utf8proc_errmsg(points) : "more code points than its bytes can make");
    size_t n = trim(b, fold(b, (size_t)points));
    *text = n > 0 ? b->text : t->bytes;
    *len = n > 0 ? n : t->len;
    return PL_OK;
}

/* The spelling in the vocabulary file: letters that stand for bytes, or the bytes themselves where it has no such. */
static void spelling_key(builder *b, const pl_token *t, bool verbatim, const char **text, size_t *len)
{
    *text = t->bytes;
    *len = t->len;
    if (verbatim)
        return;
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++)
        n += (size_t)pl_utf8_put(pl__byte_letter((unsigned char)t->bytes[i]), b->text + n);
    *text = b->text;
    *len = n;
}

static pl_status map_one(builder *b, const pl_tokenizer *tok, int32_t id, uint32_t *class, pl_error *err)
{
    pl_token t;
    const char *text = NULL;
    size_t len = 0;
    if (!pl_tokenizer_token(tok, id, &t))
        return pl_fail(err, PL_EFORMAT, "%s: expected a token for each of the ids 0 to %d, found none for id %d",
                       tok->where, (int)pl_tokenizer_size(tok) - 1, (int)id);
    if (pl_utf8_check(t.bytes, t.len) < t.len || memmem(t.bytes, t.len, "\xef\xbf\xbd", 3))
        spelling_key(b, &t, (tok->tokens[id].flags & PL__TOKEN_VERBATIM) != 0, &text, &len);
    else
        PL_TRY(normal_key(b, tok, &t, &text, &len, err));
    return class_of(b, text, len, class, err);
}

pl_status pl_token_map_build(pl_token_map *out, const pl_tokenizer *tok, pl_error *err)
{
    size_t n = (size_t)pl_tokenizer_size(tok);
    builder b;
    *out = (pl_token_map){0};
    PL_TRY(builder_init(&b, n, err));
    pl_status status = PL_OK;
    uint32_t *map = malloc((n + 1) * sizeof *map);
    if (!map)
        status = pl_fail(err, PL_ENOMEM, "no memory for the token map of %zu ids", n);
    for (size_t id = 0; status == PL_OK && id < n; id++)
        status = map_one(&b, tok, (int32_t)id, &map[id], err);
    if (status == PL_OK)
        *out = (pl_token_map){.map = map, .size = n, .classes = b.classes};
    else
        free(map);
    builder_free(&b);
    return status;
}

void pl_token_map_close(pl_token_map *map)
{
    free(map->map);
    *map = (pl_token_map){0};
}
