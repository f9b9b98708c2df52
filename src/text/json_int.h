/* Shared by the reader and the writer of JSON text. */
#ifndef PL_TEXT_JSON_INT_H
#define PL_TEXT_JSON_INT_H

#include "text/json_text.h"

/* The double that a decimal spelling stands for, infinite when it is too large, in the C locale. Reads up to the first
 * byte that is not part of a number. */
double pl__json_double(const char *spelling);

#endif
