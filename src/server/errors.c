/* See errors.h. */
#include "server/errors.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

void pl_refusal_make(pl_refusal *r, int status, const char *code, const char *fmt, ...)
{
    *r = (pl_refusal){.status = status, .type = type_of(status), .code = code, .retry_after_s = status == 503 ? 10 : 0};
    va_list args;
    va_start(args, fmt);
    char text[sizeof r->message + 3];
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pl_printable(r->message, sizeof r->message, text, strlen(text));
}

void pl_refusal_from(pl_refusal *r, const pl_error *err)
{
    static const struct {
        pl_status from;
        int status;
        const char *code;
        int retry_after_s;
    } table[] = {
        {PL_EINVAL, 400, NULL, 0},
        {PL_EFORMAT, 400, NULL, 0},
        {PL_ELIMIT, 400, NULL, 0},
        {PL_EBUSY, 429, "queue_full", 2},
        {PL_ECANCELED, 503, "shutting_down", 10},
        {PL_ENOMEM, 503, "out_of_memory", 10},
    };
    *r = (pl_refusal){.status = 500, .code = "engine_failed"};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].from == err->status) {
            r->status = table[i].status;
            r->code = table[i].code;
            r->retry_after_s = table[i].retry_after_s;
        }
    r->type = type_of(r->status);
    memcpy(r->message, err->message, sizeof r->message);
    memcpy(r->param, err->param, sizeof r->param);
}

void pl_refusal_write(const pl_refusal *r, pl_out *out)
{
    pl_out_raw(out, "{\"error\": {\"message\": ");
    pl_out_text(out, r->message);
    pl_out_f(out, ", \"type\": \"%s\", \"param\": ", r->type);
    if (*r->param)
        pl_out_text(out, r->param);
    else
        pl_out_raw(out, "null");
    if (r->code)
        pl_out_f(out, ", \"code\": \"%s\"", r->code);
    else
        pl_out_raw(out, ", \"code\": null");
    if (r->context)
        pl_out_f(out, ", \"n_prompt_tokens\": %zu, \"n_ctx\": %d", r->prompt_tokens, r->context);
    pl_out_raw(out, "}}");
}

void pl_refusal_reply(const pl_refusal *r, pl_http_conn *conn)
{
    pl_out out;
    pl_out_init(&out);
    pl_refusal_write(r, &out);
    char headers[64] = "";
    if (r->retry_after_s)
        snprintf(headers, sizeof headers, "Retry-After: %d\r\n", r->retry_after_s);
    pl_http_reply(conn, r->status, "application/json", headers, out.buf.data, out.buf.len);
    pl_out_free(&out);
}
