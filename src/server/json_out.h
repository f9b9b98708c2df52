/* Writing a JSON reply into a buffer. A failure (memory, the cap) sticks: write on, ask once at the end. */
#ifndef PL_SERVER_JSON_OUT_H
#define PL_SERVER_JSON_OUT_H

#include "base/buf.h"

typedef struct pl_out {
    pl_buf buf;
    bool failed;
} pl_out;

enum { PL_OUT_MAX = 512 << 20 /* one reply, whole: many choices with all their logprobs */ };

void pl_out_init(pl_out *out);
void pl_out_free(pl_out *out);
void pl_out_clear(pl_out *out);

void pl_out_raw(pl_out *out, const char *text);
void pl_out_bytes(pl_out *out, const char *bytes, size_t len);
void pl_out_f(pl_out *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string, quotes included; bytes are UTF-8. */
void pl_out_string(pl_out *out, const char *bytes, size_t len);
void pl_out_text(pl_out *out, const char *text);
/* A number; what JSON cannot spell becomes -9999.0 (the API's minus infinity). */
void pl_out_real(pl_out *out, double value);

#endif
