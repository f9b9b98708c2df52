/* Private to this folder: a strict pull reader for JSON whose shape is known in advance (safetensors headers, the shard
 * index). It builds no tree, so a hostile file of 100 MB costs no memory beyond itself. */
#ifndef PL_CHECKPOINT_SCAN_H
#define PL_CHECKPOINT_SCAN_H

#include "base/status.h"

typedef struct pl__scan {
    const char *start, *p, *end;
    const char *where;  /* the file, for messages */
    const char *tensor; /* the tensor whose entry is read, for messages; NULL: none */
    pl_error *err;
} pl__scan;

/* Failure at the current byte: "WHERE: tensor NAME: byte N: expected EXPECTED, found BYTE". PL_EFORMAT. */
pl_status pl__scan_fail(pl__scan *s, const char *expected);

/* Skip white space; is the next byte c? Then step over it. */
bool pl__scan_take(pl__scan *s, char c);

/* The same, but it must be there. */
pl_status pl__scan_expect(pl__scan *s, char c);

/* A string, escapes decoded, NUL-terminated, into room bytes. A NUL inside, a lone surrogate, a control byte and text
 * that is longer than room - 1 are PL_EFORMAT. */
pl_status pl__scan_string(pl__scan *s, char *out, size_t room);

/* A whole number from 0 to INT64_MAX, in plain digits. */
pl_status pl__scan_uint(pl__scan *s, uint64_t *out);

/* Step over any one value, however long its strings. */
pl_status pl__scan_skip(pl__scan *s);

/* Nothing but white space may be left. */
pl_status pl__scan_end(pl__scan *s);

/* name with every byte outside printable ASCII as '?', cut to room - 1 bytes: for messages. Returns out. */
const char *pl__printable(const char *name, char *out, size_t room);

#endif
