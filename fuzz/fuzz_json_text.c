/* A JSON text of any bytes: refused with an offset inside it, or read; what is written of it reads and writes the same
 * again, and every accessor answers on every value. The first byte picks the limits. */
#include "text/json_text.h"

#include <float.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const pl_json_doc *doc, const pl_json *value, size_t len)
{
    size_t n = 1, text;
    int64_t i = 0;
    double d = 0;
    int64_t at = pl_json_offset(doc, value);
    if (at < 0 || (size_t)at >= len)
        __builtin_trap();
    const char *bytes = pl_json_string(value, &text);
    if ((bytes == NULL) !=
        (strcmp(pl_json_type_name(value), "string") != 0 && strcmp(pl_json_type_name(value), "number") != 0))
        __builtin_trap();
    if (pl_json_is(value, PL_JSON_STRING) && bytes[text] != '\0')
        __builtin_trap();
    if (pl_json_i64(value, -100, 100, &i) && (i < -100 || i > 100 || !pl_json_f64(value, -100, 100, &d)))
        __builtin_trap();
    if (pl_json_f64(value, -DBL_MAX, DBL_MAX, &d) && !(d >= -DBL_MAX && d <= DBL_MAX))
        __builtin_trap();
    size_t count = 0;
    for (pl_json_iter it = {0}; pl_json_each(value, &it); count++)
        n += (it.key ? walk(doc, it.key, len) : 0) + walk(doc, it.value, len);
    if (count != pl_json_count(value))
        __builtin_trap();
    return n;
}

static void write_twice(const pl_json_doc *doc)
{
    pl_buf once, twice;
    pl_json_doc *again = NULL;
    pl_error err;
    pl_buf_init(&once, (size_t)64 << 20, "fuzz");
    pl_buf_init(&twice, (size_t)64 << 20, "fuzz");
    if (pl_json_write(pl_json_root(doc), &once, &err) != PL_OK)
        __builtin_trap();
    if (pl_json_parse(once.data, once.len, NULL, &again, &err) == PL_OK) {
        if (pl_json_write(pl_json_root(again), &twice, &err) != PL_OK || once.len != twice.len ||
            memcmp(once.data, twice.data, once.len) != 0)
            __builtin_trap();
    } else if (!memmem(once.data, once.len, "Infinity", 8) && err.status != PL_ELIMIT) {
        __builtin_trap(); /* only a number past the doubles is written as what is no JSON */
    }
    pl_json_free(again);
    pl_buf_free(&once);
    pl_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_json_doc *doc;
    pl_error err;
    pl_json_limits limits = {.max_bytes = 1 << 20, .max_values = 1 << 20, .max_depth = 128};
    if (!size)
        return 0;
    if (data[0] & 1)
        limits = (pl_json_limits){
            .max_bytes = 4096, .max_values = data[0], .max_depth = data[0] >> 4, .max_members = data[0] >> 2};
    pl_status status = pl_json_parse((const char *)data + 1, size - 1, &limits, &doc, &err);
    if (status != PL_OK) {
        if (doc || (status != PL_EFORMAT && status != PL_ELIMIT) || err.offset < 0 || (size_t)err.offset > size - 1 ||
            !err.message[0] || strpbrk(err.message, "\r\n"))
            __builtin_trap();
        return 0;
    }
    if (walk(doc, pl_json_root(doc), size - 1) > limits.max_values)
        __builtin_trap();
    write_twice(doc);
    pl_json_free(doc);
    return 0;
}
