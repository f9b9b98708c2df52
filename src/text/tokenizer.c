#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/pretokenize.h"
#include "text/tokenizer_impl.h"

void pl_tokenizer_close(pl_tokenizer *tok)
{
    if (!tok)
        return;
    free(tok->tokens);
    pl_buf_free(&tok->bytes);
    pl__bpe_free(&tok->bpe);
    pl__added_free(&tok->first);
    pl__added_free(&tok->second);
    free(tok->where);
    free(tok);
}

size_t pl_tokenizer_bytes(const pl_tokenizer *tok)
{
    return sizeof *tok + strlen(tok->where) + 1 + (size_t)tok->size * sizeof *tok->tokens + tok->bytes.room +
           pl__bpe_bytes(&tok->bpe) + (tok->first.room + tok->second.room) * sizeof *tok->first.list;
}

int32_t pl_tokenizer_size(const pl_tokenizer *tok)
{
    return tok->size;
}

const char *pl_tokenizer_where(const pl_tokenizer *tok)
{
    return tok->where;
}

const unsigned char *pl_tokenizer_sha256(const pl_tokenizer *tok)
{
    return tok->sha256;
}

uint32_t pl__byte_letter(unsigned char byte)
{
    if (byte <= ' ')
        return 0x100u + byte;
    if (byte < 0x7f)
        return byte;
    if (byte <= 0xa0)
        return 0x121u + (byte - 0x7fu);
    return byte == 0xad ? 0x143 : byte;
}

int pl__letter_byte(uint32_t cp)
{
    if (cp > ' ' && cp < 0x7f)
        return (int)cp;
    if (cp > 0xa0 && cp <= 0xff && cp != 0xad)
        return (int)cp;
    if (cp >= 0x100 && cp <= 0x120)
        return (int)cp - 0x100;
    if (cp >= 0x121 && cp <= 0x142)
        return (int)cp - 0x121 + 0x7f;
    return cp == 0x143 ? 0xad : -1;
}

/* One encode: the text cut by the first kind of added tokens, the parts by the second kind, these by the splits. */
typedef struct encoding {
    const pl_tokenizer *tok;
    pl__bpe_work *work;
    pl_ids *out;
    pl_error *err;
} encoding;

static pl_status encode_plain(const encoding *e, const char *text, size_t len)
{
    pl_splitter split;
    size_t start, end;
    pl_splitter_init(&split, text, len);
    while (pl_splitter_next(&split, &start, &end))
        PL_TRY(pl__bpe_encode(&e->tok->bpe, e->work, text + start, end - start, e->out, e->err));
    return PL_OK;
}

static pl_status encode_second(const encoding *e, const char *text, size_t len)
{
    for (size_t at = 0, from = 0; from < len; from = at) {
        const pl__spelling *found = pl__added_next(&e->tok->second, text, len, &at);
        PL_TRY(encode_plain(e, text + from, at - from));
        if (!found)
            break;
        PL_TRY(pl_ids_push(e->out, found->id, e->err));
        at += found->len;
    }
    return PL_OK;
}

static pl_status encode_first(const encoding *e, const char *text, size_t len)
{
    for (size_t at = 0, from = 0; from < len; from = at) {
        const pl__spelling *found = pl__added_next(&e->tok->first, text, len, &at);
        PL_TRY(encode_second(e, text + from, at - from));
        if (!found)
            break;
        PL_TRY(pl_ids_push(e->out, found->id, e->err));
        at += found->len;
    }
    return PL_OK;
}

pl_status pl_tokenizer_encode(const pl_tokenizer *tok, const char *text, size_t len, bool match_added, pl_ids *out,
                              pl_error *err)
{
    if (len == 0)
        return PL_OK;
    if (len > PL_ENCODE_BYTES_MAX)
        return pl_fail(err, PL_ELIMIT, "the text has %zu bytes, at most %d can be tokenized at once", len,
                       PL_ENCODE_BYTES_MAX);
    size_t good = pl_utf8_check(text, len);
    if (good < len)
        return pl_fail_at(err, PL_EFORMAT, (int64_t)good, "the text is not UTF-8: byte 0x%02x at offset %zu",
                          (unsigned char)text[good], good);
    /* No token is longer than the longest: a text that cannot fit the list is refused before the work, not after. */
    if (len / tok->longest > out->cap - out->len)
        return pl_fail(err, PL_ELIMIT, "the text has more than %zu tokens", out->cap);
    encoding e = {.tok = tok, .work = pl__bpe_work_open(len), .out = out, .err = err};
    if (!e.work)
        return pl_fail(err, PL_ENOMEM, "no memory to tokenize %zu bytes", len);
    size_t before = out->len;
    pl_status status = match_added ? encode_first(&e, text, len) : encode_plain(&e, text, len);
    pl__bpe_work_close(e.work);
    if (status != PL_OK)
        out->len = before;
    return status;
}

bool pl_tokenizer_token(const pl_tokenizer *tok, int32_t id, pl_token *out)
{
    if (id < 0 || id >= tok->size || !(tok->tokens[id].flags & PL__TOKEN_HERE))
        return false;
    const pl__token *t = &tok->tokens[id];
    *out = (pl_token){
        .bytes = tok->bytes.data + t->at,
        .len = t->len,
        .added = (t->flags & PL__TOKEN_ADDED) != 0,
        .special = (t->flags & PL__TOKEN_SPECIAL) != 0,
    };
    return true;
}

pl_status pl_tokenizer_decode(const pl_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special, pl_buf *out,
                              pl_error *err)
{
    size_t before = out->len;
    for (size_t i = 0; i < n; i++) {
        pl_token t;
        pl_status status = PL_OK;
        if (!pl_tokenizer_token(tok, ids[i], &t))
            status = pl_fail_at(err, PL_EINVAL, (int64_t)i,
                                "id %d at index %zu has no token: the tokenizer's ids are 0 to %d", (int)ids[i], i,
                                (int)tok->size - 1);
        else if (!(skip_special && t.special))
            status = pl_buf_add(out, t.bytes, t.len, err);
        if (status != PL_OK) {
            out->len = before;
            if (out->data)
                out->data[before] = '\0';
            return status;
        }
    }
    return PL_OK;
}

int32_t pl_tokenizer_find(const pl_tokenizer *tok, const char *content)
{
    size_t len = strlen(content);
    const pl__spelling *found = pl__added_find(&tok->first, content, len);
    if (!found)
        found = pl__added_find(&tok->second, content, len);
    return found ? found->id : -1;
}
