#include "base/utf8.h"

/* Length of a character by its lead byte, 0 for a byte that leads none; and the range of the byte behind it, which is
 * where overlong forms, surrogates and values past U+10FFFF show (Unicode 16.0, table 3-7). */
static int lead(unsigned char b, unsigned char *low, unsigned char *high)
{
    *low = 0x80, *high = 0xbf;
    if (b < 0x80)
        return 1;
    if (b < 0xc2)
        return 0;
    if (b < 0xe0)
        return 2;
    if (b < 0xf0) {
        if (b == 0xe0)
            *low = 0xa0;
        if (b == 0xed)
            *high = 0x9f;
        return 3;
    }
    if (b == 0xf0)
        *low = 0x90;
    if (b == 0xf4)
        *high = 0x8f;
    return b < 0xf5 ? 4 : 0;
}

int pl_utf8_next(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    unsigned char low, high;
    int len = lead(s[0], &low, &high);
    if (len == 0)
        return -1;
    uint32_t c = s[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((size_t)i == n || s[i] < low || s[i] > high)
            return -i;
        c = c << 6 | (s[i] & 0x3f);
        low = 0x80, high = 0xbf;
    }
    *cp = c;
    return len;
}

bool pl_utf8_partial(const char *text, size_t n)
{
    uint32_t cp;
    unsigned char low, high;
    if (n == 0 || n > 3)
        return false;
    return lead((unsigned char)text[0], &low, &high) > (int)n && pl_utf8_next(text, n, &cp) == -(int)n;
}

int pl_utf8_put(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t pl_utf8_check(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len) {
        uint32_t cp;
        int n = pl_utf8_next(text + at, len - at, &cp);
        if (n < 0)
            break;
        at += (size_t)n;
    }
    return at;
}

pl_status pl_utf8_repair(pl_buf *out, const char *text, size_t len, pl_error *err)
{
    for (;;) {
        size_t good = pl_utf8_check(text, len);
        PL_TRY(pl_buf_add(out, text, good, err));
        if (good == len)
            return PL_OK;
        uint32_t cp;
        int bad = -pl_utf8_next(text + good, len - good, &cp);
        PL_TRY(pl_buf_adds(out, "\xef\xbf\xbd", err));
        text += good + (size_t)bad;
        len -= good + (size_t)bad;
    }
}
