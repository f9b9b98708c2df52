/* Asking a JSON document: members, items, strings, numbers. */
#include "text/json_int.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const pl_json *real(const pl_json *value)
{
    return value->type == PL__JSON_MOVED ? value + value->len : value;
}

const pl_json *pl_json_root(const pl_json_doc *doc)
{
    return doc->nodes;
}

bool pl_json_is(const pl_json *value, pl_json_type type)
{
    return value && value->type == type;
}

bool pl_json_is_bool(const pl_json *value)
{
    return pl_json_is(value, PL_JSON_TRUE) || pl_json_is(value, PL_JSON_FALSE);
}

pl_json_type pl_json_type_of(const pl_json *value)
{
    return (pl_json_type)value->type;
}

const char *pl_json_type_name(const pl_json *value)
{
    static const char *const names[] = {"null", "boolean", "boolean", "number", "number", "string", "array", "object"};
    return value ? names[value->type] : "nothing";
}

int64_t pl_json_offset(const pl_json_doc *doc, const pl_json *value)
{
    if (!value)
        return -1;
    return value->text - doc->text - (value->type == PL_JSON_STRING);
}

bool pl_json_each(const pl_json *container, pl_json_iter *it)
{
    bool object = pl_json_is(container, PL_JSON_OBJECT);
    if (!it->at) {
        if ((!object && !pl_json_is(container, PL_JSON_ARRAY)) || !container->len)
            return false;
        it->at = container + 1;
        it->index = 0;
    } else {
        if (!it->at->next)
            return false;
        it->at += it->at->next;
        it->index++;
    }
    it->key = object ? it->at : NULL;
    it->value = object ? real(it->at + 1) : it->at;
    return true;
}

const pl_json *pl_json_get(const pl_json *value, const char *key)
{
    if (!pl_json_is(value, PL_JSON_OBJECT))
        return NULL;
    for (pl_json_iter it = {0}; pl_json_each(value, &it);) {
        if (pl_json_equals(it.key, key))
            return it.value;
    }
    return NULL;
}

const pl_json *pl_json_get_set(const pl_json *value, const char *key)
{
    const pl_json *v = pl_json_get(value, key);
    return pl_json_is(v, PL_JSON_NULL) ? NULL : v;
}

size_t pl_json_count(const pl_json *value)
{
    return pl_json_is(value, PL_JSON_ARRAY) || pl_json_is(value, PL_JSON_OBJECT) ? value->len : 0;
}

const pl_json *pl_json_at(const pl_json *value, size_t i)
{
    if (!pl_json_is(value, PL_JSON_ARRAY) || i >= value->len)
        return NULL;
    for (value++; i; i--)
        value += value->next;
    return value;
}

static bool is_number(const pl_json *value)
{
    return pl_json_is(value, PL_JSON_INT) || pl_json_is(value, PL_JSON_REAL);
}

const char *pl_json_string(const pl_json *value, size_t *len)
{
    if (!pl_json_is(value, PL_JSON_STRING) && !is_number(value)) {
        *len = 0;
        return NULL;
    }
    *len = value->len;
    return value->text;
}

bool pl_json_equals(const pl_json *value, const char *text)
{
    return pl_json_is(value, PL_JSON_STRING) && value->len == strlen(text) &&
           memcmp(value->text, text, value->len) == 0;
}

bool pl_json_i64(const pl_json *value, int64_t min, int64_t max, int64_t *out)
{
    if (!pl_json_is(value, PL_JSON_INT))
        return false;
    bool negative = value->text[0] == '-';
    int64_t v = 0;
    for (uint32_t i = negative; i < value->len; i++) {
        int64_t d = value->text[i] - '0';
        if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_add_overflow(v, negative ? -d : d, &v))
            return false;
    }
    if (v < min || v > max)
        return false;
    *out = v;
    return true;
}

/* The host program may have set a locale with a decimal comma. */
double pl__json_double(const char *spelling)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* the built-in one: nothing is allocated */
    if (!c_locale)
        return strtod(spelling, NULL);
    double v = strtod_l(spelling, NULL, c_locale);
    freelocale(c_locale);
    return v;
}

bool pl_json_f64(const pl_json *value, double min, double max, double *out)
{
    if (!is_number(value))
        return false;
    double v = pl__json_double(value->text); /* stops at the comma, bracket, blank or NUL that follows */
    if (!isfinite(v) || v < min || v > max)
        return false;
    *out = v;
    return true;
}
