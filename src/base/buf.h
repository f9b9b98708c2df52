/* A growable byte buffer that carries its own cap. */
#ifndef PL_BASE_BUF_H
#define PL_BASE_BUF_H

#include "base/status.h"

typedef struct pl_buf {
    char *data;       /* len bytes, then a NUL that is not counted; NULL while empty and never written */
    size_t len;
    size_t room;      /* private: bytes allocated */
    size_t cap;       /* most bytes it may ever hold */
    const char *name; /* what it holds, for the error message; static storage */
} pl_buf;

/* An empty buffer of at most cap bytes. Nothing is allocated until the first append. */
void pl_buf_init(pl_buf *buf, size_t cap, const char *name);

/* Free the bytes; the buffer is empty and usable afterwards. */
void pl_buf_free(pl_buf *buf);

/* Forget the content, keep the allocation. */
void pl_buf_clear(pl_buf *buf);

/* Append n bytes. PL_ELIMIT past the cap, PL_ENOMEM without memory; the buffer is unchanged on failure. */
pl_status pl_buf_add(pl_buf *buf, const void *bytes, size_t n, pl_error *err);
pl_status pl_buf_adds(pl_buf *buf, const char *text, pl_error *err);
pl_status pl_buf_addc(pl_buf *buf, char c, pl_error *err);
pl_status pl_buf_addf(pl_buf *buf, pl_error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Give back the room that is not in use: for a buffer that stays as it is. */
void pl_buf_fit(pl_buf *buf);

/* Drop the first n (at most len) bytes. */
void pl_buf_consume(pl_buf *buf, size_t n);

/* Make sure that n more bytes can be written at data + len; same errors as pl_buf_add. */
pl_status pl_buf_reserve(pl_buf *buf, size_t n, pl_error *err);

#endif
