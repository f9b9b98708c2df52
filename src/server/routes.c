/* From a request line to the function that answers it. */
#include "server/exchange.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATH_MAX_BYTES = 1024 };

typedef enum route_id {
    ROUTE_NONE,
    ROUTE_INDEX,
    ROUTE_HEALTH,
    ROUTE_MODELS,
    ROUTE_MODEL,
    ROUTE_CHAT,
    ROUTE_COMPLETIONS
} route_id;

static const struct {
    const char *path; /* without /v1 */
    route_id id;
    const char *allow;
} routes[] = {
    {"/", ROUTE_INDEX, "GET, HEAD, OPTIONS"},
    {"/health", ROUTE_HEALTH, "GET, HEAD, OPTIONS"},
    {"/models", ROUTE_MODELS, "GET, HEAD, OPTIONS"},
    {"/models/", ROUTE_MODEL, "GET, HEAD, OPTIONS"}, /* and what follows */
    {"/chat/completions", ROUTE_CHAT, "POST, OPTIONS"},
    {"/completions", ROUTE_COMPLETIONS, "POST, OPTIONS"},
};

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The path of the target: without scheme and host, query, and slashes at its end; %XX decoded. false: it is none. */
static bool read_path(const pl_http_reader *r, char *path, size_t *len)
{
    const char *at = r->head.data + r->target, *end = at + r->target_len;
    if ((size_t)(end - at) > 7 && strncasecmp(at, "http://", 7) == 0) { /* as a client sends it to a proxy */
        at = memchr(at + 7, '/', (size_t)(end - at) - 7);
        if (!at)
            return false;
    }
    size_t n = 0;
    for (; at < end && *at != '?' && *at != '#'; at++) {
        int c = (unsigned char)*at;
        if (c == '%') {
            if (end - at < 3 || hex(at[1]) < 0 || hex(at[2]) < 0)
                return false;
            c = hex(at[1]) * 16 + hex(at[2]);
            at += 2;
        }
        if (n == PATH_MAX_BYTES - 1 || c == 0)
            return false;
        path[n++] = (char)c;
    }
    while (n > 1 && path[n - 1] == '/')
        n--;
    path[n] = '\0';
    *len = n;
    return n > 0 && path[0] == '/';
}

/* The row of a path; *rest: what follows a row that ends in a slash. -1: none. */
static int find_route(const char *path, const char **rest)
{
    if (strncmp(path, "/v1/", 4) == 0)
        path += 3;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        size_t n = strlen(routes[i].path);
        bool open = n > 1 && routes[i].path[n - 1] == '/';
        if (open ? strncmp(path, routes[i].path, n) == 0 && path[n] : strcmp(path, routes[i].path) == 0) {
            *rest = path + n;
            return (int)i;
        }
    }
    return -1;
}

/* Pages on this machine may read our replies; any other page in its user's browser may not. */
static bool local_origin(const char *origin, size_t len)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t scheme = len > 7 && memcmp(origin, "http://", 7) == 0    ? 7
                    : len > 8 && memcmp(origin, "https://", 8) == 0 ? 8
                                                                    : 0;
    if (!scheme)
        return false;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t n = strlen(hosts[i]), at = scheme + n;
        if (len >= at && memcmp(origin + scheme, hosts[i], n) == 0 && (len == at || origin[at] == ':')) {
            for (at += len > at; at < len; at++)
                if (!isdigit((unsigned char)origin[at]))
                    return false;
            return true;
        }
    }
    return false;
}

/* A page of this machine asks: let its browser hand it the reply. */
static void allow_origin(pl_http_conn *conn)
{
    char lines[PL_HTTP_EXTRA_MAX + 1];
    size_t len;
    const char *origin = pl_http_header_get(pl_http_request(conn), "origin", &len);
    if (!origin || len > 200 || !local_origin(origin, len))
        return;
    snprintf(lines, sizeof lines, "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n", (int)len, origin);
    pl_http_set_headers(conn, lines);
}

/* Somebody looks at the address itself: what is behind it. */
static void answer_index(pl_http_conn *conn)
{
    pl_out out;
    pl_out_init(&out);
    pl_out_raw(&out, "{\"server\": \"paceline\", \"endpoints\": [");
    for (size_t i = 0, n = 0; i < sizeof routes / sizeof *routes; i++) {
        const char *allow = routes[i].allow, *path = routes[i].path;
        if (routes[i].id != ROUTE_INDEX)
            pl_out_f(&out, "%s\"%.*s %s%s%s\"", n++ ? ", " : "", (int)strcspn(allow, ","), allow,
                     routes[i].id == ROUTE_HEALTH ? "" : "/v1", path, routes[i].id == ROUTE_MODEL ? "{id}" : "");
    }
    pl_out_raw(&out, "]}");
    pl_http_reply(conn, 200, "application/json", NULL, out.buf.data, out.buf.len);
    pl_out_free(&out);
}

static void answer_options(pl_http_conn *conn, const char *allow)
{
    char headers[256];
    snprintf(headers, sizeof headers,
             "Allow: %s\r\nAccess-Control-Allow-Methods: %s\r\n"
             "Access-Control-Allow-Headers: *, Authorization\r\nAccess-Control-Max-Age: 600\r\n",
             allow, allow);
    pl_http_reply(conn, 204, NULL, headers, NULL, 0);
}

static void answer_unknown(pl_http_conn *conn)
{
    pl_refusal refusal;
    const pl_http_reader *r = pl_http_request(conn);
    int len = (int)(r->target_len < 100 ? r->target_len : 100);
    pl_refusal_make(&refusal, 404, "not_found", "nothing is at %.*s", len, r->head.data + r->target);
    pl_refusal_reply(&refusal, conn);
}

static void answer_method(pl_http_conn *conn, const char *allow)
{
    pl_refusal refusal;
    pl_out out;
    char headers[128];
    pl_out_init(&out);
    pl_refusal_make(&refusal, 405, "method_not_allowed", "allowed here: %s", allow);
    pl_refusal_write(&refusal, &out);
    snprintf(headers, sizeof headers, "Allow: %s\r\n", allow);
    pl_http_reply(conn, 405, "application/json", headers, out.buf.data, out.buf.len);
    pl_out_free(&out);
}

static void answer_loading(pl_server *s, pl_http_conn *conn)
{
    pl_refusal refusal;
    if (s->stopping)
        pl_refusal_make(&refusal, 503, "shutting_down", "the server is shutting down");
    else
        pl_refusal_make(&refusal, 503, "loading", "the model is still being loaded");
    refusal.retry_after_s = 2;
    pl_refusal_reply(&refusal, conn);
}

void pl__route(pl_server *s, pl_http_conn *conn)
{
    const pl_http_reader *r = pl_http_request(conn);
    char path[PATH_MAX_BYTES];
    size_t len;
    const char *rest = "";
    bool options = pl_http_method_is(r, "OPTIONS");
    allow_origin(conn);
    if (options && r->target_len == 1 && r->head.data[r->target] == '*') {
        answer_options(conn, "GET, HEAD, POST, OPTIONS");
        return;
    }
    int at = read_path(r, path, &len) ? find_route(path, &rest) : -1;
    if (at < 0) {
        answer_unknown(conn);
        return;
    }
    bool post = routes[at].id == ROUTE_CHAT || routes[at].id == ROUTE_COMPLETIONS;
    if (options)
        answer_options(conn, routes[at].allow);
    else if (post ? !pl_http_method_is(r, "POST") : !pl_http_method_is(r, "GET") && !pl_http_method_is(r, "HEAD"))
        answer_method(conn, routes[at].allow);
    else if (routes[at].id == ROUTE_INDEX)
        answer_index(conn);
    else if (routes[at].id == ROUTE_HEALTH)
        pl__health(s, conn);
    else if (!s->host || (post && s->stopping))
        answer_loading(s, conn);
    else if (routes[at].id == ROUTE_MODELS)
        pl__models(s, conn);
    else if (routes[at].id == ROUTE_MODEL)
        pl__model(s, conn, rest, strlen(rest));
    else
        pl__exchange_start(s, conn, routes[at].id == ROUTE_CHAT);
}
