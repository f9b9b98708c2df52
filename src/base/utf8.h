/* UTF-8: one code point at a time, strict. */
#ifndef PL_BASE_UTF8_H
#define PL_BASE_UTF8_H

#include "base/buf.h"

/* Decode the code point at text[0]; n > 0 bytes are there.
 * Returns its length 1..4 with *cp set; or, where the bytes are not UTF-8 (surrogates, overlong forms and values past
 * U+10FFFF included), minus the length of the maximal invalid prefix: the bytes that stand for one U+FFFD. */
int pl_utf8_next(const char *text, size_t n, uint32_t *cp);

/* Could the n bytes (1..3) become a valid character if more bytes followed? */
bool pl_utf8_partial(const char *text, size_t n);

/* Append cp to out as UTF-8: writes 1..4 bytes and returns how many. cp is at most U+10FFFF and no surrogate. */
int pl_utf8_put(uint32_t cp, char out[4]);

/* Offset of the first byte that is not part of valid UTF-8, or len when all of it is. */
size_t pl_utf8_check(const char *text, size_t len);

/* Append text with one U+FFFD for each maximal invalid prefix. The errors of pl_buf_add. */
pl_status pl_utf8_repair(pl_buf *out, const char *text, size_t len, pl_error *err);

#endif
