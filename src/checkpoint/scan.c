#include "checkpoint/scan.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

pl_status pl__scan_fail(pl__scan *s, const char *expected)
{
    int64_t at = s->p - s->start;
    char found[24] = "the end";
    if (s->p < s->end) {
        unsigned char c = (unsigned char)*s->p;
        snprintf(found, sizeof found, c > 32 && c < 127 ? "'%c'" : "byte 0x%02x", c);
    }
    char shown[100] = "";
    if (s->tensor)
        pl__printable(s->tensor, shown, sizeof shown);
    return pl_fail_at(s->err, PL_EFORMAT, at, "%s: %s%s%sbyte %lld: expected %s, found %s", s->where,
                      s->tensor ? "tensor " : "", shown, s->tensor ? ": " : "", (long long)at, expected, found);
}

static void skip_space(pl__scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

bool pl__scan_take(pl__scan *s, char c)
{
    skip_space(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

pl_status pl__scan_expect(pl__scan *s, char c)
{
    char expected[4] = {'\'', c, '\'', 0};
    return pl__scan_take(s, c) ? PL_OK : pl__scan_fail(s, expected);
}

/* Four hex digits at p, -1 when they are none. */
static int hex4(const char *p, const char *end)
{
    int value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char *digit = strchr("0123456789abcdef0123456789ABCDEF", p[i]);
        if (!digit || !p[i])
            return -1;
        value = value * 16 + (int)(digit - "0123456789abcdef0123456789ABCDEF") % 16;
    }
    return value;
}

static size_t utf8(unsigned code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

/* The escape whose backslash was just passed, decoded into out. */
static pl_status scan_escape(pl__scan *s, char out[4], size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *simple = s->p < s->end && *s->p ? strchr(from, *s->p) : NULL;
    if (simple) {
        out[0] = to[simple - from];
        *n = 1;
        s->p++;
        return PL_OK;
    }
    if (s->p == s->end || *s->p != 'u')
        return pl__scan_fail(s, "an escape");
    int code = hex4(s->p + 1, s->end);
    if (code < 0 || (code >= 0xdc00 && code < 0xe000))
        return pl__scan_fail(s, "a \\u escape of a character");
    s->p += 5;
    if (code >= 0xd800 && code < 0xdc00) {
        int low = s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' ? hex4(s->p + 2, s->end) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return pl__scan_fail(s, "the second half of a surrogate pair");
        s->p += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *n = utf8((unsigned)code, out);
    return PL_OK;
}

/* A string; out may be NULL to step over it. */
static pl_status scan_text(pl__scan *s, char *out, size_t room)
{
    PL_TRY(pl__scan_expect(s, '"'));
    size_t len = 0;
    while (s->p < s->end && *s->p != '"') {
        char bytes[4] = {*s->p};
        size_t n = 1;
        if ((unsigned char)*s->p < 0x20)
            return pl__scan_fail(s, "no control byte in a string");
        if (*s->p++ == '\\')
            PL_TRY(scan_escape(s, bytes, &n));
        if (!out)
            continue;
        if (!bytes[0])
            return pl__scan_fail(s, "no NUL in a name");
        if (len + n >= room) {
            char expected[48];
            snprintf(expected, sizeof expected, "a string of at most %zu bytes", room - 1);
            return pl__scan_fail(s, expected);
        }
        memcpy(out + len, bytes, n);
        len += n;
    }
    if (s->p == s->end)
        return pl__scan_fail(s, "the end of a string");
    s->p++;
    if (out)
        out[len] = 0;
    return PL_OK;
}

pl_status pl__scan_string(pl__scan *s, char *out, size_t room)
{
    return scan_text(s, out, room);
}

pl_status pl__scan_uint(pl__scan *s, uint64_t *out)
{
    skip_space(s);
    const char *first = s->p;
    uint64_t value = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        uint64_t digit = (uint64_t)(*s->p - '0');
        if (value > (INT64_MAX - digit) / 10)
            return pl__scan_fail(s, "a number below 2^63");
        value = value * 10 + digit;
    }
    if (s->p == first || (*first == '0' && s->p > first + 1))
        return pl__scan_fail(s, "a whole number");
    *out = value;
    return PL_OK;
}

static pl_status skip_number(pl__scan *s)
{
    const char *first = s->p;
    while (s->p < s->end && *s->p && strchr("+-.0123456789eE", *s->p))
        s->p++;
    return s->p > first ? PL_OK : pl__scan_fail(s, "a value");
}

static pl_status skip_value(pl__scan *s, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    skip_space(s);
    if (depth == MAX_DEPTH)
        return pl__scan_fail(s, "nesting of at most 64 levels");
    if (s->p < s->end && *s->p == '"')
        return scan_text(s, NULL, 0);
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
            s->p += n;
            return PL_OK;
        }
    }
    bool object = pl__scan_take(s, '{');
    if (!object && !pl__scan_take(s, '['))
        return skip_number(s);
    char close = object ? '}' : ']';
    if (pl__scan_take(s, close))
        return PL_OK;
    do {
        if (object) {
            PL_TRY(scan_text(s, NULL, 0));
            PL_TRY(pl__scan_expect(s, ':'));
        }
        PL_TRY(skip_value(s, depth + 1));
    } while (pl__scan_take(s, ','));
    return pl__scan_expect(s, close);
}

pl_status pl__scan_skip(pl__scan *s)
{
    return skip_value(s, 0);
}

pl_status pl__scan_end(pl__scan *s)
{
    skip_space(s);
    return s->p == s->end ? PL_OK : pl__scan_fail(s, "the end");
}

const char *pl__printable(const char *name, char *out, size_t room)
{
    size_t i = 0;
    for (; name[i] && i + 1 < room; i++)
        out[i] = name[i] >= 32 && name[i] < 127 ? name[i] : '?';
    out[i] = 0;
    return out;
}
