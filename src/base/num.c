#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pl_parse_i64(const char *text, int64_t min, int64_t max, int64_t *out)
{
    if (!text || !(isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1]))))
        return false;
    errno = 0;
    char *end = NULL;
    long long v = strtoll(text, &end, 10);
    if (errno || *end || v < min || v > max)
        return false;
    *out = v;
    return true;
}

bool pl_parse_f64(const char *text, double min, double max, double *out)
{
    /* Only the plain spellings: no hex floats, no nan, no inf, no leading blanks. */
    if (!text || !*text || strlen(text) > 64 || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    if (text[0] == '+')
        return false;
    errno = 0;
    char *end = NULL;
    double v = strtod(text, &end);
    if (*end || end == text || !isfinite(v) || v < min || v > max)
        return false;
    *out = v;
    return true;
}
