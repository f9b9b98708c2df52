/* JSON as text: a strict reader that keeps what a prompt needs, and a writer that spells values as Python does.
 *
 * One reader serves the whole request. It keeps the spelling of every number (integers of any size, 1e400), the order
 * of keys and the byte offset of every value; a key given twice keeps its first place and its last value.
 * RFC 8259 exactly: no comments, no trailing commas, no NaN, no leading zeros, no BOM; bytes must be UTF-8. A `\ud800`
 * escape without its partner becomes U+FFFD (clients cut text in the middle of an emoji; a refusal would lock the
 * conversation for ever), raw bytes that are not UTF-8 are refused with their offset.
 *
 * Memory: the input once, plus 16 bytes a value; both are capped. A document is immutable once parsed and may then be
 * read from any thread. */
#ifndef PL_TEXT_JSON_TEXT_H
#define PL_TEXT_JSON_TEXT_H

#include "base/buf.h"

typedef enum pl_json_type {
    PL_JSON_NULL,
    PL_JSON_FALSE,
    PL_JSON_TRUE,
    PL_JSON_INT,  /* a number spelled without '.', 'e' or 'E', of any size */
    PL_JSON_REAL, /* any other number */
    PL_JSON_STRING,
    PL_JSON_ARRAY,
    PL_JSON_OBJECT
} pl_json_type;

typedef struct pl_json pl_json;         /* one value; lives as long as its document */
typedef struct pl_json_doc pl_json_doc; /* a parsed document, owns all its values */

typedef struct pl_json_limits {
    size_t max_bytes;   /* longest input; never 4 GiB or more */
    size_t max_values;  /* most values, keys included; never past 2^28 - 1 */
    unsigned max_depth; /* deepest nesting, never past 1,024; a scalar alone has depth 0 */
    size_t max_members; /* most members of one object, for each is sorted and then searched from its start; 0: no cap */
} pl_json_limits;

/* 64 MiB, 4 Mi values (64 MiB of nodes), 128 deep, 16 Ki members of one object. */
extern const pl_json_limits pl_json_default_limits;

/* Parse the whole of bytes[0..len) as one value. limits may be NULL (the defaults). On PL_OK the caller owns *out and
 * frees it with pl_json_free; bytes are copied and may go away. PL_EFORMAT with the offset of the first wrong byte,
 * PL_ELIMIT past a cap (with the offset where it was reached), PL_ENOMEM; *out is NULL on failure. */
pl_status pl_json_parse(const char *bytes, size_t len, const pl_json_limits *limits, pl_json_doc **out, pl_error *err);
void pl_json_free(pl_json_doc *doc);
const pl_json *pl_json_root(const pl_json_doc *doc);

/* A value may be NULL in every accessor below: it is then of no type, and every question is answered with "no". */
bool pl_json_is(const pl_json *value, pl_json_type type);
bool pl_json_is_bool(const pl_json *value);
/* Only for a value that is not NULL. */
pl_json_type pl_json_type_of(const pl_json *value);
/* "null", "boolean", "number", "string", "array", "object"; "nothing" for NULL. For messages. */
const char *pl_json_type_name(const pl_json *value);
/* Where the value starts in the input, in bytes; -1 for NULL. */
int64_t pl_json_offset(const pl_json_doc *doc, const pl_json *value);

/* The value of key in an object, O(members); NULL when it is absent or value is not an object. `null` is a value. */
const pl_json *pl_json_get(const pl_json *value, const char *key);
/* The same, but NULL for an explicit null too: most request fields treat the two alike. */
const pl_json *pl_json_get_set(const pl_json *value, const char *key);
/* Number of items or members; 0 for anything else. */
size_t pl_json_count(const pl_json *value);
/* Item i of an array, O(i); NULL past its end. Use pl_json_each to walk. */
const pl_json *pl_json_at(const pl_json *value, size_t i);

/* Walk an array or an object: `for (pl_json_iter it = {0}; pl_json_each(v, &it);)`. */
typedef struct pl_json_iter {
    const pl_json *key;   /* a string; NULL in an array */
    const pl_json *value; /* the item or the member's value */
    const pl_json *at;    /* private */
    size_t index;         /* 0 for the first */
} pl_json_iter;
bool pl_json_each(const pl_json *container, pl_json_iter *it);

/* The bytes of a string: UTF-8, *len of them, may hold NUL, and a NUL that is not counted follows. For a number: its
 * spelling (no NUL follows). NULL and *len = 0 for anything else. */
const char *pl_json_string(const pl_json *value, size_t *len);
/* Whether value is the string text (NUL-terminated). */
bool pl_json_equals(const pl_json *value, const char *text);

/* *out = the integer when value is one (spelled as such) in [min, max]; else false with *out untouched. */
bool pl_json_i64(const pl_json *value, int64_t min, int64_t max, int64_t *out);
/* *out = the number when value is one that is finite as a double and in [min, max]; else false, *out untouched. */
bool pl_json_f64(const pl_json *value, double min, double max, double *out);

/* Append value as Python's json.dumps(value, ensure_ascii=False) would spell it after json.loads: ", " and ": ",
 * non-ASCII raw, integers exact, floats as repr (1.0, 1e+16, 1e-05, Infinity for 1e400). Errors: pl_buf_add's. */
pl_status pl_json_write(const pl_json *value, pl_buf *out, pl_error *err);
/* The same for one string of len bytes, quotes included. */
pl_status pl_json_write_string(const char *bytes, size_t len, pl_buf *out, pl_error *err);
/* The same for one double. */
pl_status pl_json_write_double(double value, pl_buf *out, pl_error *err);

#endif
