/* Errors as the OpenAI API spells them: {"error": {"message", "type", "param", "code"}}. */
#ifndef PL_SERVER_ERRORS_H
#define PL_SERVER_ERRORS_H

#include "server/http.h"
#include "server/json_out.h"

typedef struct pl_refusal {
    int status;
    const char *type; /* "invalid_request_error"; static storage */
    const char *code; /* "context_length_exceeded"; NULL: null */
    char message[512];
    char param[128];   /* "": null */
    int retry_after_s; /* 0: no such header */
    /* with context_length_exceeded: two more fields that clients read */
    size_t prompt_tokens;
    int context;
} pl_refusal;

/* What an error of the engine or of a request reader means to a client: PL_EINVAL, PL_EFORMAT and PL_ELIMIT are the
 * request's fault (400), PL_EBUSY is 429, PL_ECANCELED and PL_ENOMEM are 503, the rest is 500. */
void pl_refusal_from(pl_refusal *refusal, const pl_error *err);
/* One made here. fmt as printf. */
void pl_refusal_make(pl_refusal *refusal, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The JSON object, without a line end. */
void pl_refusal_write(const pl_refusal *refusal, pl_out *out);
/* The whole reply. */
void pl_refusal_reply(const pl_refusal *refusal, pl_http_conn *conn);

#endif
