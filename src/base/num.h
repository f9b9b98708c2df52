/* Sizes are multiplied with overflow checks; text becomes a number whole or not at all. */
#ifndef PL_BASE_NUM_H
#define PL_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *out = a * b (or a + b); false, with *out untouched, when the result does not fit. */
static inline bool pl_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool pl_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* The whole of text as a decimal integer in [min, max]; false (and *out untouched) for anything else. */
bool pl_parse_i64(const char *text, int64_t min, int64_t max, int64_t *out);

/* The whole of text as a finite decimal number in [min, max]; false (and *out untouched) for anything else.
 * Independent of the locale's decimal point. */
bool pl_parse_f64(const char *text, double min, double max, double *out);

#endif
