/* GET /v1/models and GET /v1/models/ID. */
#include "server/server_int.h"

#include "base/utf8.h"

#include <string.h>

static void put_model(const pl_server *s, pl_out *out, const char *id, size_t len)
{
    pl_out_raw(out, "{\"id\": ");
    pl_out_string(out, id, len);
    pl_out_f(out,
             ", \"object\": \"model\", \"created\": %lld, \"owned_by\": \"paceline\", \"context_length\": %d, "
             "\"max_model_len\": %d}",
             (long long)s->started, s->env.context, s->env.context);
}

void pl__models(pl_server *s, pl_http_conn *conn)
{
    pl_out out;
    pl_out_init(&out);
    pl_out_raw(&out, "{\"object\": \"list\", \"data\": [");
    put_model(s, &out, s->name, strlen(s->name));
    pl_out_raw(&out, "]}");
    pl_http_reply(conn, 200, "application/json", NULL, out.buf.data, out.buf.len);
    pl_out_free(&out);
}

/* Requests may use any name unless names are strict, so any name is a model here. */
void pl__model(pl_server *s, pl_http_conn *conn, const char *id, size_t len)
{
    bool ours = len == strlen(s->name) && memcmp(id, s->name, len) == 0;
    if (pl_utf8_check(id, len) != len || (s->settings.strict_name && !ours)) {
        pl_refusal refusal;
        pl_refusal_make(&refusal, 404, "model_not_found", "the model \"%.*s\" is not here, only \"%.100s\"",
                        (int)(len < 100 ? len : 100), id, s->name);
        pl_refusal_reply(&refusal, conn);
        return;
    }
    pl_out out;
    pl_out_init(&out);
    put_model(s, &out, id, len);
    pl_http_reply(conn, 200, "application/json", NULL, out.buf.data, out.buf.len);
    pl_out_free(&out);
}
