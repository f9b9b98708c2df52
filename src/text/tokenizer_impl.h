/* What the tokenizer's files share: its tables, and the map between bytes and the letters that stand for them. */
#ifndef PL_TEXT_TOKENIZER_IMPL_H
#define PL_TEXT_TOKENIZER_IMPL_H

#include "text/added.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

enum { PL__TOKEN_HERE = 1, PL__TOKEN_ADDED = 2, PL__TOKEN_SPECIAL = 4, PL__TOKEN_VERBATIM = 8 };

typedef struct pl__token {
    uint32_t at, len; /* in pl_tokenizer.bytes */
    /* PL__TOKEN_ bits. VERBATIM: not written in the byte alphabet, so the bytes are those of the file. */
    uint32_t flags;
} pl__token;

struct pl_tokenizer {
    pl__token *tokens; /* [size] */
    int32_t size;
    uint32_t longest; /* bytes of the longest token */
    pl_buf bytes;     /* the bytes of all tokens, end to end */
    pl__bpe bpe;
    /* The reference library cuts the text by the added tokens marked "normalized": false first, then what is left by
     * the others: a short one of the first kind wins over a long one of the second. */
    pl__added first, second;
    unsigned char sha256[32];
    char *where; /* its file, for messages */
};

/* The byte alphabet of byte-level BPE: each byte has a visible code point, itself where it is printable Latin-1, else
 * one from U+0100 up, in order. */
uint32_t pl__byte_letter(unsigned char byte);

/* The byte of that letter, or -1 for a code point outside the alphabet. */
int pl__letter_byte(uint32_t cp);

#endif
