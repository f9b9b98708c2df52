/* Filling the error object. See pl_status and pl_error in paceline.h. */
#ifndef PL_BASE_STATUS_H
#define PL_BASE_STATUS_H

#include "paceline.h"

/* Fill err (which may be NULL) and return status, so that a failing function ends in `return pl_fail(...)`.
 * param becomes "", offset -1. Message and parameter pass through pl_printable: quote outside text as it is. What is
 * longer than the field is cut at a UTF-8 border. */
pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with the parameter at fault (a request field, a setting, a tensor); param may be NULL. */
pl_status pl_fail_param(pl_error *err, pl_status status, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with the byte offset in the input at fault. */
pl_status pl_fail_at(pl_error *err, pl_status status, int64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Pass a failing status on. */
#define PL_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        pl_status pl_try_ = (expr);                                                                                    \
        if (pl_try_ != PL_OK)                                                                                          \
            return pl_try_;                                                                                            \
    } while (0)

#endif
