/* The tokens and merges of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer_read.h"

/* Ids may have gaps, but not so many that a small file asks for a large table. */
enum { GAPS_MAX = 1 << 16 };

/* The reference library joins the two halves of a merge, so both fit twice. */
typedef struct halves {
    char left[PL_TOKEN_BYTES_MAX + 1];
    char right[PL_TOKEN_BYTES_MAX + 1];
    char both[2 * PL_TOKEN_BYTES_MAX + 1];
} halves;

static pl_status store(pl__tokfile *f, int32_t id, const char *bytes, size_t len, uint32_t flags)
{
    pl_tokenizer *tok = f->tok;
    pl__token *t = &tok->tokens[id];
    *t = (pl__token){.at = (uint32_t)tok->bytes.len, .len = (uint32_t)len, .flags = flags | PL__TOKEN_HERE};
    if (len > tok->longest)
        tok->longest = (uint32_t)len;
    return pl_buf_add(&tok->bytes, bytes, len, f->err);
}

/* A spelling of the vocabulary as bytes; returns their number, or 0 when a character is outside the byte alphabet. */
static size_t spelled(const char *key, size_t len, char *bytes)
{
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        int step = pl_utf8_next(key + at, len - at, &cp);
        int byte = step > 0 ? pl__letter_byte(cp) : -1;
        if (byte < 0)
            return 0;
        bytes[n++] = (char)byte;
        at += (size_t)step;
    }
    return n;
}

/* The value as an id below PL_TOKENIZER_IDS_MAX, or -1. */
static int32_t id_of(const json_t *value)
{
    if (!json_is_integer(value))
        return -1;
    json_int_t n = json_integer_value(value);
    return n >= 0 && n < PL_TOKENIZER_IDS_MAX ? (int32_t)n : -1;
}

static pl_status make_room(pl__tokfile *f, const json_t *vocab, const json_t *added)
{
    int32_t top = -1;
    char found[64];
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)vocab, key, value)
    {
        int32_t id = id_of(value);
        if (id < 0)
            return pl__tokfile_bad(f,
                                   "model.vocab: the id of \"%.100s\": expected a whole number from 0 to %d, found %s",
                                   key, PL_TOKENIZER_IDS_MAX - 1, pl__tokfile_shown(value, found));
        top = id > top ? id : top;
    }
    json_array_foreach((json_t *)added, i, value)
    {
        int32_t id = id_of(json_object_get(value, "id"));
        if (id < 0)
            return pl__tokfile_bad(f, "added_tokens[%zu].id: expected a whole number from 0 to %d, found %s", i,
                                   PL_TOKENIZER_IDS_MAX - 1, pl__tokfile_shown(json_object_get(value, "id"), found));
        top = id > top ? id : top;
    }
    size_t entries = json_object_size(vocab) + json_array_size(added);
    if ((size_t)top >= entries + GAPS_MAX)
        return pl__tokfile_bad(f, "the highest id is %d, but there are only %zu tokens", (int)top, entries);
    f->tok->size = top + 1;
    f->tok->tokens = calloc((size_t)top + 1, sizeof *f->tok->tokens);
    if (!f->tok->tokens)
        return pl_fail(f->err, PL_ENOMEM, "%s: no memory for %d tokens", f->where, (int)top + 1);
    return PL_OK;
}

static pl_status read_vocab(pl__tokfile *f, const json_t *vocab)
{
    char bytes[PL_TOKEN_BYTES_MAX];
    pl_tokenizer *tok = f->tok;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)vocab, key, value)
    {
        int32_t id = id_of(value);
        size_t len = strlen(key);
        if (len == 0 || len > PL_TOKEN_BYTES_MAX)
            return pl__tokfile_bad(f, "model.vocab: the token with id %d has %zu bytes, expected 1 to %d", (int)id, len,
                                   PL_TOKEN_BYTES_MAX);
        if (tok->tokens[id].flags)
            return pl__tokfile_bad(f, "model.vocab: \"%.100s\" has id %d, as another token has", key, (int)id);
        size_t n = spelled(key, len, bytes);
        PL_TRY(n > 0 ? store(f, id, bytes, n, 0) : store(f, id, key, len, PL__TOKEN_VERBATIM));
        if (n == 1)
            tok->bpe.byte_id[(unsigned char)bytes[0]] = id;
    }
    for (int b = 0; b < 256; b++) /* the reference library would silently drop such bytes of a text */
        if (tok->bpe.byte_id[b] < 0)
            return pl__tokfile_bad(f, "model.vocab: no token for the byte 0x%02x", b);
    return PL_OK;
}

/* Split entry `i` into its halves: "LEFT RIGHT" or ["LEFT", "RIGHT"]. */
static pl_status read_halves(pl__tokfile *f, const json_t *entry, size_t i, halves *h)
{
    const char *left = NULL, *right = NULL;
    size_t left_len = 0, right_len = 0;
    if (json_is_string(entry)) {
        const char *space = strchr(left = json_string_value(entry), ' ');
        if (space) {
            left_len = (size_t)(space - left);
            right = space + 1;
            right_len = strlen(right);
        }
    } else if (json_is_array(entry) && json_array_size(entry) == 2) {
        left = json_string_value(json_array_get(entry, 0));
        right = json_string_value(json_array_get(entry, 1));
        left_len = left ? strlen(left) : 0;
        right_len = right ? strlen(right) : 0;
    }
    if (!left_len || !right_len || left_len > PL_TOKEN_BYTES_MAX || right_len > PL_TOKEN_BYTES_MAX ||
        strchr(right, ' '))
        return pl__tokfile_bad(f, "model.merges[%zu]: expected two tokens, as \"A B\" or [\"A\", \"B\"]", i);
    memcpy(h->left, left, left_len);
    h->left[left_len] = '\0';
    memcpy(h->right, right, right_len + 1);
    memcpy(h->both, left, left_len);
    memcpy(h->both + left_len, right, right_len + 1);
    return PL_OK;
}

/* The vocabulary's id for one part of a merge. */
static pl_status part_id(pl__tokfile *f, const json_t *vocab, size_t i, const char *part, int32_t *id)
{
    *id = id_of(json_object_get(vocab, part));
    if (*id < 0)
        return pl__tokfile_bad(f, "model.merges[%zu]: \"%.100s\" is not in model.vocab", i, part);
    if (f->tok->tokens[*id].flags & PL__TOKEN_VERBATIM)
        return pl__tokfile_bad(f, "model.merges[%zu]: \"%.100s\" is not written in the byte alphabet", i, part);
    return PL_OK;
}

static pl_status read_merges(pl__tokfile *f, const json_t *vocab, const json_t *merges)
{
    halves h;
    json_t *entry;
    size_t i;
    json_array_foreach((json_t *)merges, i, entry)
    {
        int32_t left, right, both;
        PL_TRY(read_halves(f, entry, i, &h));
        PL_TRY(part_id(f, vocab, i, h.left, &left));
        PL_TRY(part_id(f, vocab, i, h.right, &right));
        PL_TRY(part_id(f, vocab, i, h.both, &both));
        if (!pl__bpe_add(&f->tok->bpe, left, right, both))
            return pl__tokfile_bad(f, "model.merges[%zu]: the pair \"%.50s\" \"%.50s\" comes twice", i, h.left,
                                   h.right);
    }
    return PL_OK;
}

/* One flag of an added token. Both values are fine where `on_too`, else only false. */
static pl_status read_flag(pl__tokfile *f, const json_t *entry, size_t i, const char *key, bool on_too, bool *on)
{
    const json_t *v = json_object_get(entry, key);
    if (!json_is_boolean(v))
        return pl__tokfile_bad(f, "added_tokens[%zu]: expected %s true or false", i, key);
    if (json_is_true(v) && !on_too)
        return pl__tokfile_bad(f, "added_tokens[%zu]: %s is not implemented: expected false, found true", i, key);
    *on = json_is_true(v);
    return PL_OK;
}

static pl_status read_added(pl__tokfile *f, const json_t *vocab, const json_t *entry, size_t i)
{
    static const char *const known[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    bool off, normalized, special;
    if (!json_is_object(entry))
        return pl__tokfile_bad(f, "added_tokens[%zu]: expected an object", i);
    PL_TRY(pl__tokfile_keys(f, entry, "added_tokens", known));
    PL_TRY(read_flag(f, entry, i, "single_word", false, &off));
    PL_TRY(read_flag(f, entry, i, "lstrip", false, &off));
    PL_TRY(read_flag(f, entry, i, "rstrip", false, &off));
    PL_TRY(read_flag(f, entry, i, "normalized", true, &normalized));
    PL_TRY(read_flag(f, entry, i, "special", true, &special));
    const json_t *content = json_object_get(entry, "content");
    size_t len = json_string_length(content); /* 0 for anything but a string */
    if (len == 0 || len > PL_TOKEN_BYTES_MAX)
        return pl__tokfile_bad(f, "added_tokens[%zu]: expected a content of 1 to %d bytes", i, PL_TOKEN_BYTES_MAX);
    int32_t id = id_of(json_object_get(entry, "id"));
    const json_t *base = json_object_get(vocab, json_string_value(content));
    uint32_t flags = f->tok->tokens[id].flags;
    if (base ? id_of(base) != id : flags != 0)
        return pl__tokfile_bad(f, "added_tokens[%zu]: id %d of \"%.100s\" does not fit model.vocab or comes twice", i,
                               (int)id, json_string_value(content));
    if (flags & PL__TOKEN_ADDED)
        return pl__tokfile_bad(f, "added_tokens[%zu]: id %d comes twice", i, (int)id);
    flags = PL__TOKEN_ADDED | PL__TOKEN_VERBATIM | (special ? PL__TOKEN_SPECIAL : 0);
    PL_TRY(store(f, id, json_string_value(content), len, flags));
    return pl__added_push(normalized ? &f->tok->second : &f->tok->first,
                          (pl__spelling){.bytes = json_string_value(content), .len = (uint32_t)len, .id = id}, f->err);
}

/* The spellings point into the JSON while they are read, because tok->bytes still moves; now it stands. */
static pl_status seal_added(pl__tokfile *f, pl__added *added, const pl__added *other)
{
    for (size_t i = 0; i < added->count; i++)
        added->list[i].bytes = f->tok->bytes.data + f->tok->tokens[added->list[i].id].at;
    int64_t twice = pl__added_seal(added);
    if (twice >= 0)
        return pl__tokfile_bad(f, "added_tokens: \"%.*s\" comes twice", (int)added->list[twice].len,
                               added->list[twice].bytes);
    for (size_t i = 0; other && i < added->count; i++)
        if (pl__added_find(other, added->list[i].bytes, added->list[i].len))
            return pl__tokfile_bad(f, "added_tokens: \"%.*s\" comes twice", (int)added->list[i].len,
                                   added->list[i].bytes);
    return PL_OK;
}

/* Plain text must never become an added token: not by its first bytes, not by a merge. */
static pl_status check_apart(pl__tokfile *f)
{
    const pl_tokenizer *tok = f->tok;
    for (int b = 0; b < 256; b++)
        if (tok->tokens[tok->bpe.byte_id[b]].flags & PL__TOKEN_ADDED)
            return pl__tokfile_bad(f, "the token of the byte 0x%02x is an added token too", b);
    for (uint32_t i = 0; i < tok->bpe.ranks; i++)
        if (tok->tokens[tok->bpe.merged[i]].flags & PL__TOKEN_ADDED)
            return pl__tokfile_bad(f, "model.merges[%u] makes an added token (id %d)", i, (int)tok->bpe.merged[i]);
    return PL_OK;
}

pl_status pl__tokfile_tokens(pl__tokfile *f)
{
    const json_t *model = json_object_get(f->root, "model");
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(f->root, "added_tokens");
    if (!json_is_object(vocab))
        return pl__tokfile_bad(f, "model.vocab: expected an object");
    if (!json_is_array(merges) || json_array_size(merges) > PL_TOKENIZER_IDS_MAX)
        return pl__tokfile_bad(f, "model.merges: expected an array of at most %d merges", PL_TOKENIZER_IDS_MAX);
    if (added && !json_is_array(added))
        return pl__tokfile_bad(f, "added_tokens: expected an array");
    PL_TRY(make_room(f, vocab, added));
    PL_TRY(pl__bpe_init(&f->tok->bpe, (uint32_t)json_array_size(merges), f->err));
    PL_TRY(read_vocab(f, vocab));
    PL_TRY(read_merges(f, vocab, merges));
    json_t *entry;
    size_t i;
    json_array_foreach((json_t *)added, i, entry) PL_TRY(read_added(f, vocab, entry, i));
    pl_buf_fit(&f->tok->bytes);
    PL_TRY(seal_added(f, &f->tok->first, NULL));
    PL_TRY(seal_added(f, &f->tok->second, &f->tok->first));
    return check_apart(f);
}
