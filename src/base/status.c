#include "base/status.h"

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

/* vsnprintf cuts at a byte; drop the incomplete UTF-8 sequence that the cut may leave at the end. */
static void cut_at_border(char *text, size_t cap)
{
    size_t len = strlen(text);
    if (len + 1 < cap)
        return;
    size_t i = len;
    while (i > 0 && ((unsigned char)text[i - 1] & 0xC0) == 0x80)
        i--;
    if (i == 0)
        return;
    unsigned char lead = (unsigned char)text[i - 1];
    size_t whole = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (len - (i - 1) < whole)
        text[i - 1] = '\0';
}

static pl_status fill(pl_error *err, pl_status status, const char *param, int64_t offset, const char *fmt, va_list ap)
{
    if (!err)
        return status;
    err->status = status;
    err->offset = offset;
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    cut_at_border(err->message, sizeof err->message);
    snprintf(err->param, sizeof err->param, "%s", param ? param : "");
    cut_at_border(err->param, sizeof err->param);
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
