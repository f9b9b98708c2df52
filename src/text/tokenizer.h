/* The tokenizer: text to token ids and back, from a tokenizer.json with a byte-level BPE and the DeepSeek splits.
 *
 * Once loaded it never changes, so any number of threads may use one tokenizer at a time without a lock. */
#ifndef PL_TEXT_TOKENIZER_H
#define PL_TEXT_TOKENIZER_H

#include "base/buf.h"
#include "text/ids.h"

typedef struct pl_tokenizer pl_tokenizer;

enum {
    PL_TOKENIZER_FILE_MAX = 64 << 20, /* bytes of a tokenizer.json */
    PL_TOKENIZER_IDS_MAX = 1 << 22,   /* ids are below this */
    PL_TOKEN_BYTES_MAX = 4096,        /* bytes of one token, added tokens included */
    PL_ENCODE_BYTES_MAX = 64 << 20    /* bytes of one text */
};

/* Read a tokenizer.json. Strict: whatever of the file this code does not implement (another model type, normaliser,
 * pre-tokenizer, regular expression, an option switched on) is PL_EFORMAT with its name, as is a file that
 * contradicts itself. PL_ENOTFOUND, PL_EIO, PL_ELIMIT (a cap above), PL_ENOMEM. *out is NULL on failure. */
pl_status pl_tokenizer_load(pl_tokenizer **out, const char *path, pl_error *err);

/* The same from memory; json is not kept. where names the source in error messages. */
pl_status pl_tokenizer_parse(pl_tokenizer **out, const char *json, size_t len, const char *where, pl_error *err);

/* Free it; NULL is allowed. */
void pl_tokenizer_close(pl_tokenizer *tok);

/* Bytes of memory that it holds. */
size_t pl_tokenizer_bytes(const pl_tokenizer *tok);

/* One more than the highest id; ids below it may be unused (only in files with gaps). */
int32_t pl_tokenizer_size(const pl_tokenizer *tok);

/* The name of the file that it was read from, for messages; owned by tok. */
const char *pl_tokenizer_where(const pl_tokenizer *tok);

/* SHA-256 of the file that it was read from, 32 bytes owned by tok. */
const unsigned char *pl_tokenizer_sha256(const pl_tokenizer *tok);

/* Append the ids of text to out. The text may hold any character, NUL included, and need not end in NUL. No id is
 * added in front or behind.
 *   match_added: cut the spellings of added tokens ("<|User|>" and the like) out first, as the reference library does;
 *   false: everything is plain text, so no text can become a control token.
 * Text must be UTF-8 (no surrogates, no overlong forms): PL_EFORMAT with the offset of the first byte at fault. A
 * caller with other bytes replaces them first (pl_utf8_repair in base/utf8.h). PL_ELIMIT past PL_ENCODE_BYTES_MAX or
 * the cap of out, PL_ENOMEM. out is unchanged on failure. */
pl_status pl_tokenizer_encode(const pl_tokenizer *tok, const char *text, size_t len, bool match_added, pl_ids *out,
                              pl_error *err);

/* One token. Its bytes may be part of a character only; those of an added token are its spelling. */
typedef struct pl_token {
    const char *bytes; /* len bytes, owned by the tokenizer, no NUL behind them */
    size_t len;
    bool added;   /* an added token: never produced from plain text */
    bool special; /* an added token that is marked special: skip_special drops it */
} pl_token;

/* The token with this id; false (and *out untouched) when no token has it. */
bool pl_tokenizer_token(const pl_tokenizer *tok, int32_t id, pl_token *out);

/* Append the bytes of ids[0..n) to out; they need not be UTF-8. PL_EINVAL, with the index as offset, for an id without
 * a token; the errors of pl_buf_add. out is unchanged on failure. */
pl_status pl_tokenizer_decode(const pl_tokenizer *tok, const int32_t *ids, size_t n, bool skip_special, pl_buf *out,
                              pl_error *err);

/* The id of the added token with exactly this spelling, or -1. */
int32_t pl_tokenizer_find(const pl_tokenizer *tok, const char *content);

#endif
