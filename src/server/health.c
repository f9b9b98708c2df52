/* GET /health: 200 when requests are taken, else 503 and why. */
#include "server/server_int.h"

void pl__health(pl_server *s, pl_http_conn *conn)
{
    pl_out out;
    pl_error fault;
    pl_engine_counts counts = {0};
    const char *state = s->stopping ? "stopping" : !s->host ? "loading" : "ok";
    bool failed = s->host && pl_engine_fault(pl_host_engine(s->host), &fault);
    if (failed)
        state = "failed";
    if (s->host)
        pl_engine_counts_now(pl_host_engine(s->host), &counts);
    pl_out_init(&out);
    pl_out_f(&out, "{\"status\": \"%s\"", state);
    if (failed) {
        pl_out_raw(&out, ", \"error\": ");
        pl_out_text(&out, fault.message);
    }
    pl_out_raw(&out, ", \"model\": ");
    pl_out_text(&out, s->name);
    if (s->host)
        pl_out_f(&out, ", \"running\": %zu, \"waiting\": %zu", counts.running, counts.waiting);
    pl_out_raw(&out, "}");
    bool ok = s->host && !failed && !s->stopping;
    pl_http_reply(conn, ok ? 200 : 503, "application/json", ok ? NULL : "Retry-After: 2\r\n", out.buf.data,
                  out.buf.len);
    pl_out_free(&out);
}
