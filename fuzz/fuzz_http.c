/* The request reader on any bytes, cut anywhere. Two readings of the same bytes in different pieces must come to the
 * same requests, the same refusal and the same place in the input; caps hold at every step. */
#include "server/http_read.h"

#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 4096, REQUESTS_MAX = 64 };

typedef struct reading {
    size_t used;
    int requests, status;
    uint64_t hash; /* of everything that was read */
} reading;

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return (h ^ n) * 1099511628211u;
}

static void check(const pl_http_reader *r)
{
    if (r->head.len > PL_HTTP_HEAD_MAX || r->body.len > BODY_MAX || r->headers > PL_HTTP_HEADERS_MAX)
        abort();
    if (r->state == PL_HTTP_REFUSED && (r->status < 400 || r->status > 599 || !r->reason))
        abort();
}

static uint64_t hash_request(const pl_http_reader *r, uint64_t h)
{
    size_t len;
    h = mix(h, r->head.data, r->method_len);
    h = mix(h, r->head.data + r->target, r->target_len);
    for (int i = 0; i < r->headers; i++) {
        h = mix(h, r->head.data + r->header[i].name, r->header[i].name_len);
        h = mix(h, r->head.data + r->header[i].value, r->header[i].value_len);
    }
    if (!pl_http_header_get(r, "host", &len) && r->minor == 1)
        abort();
    h = mix(h, r->body.data ? r->body.data : "", r->body.len);
    return mix(h, (char[]){(char)r->keep_alive, (char)r->expects_continue, (char)r->minor}, 3);
}

/* Read everything, `first` bytes and then always `step`. */
static reading read_all(const uint8_t *data, size_t size, size_t first, size_t step)
{
    reading out = {.hash = 14695981039346656037u};
    pl_http_reader r;
    pl_http_reader_init(&r, BODY_MAX);
    size_t piece = first ? first : step;
    while (out.used < size && out.requests < REQUESTS_MAX) {
        size_t n = size - out.used < piece ? size - out.used : piece;
        /* A copy of its own: reading past it is found. */
        char *copy = malloc(n);
        memcpy(copy, data + out.used, n);
        size_t used = pl_http_read(&r, copy, n);
        free(copy);
        if (used > n)
            abort();
        check(&r);
        out.used += used;
        piece = step;
        if (r.state == PL_HTTP_REFUSED) {
            out.status = r.status;
            break;
        }
        if (r.state == PL_HTTP_READY) {
            out.hash = hash_request(&r, out.hash);
            out.requests++;
            pl_http_reader_next(&r);
        } else if (used != n) {
            abort();
        }
    }
    pl_http_reader_free(&r);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t first = data[0], step = (size_t)data[1] + 1;
    reading whole = read_all(data + 2, size - 2, 0, size);
    reading cut = read_all(data + 2, size - 2, first, step);
    if (whole.requests != cut.requests || whole.status != cut.status || whole.hash != cut.hash ||
        whole.used != cut.used)
        abort();
    return 0;
}
