/* See json_out.h. */
#include "server/json_out.h"

#include "text/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_out_init(pl_out *out)
{
    pl_buf_init(&out->buf, PL_OUT_MAX, "reply");
    out->failed = false;
}

void pl_out_free(pl_out *out)
{
    pl_buf_free(&out->buf);
}

void pl_out_clear(pl_out *out)
{
    pl_buf_clear(&out->buf);
}

void pl_out_bytes(pl_out *out, const char *bytes, size_t len)
{
    out->failed = out->failed || pl_buf_add(&out->buf, bytes, len, NULL) != PL_OK;
}

void pl_out_raw(pl_out *out, const char *text)
{
    pl_out_bytes(out, text, strlen(text));
}

void pl_out_f(pl_out *out, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        out->failed = true;
    else
        pl_out_bytes(out, text, (size_t)n);
}

void pl_out_string(pl_out *out, const char *bytes, size_t len)
{
    out->failed = out->failed || pl_json_write_string(bytes, len, &out->buf, NULL) != PL_OK;
}

void pl_out_text(pl_out *out, const char *text)
{
    pl_out_string(out, text, strlen(text));
}

void pl_out_real(pl_out *out, double value)
{
    out->failed = out->failed || pl_json_write_double(isfinite(value) ? value : -9999.0, &out->buf, NULL) != PL_OK;
}
