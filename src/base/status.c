#include "base/status.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *pl_status_name(pl_status status)
{
    switch (status) {
    case PL_OK: return "ok";
    case PL_EINVAL: return "bad-value";
    case PL_EFORMAT: return "bad-format";
    case PL_EIO: return "io";
    case PL_ENOMEM: return "no-memory";
    case PL_ELIMIT: return "limit";
    case PL_ENOTFOUND: return "not-found";
    case PL_ECANCELED: return "canceled";
    case PL_EBUSY: return "busy";
    case PL_EFAULT: return "fault";
    }
    return "unknown";
}

/* Messages quote what came from outside: names, fields, paths. Every one is made here, so here that becomes fit to be
 * shown. Three bytes more than fit, so that a character that vsnprintf cuts lies behind the end. */
static pl_status fill(pl_error *err, pl_status status, const char *param, int64_t offset, const char *fmt, va_list ap)
{
    char text[sizeof err->message + 3];
    if (!err)
        return status;
    int n = vsnprintf(text, sizeof text, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    err->status = status;
    err->offset = offset;
    pl_printable(err->message, sizeof err->message, text, len);
    pl_printable(err->param, sizeof err->param, param ? param : "", param ? strlen(param) : 0);
    return status;
}

pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(err, status, NULL, -1, fmt, ap);
    va_end(ap);
    return status;
}

pl_status pl_fail_param(pl_error *err, pl_status status, const char *param, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(err, status, param, -1, fmt, ap);
    va_end(ap);
    return status;
}

pl_status pl_fail_at(pl_error *err, pl_status status, int64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fill(err, status, NULL, offset, fmt, ap);
    va_end(ap);
    return status;
}
