#include "base/printable.h"

#include "base/utf8.h"

#include <string.h>

/* Characters that move the cursor, end a line or reorder what stands around them. */
static bool shows(uint32_t cp)
{
    return cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0) && !(cp >= 0x200e && cp <= 0x200f) &&
           !(cp >= 0x2028 && cp <= 0x202e) && !(cp >= 0x2066 && cp <= 0x2069);
}

size_t pl_printable(char *out, size_t room, const char *text, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t to = 0;
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        int n = pl_utf8_next(text + at, len - at, &cp);
        bool plain = n > 0 && shows(cp);
        size_t bytes = n > 0 ? (size_t)n : 1, needs = plain ? bytes : 4 * bytes;
        if (needs > room - 1 - to)
            break;
        if (plain)
            memcpy(out + to, text + at, bytes);
        for (size_t i = 0; !plain && i < bytes; i++) {
            unsigned char b = (unsigned char)text[at + i];
            const char escape[4] = {'\\', 'x', hex[b >> 4], hex[b & 15]};
            memcpy(out + to + 4 * i, escape, sizeof escape);
        }
        to += needs;
        at += bytes;
    }
    out[to] = '\0';
    return to;
}
