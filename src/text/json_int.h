/* How a document lies in memory (drawn at the top of json_text.c), for the reader, the accessors and the writer. */
#ifndef PL_TEXT_JSON_INT_H
#define PL_TEXT_JSON_INT_H

#include "text/json_text.h"

/* Types of nodes that are no values. */
enum { PL__JSON_MOVED = 8, PL__JSON_DEAD_KEY = 9 };

struct pl_json {
    const char *text;   /* string bytes, number spelling, or where the value starts */
    uint32_t len;       /* bytes of text; number of children; distance of a MOVED node to the real value */
    unsigned next : 28; /* drawn in json_text.c; 0 ends the chain */
    unsigned type : 4;
};

struct pl_json_doc {
    char *text; /* len bytes and a NUL */
    size_t len;
    pl_json *nodes;
    size_t count;
};

/* The double that a decimal spelling stands for, infinite when it is too large, in the C locale. Reads up to the first
 * byte that is not part of a number. */
double pl__json_double(const char *spelling);

#endif
