/* Reading a tokenizer.json: what tokenizer_json.c (options) and tokenizer_vocab.c (tokens and merges) share. */
#ifndef PL_TEXT_TOKENIZER_READ_H
#define PL_TEXT_TOKENIZER_READ_H

#include <jansson.h>

#include "text/tokenizer_impl.h"

typedef struct pl__tokfile {
    pl_tokenizer *tok;
    const char *where; /* the file, for messages */
    json_t *root;
    pl_error *err;
} pl__tokfile;

/* Fail with "WHERE: message"; control characters in it become '?', so that the message stays one line. */
pl_status pl__tokfile_bad(const pl__tokfile *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A value in short, for "found ..." */
const char *pl__tokfile_shown(const json_t *value, char out[64]);

/* Fill tok->tokens, bytes, bpe, first and second from model.vocab, model.merges and added_tokens. */
pl_status pl__tokfile_tokens(pl__tokfile *f);

/* Every key of obj must be in the NULL-ended list; `part` names obj in the message. */
pl_status pl__tokfile_keys(const pl__tokfile *f, const json_t *obj, const char *part, const char *const *known);

#endif
