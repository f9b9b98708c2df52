#include "base/buf.h"

#include "base/num.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pl_buf_init(pl_buf *buf, size_t cap, const char *name)
{
    *buf = (pl_buf){.cap = cap, .name = name};
}

void pl_buf_free(pl_buf *buf)
{
    free(buf->data);
    pl_buf_init(buf, buf->cap, buf->name);
}

void pl_buf_clear(pl_buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

pl_status pl_buf_reserve(pl_buf *buf, size_t n, pl_error *err)
{
    size_t need;
    if (!pl_add_size(buf->len, n, &need) || need > buf->cap)
        return pl_fail(err, PL_ELIMIT, "%s: more than %zu bytes", buf->name, buf->cap);
    if (need < buf->room)
        return PL_OK;
    size_t room = buf->room ? buf->room : 64;
    while (room <= need)
        room = room > SIZE_MAX / 2 ? need + 1 : room * 2;
    char *data = realloc(buf->data, room);
    if (!data)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for %zu bytes", buf->name, room);
    buf->data = data;
    buf->room = room;
    data[buf->len] = '\0';
    return PL_OK;
}

pl_status pl_buf_add(pl_buf *buf, const void *bytes, size_t n, pl_error *err)
{
    PL_TRY(pl_buf_reserve(buf, n, err));
    if (n)
        memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
    return PL_OK;
}

pl_status pl_buf_adds(pl_buf *buf, const char *text, pl_error *err)
{
    return pl_buf_add(buf, text, strlen(text), err);
}

pl_status pl_buf_addc(pl_buf *buf, char c, pl_error *err)
{
    return pl_buf_add(buf, &c, 1, err);
}

pl_status pl_buf_addf(pl_buf *buf, pl_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return pl_fail(err, PL_EINVAL, "%s: bad format", buf->name);
    PL_TRY(pl_buf_reserve(buf, (size_t)n, err));
    va_start(ap, fmt);
    vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf->len += (size_t)n;
    return PL_OK;
}

void pl_buf_fit(pl_buf *buf)
{
    if (!buf->data || buf->room == buf->len + 1)
        return;
    char *data = realloc(buf->data, buf->len + 1);
    if (!data) /* it stays as large as it is */
        return;
    buf->data = data;
    buf->room = buf->len + 1;
}

void pl_buf_consume(pl_buf *buf, size_t n)
{
    if (n > buf->len)
        n = buf->len;
    if (!n)
        return;
    memmove(buf->data, buf->data + n, buf->len - n);
    buf->len -= n;
    buf->data[buf->len] = '\0';
}
