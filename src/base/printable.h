/* Text from outside made fit to be shown: on a terminal, in a log of lines, in JSON. The one place for it. */
#ifndef PL_BASE_PRINTABLE_H
#define PL_BASE_PRINTABLE_H

#include <stddef.h>

/* Write text's len bytes to out[room], room > 0, with a NUL behind them. A control character (C0, DEL, C1), a line or
 * paragraph separator, one that turns the direction of writing, and each byte that is not UTF-8 become \xNN for each of
 * their bytes; all else stays as it is. Cut at a character, or before an escape, where room ends. Returns the bytes
 * written. What it wrote passes through unchanged. */
size_t pl_printable(char *out, size_t room, const char *text, size_t len);

#endif
