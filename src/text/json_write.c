/* The writer: the spelling of Python's json.dumps(value, ensure_ascii=False), which is what the model was shown. */
#include "text/json_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pl_status pl_json_write_string(const char *bytes, size_t len, pl_buf *out, pl_error *err)
{
    static const char named[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    PL_TRY(pl_buf_addc(out, '"', err));
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        PL_TRY(pl_buf_add(out, bytes + plain, i - plain, err));
        plain = i + 1;
        const char *known = c ? strchr(named, c) : NULL;
        if (known)
            PL_TRY(pl_buf_addf(out, err, "\\%c", letter[known - named]));
        else
            PL_TRY(pl_buf_addf(out, err, "\\u%04x", c));
    }
    PL_TRY(pl_buf_add(out, bytes + plain, len - plain, err));
    return pl_buf_addc(out, '"', err);
}

/* The significant digits of a positive finite double and the power of ten of the first one. */
typedef struct decimal {
    char digits[20]; /* 1..17 of them, NUL-terminated, no trailing zeros */
    int exponent;
} decimal;

static decimal nearest(double v, int precision)
{
    char text[40];
    decimal d = {.exponent = 0};
    int n = 0;
    snprintf(text, sizeof text, "%.*e", precision - 1, v);
    const char *p = text;
    for (; *p && *p != 'e'; p++) { /* skips whatever the locale's decimal point is */
        if (*p >= '0' && *p <= '9' && n < 17)
            d.digits[n++] = *p;
    }
    if (*p == 'e')
        d.exponent = (int)strtol(p + 1, NULL, 10);
    d.digits[n] = '\0';
    return d;
}

/* The next decimal of as many digits. */
static decimal next_up(decimal d)
{
    size_t i = strlen(d.digits);
    while (i > 0 && d.digits[i - 1] == '9')
        d.digits[--i] = '0';
    if (i > 0) {
        d.digits[i - 1]++;
    } else {
        d.digits[0] = '1'; /* 99.. -> 10.. */
        d.exponent++;
    }
    return d;
}

static bool reads_back(const decimal *d, double v)
{
    char text[48];
    snprintf(text, sizeof text, "%c.%se%d", d->digits[0], d->digits[1] ? d->digits + 1 : "0", d->exponent);
    return pl__json_double(text) == v;
}

/* The shortest digits that read back as v, the nearest of them to v: what Python's repr prints. */
static decimal shortest(double v)
{
    int power;
    decimal d;
    if (frexp(v, &power) == 0.5) {
        /* Below a power of two the doubles lie twice as dense, so the nearest decimal may fail where the next one
         * above still reads back. */
        for (int p = 1; p < 17; p++) {
            d = nearest(v, p);
            if (reads_back(&d, v))
                return d;
            d = next_up(d);
            if (reads_back(&d, v))
                return d;
        }
        return nearest(v, 17);
    }
    int low = 1, high = 17; /* high always reads back */
    while (low < high) {
        int mid = (low + high) / 2;
        d = nearest(v, mid);
        if (reads_back(&d, v))
            high = mid;
        else
            low = mid + 1;
    }
    return nearest(v, low);
}

pl_status pl_json_write_double(double value, pl_buf *out, pl_error *err)
{
    if (isnan(value))
        return pl_buf_adds(out, "NaN", err);
    if (signbit(value))
        PL_TRY(pl_buf_addc(out, '-', err));
    if (isinf(value))
        return pl_buf_adds(out, "Infinity", err);
    if (value == 0)
        return pl_buf_adds(out, "0.0", err);
    decimal d = shortest(fabs(value));
    size_t n = strlen(d.digits);
    while (n > 1 && d.digits[n - 1] == '0')
        d.digits[--n] = '\0';
    if (d.exponent < -4 || d.exponent >= 16) {
        const char *rest = d.digits + 1;
        return pl_buf_addf(out, err, "%c%s%se%c%02d", d.digits[0], *rest ? "." : "", rest, d.exponent < 0 ? '-' : '+',
                           abs(d.exponent));
    }
    if (d.exponent < 0)
        return pl_buf_addf(out, err, "0.%.*s%s", -d.exponent - 1, "000", d.digits);
    size_t whole = (size_t)d.exponent + 1;
    if (n <= whole)
        return pl_buf_addf(out, err, "%s%.*s.0", d.digits, (int)(whole - n), "0000000000000000");
    return pl_buf_addf(out, err, "%.*s.%s", (int)whole, d.digits, d.digits + whole);
}

static pl_status write_container(const pl_json *value, pl_buf *out, pl_error *err)
{
    bool object = pl_json_is(value, PL_JSON_OBJECT);
    PL_TRY(pl_buf_addc(out, object ? '{' : '[', err));
    for (pl_json_iter it = {0}; pl_json_each(value, &it);) {
        if (it.index)
            PL_TRY(pl_buf_adds(out, ", ", err));
        if (it.key) {
            PL_TRY(pl_json_write(it.key, out, err));
            PL_TRY(pl_buf_adds(out, ": ", err));
        }
        PL_TRY(pl_json_write(it.value, out, err));
    }
    return pl_buf_addc(out, object ? '}' : ']', err);
}

pl_status pl_json_write(const pl_json *value, pl_buf *out, pl_error *err)
{
    size_t len;
    const char *text = pl_json_string(value, &len);
    switch (pl_json_type_of(value)) {
    case PL_JSON_NULL: return pl_buf_adds(out, "null", err);
    case PL_JSON_FALSE: return pl_buf_adds(out, "false", err);
    case PL_JSON_TRUE: return pl_buf_adds(out, "true", err);
    case PL_JSON_STRING: return pl_json_write_string(text, len, out, err);
    case PL_JSON_REAL: return pl_json_write_double(pl__json_double(text), out, err);
    case PL_JSON_INT:
        if (len == 2 && memcmp(text, "-0", 2) == 0)
            return pl_buf_addc(out, '0', err); /* Python's integers have no negative zero */
        return pl_buf_add(out, text, len, err);
    case PL_JSON_ARRAY:
    case PL_JSON_OBJECT: break;
    }
    return write_container(value, out, err);
}
