/* See response.h. */
#include "bench/response.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void pl_bench_response_init(pl_bench_response *r)
{
    memset(r, 0, sizeof *r);
}

/* Take bytes up to a line feed. *whole when r->line holds a line, without its end and with a NUL behind it. */
static pl_status take_line(pl_bench_response *r, const char *bytes, size_t n, size_t *used, bool *whole, pl_error *err)
{
    const char *end = memchr(bytes, '\n', n);
    size_t take = end ? (size_t)(end - bytes) + 1 : n;
    if (take > PL_BENCH_LINE_MAX - 1 - r->line_len)
        return pl_fail(err, PL_ELIMIT, "HTTP response: a line of the head has more than %d bytes", PL_BENCH_LINE_MAX);
    if (r->state != PL_BENCH_CHUNK_SIZE && r->state != PL_BENCH_CHUNK_END && take > PL_BENCH_HEAD_MAX - r->head_len)
        return pl_fail(err, PL_ELIMIT, "HTTP response: its head has more than %d bytes", PL_BENCH_HEAD_MAX);
    if (memchr(bytes, '\0', take))
        return pl_fail(err, PL_EFORMAT, "HTTP response: a NUL in the head");
    memcpy(r->line + r->line_len, bytes, take);
    r->line_len += take;
    if (r->state != PL_BENCH_CHUNK_SIZE && r->state != PL_BENCH_CHUNK_END)
        r->head_len += take;
    *used = take;
    *whole = end != NULL;
    if (end) {
        r->line_len--;
        if (r->line_len && r->line[r->line_len - 1] == '\r')
            r->line_len--;
        r->line[r->line_len] = '\0';
    }
    return PL_OK;
}

static pl_status status_line(pl_bench_response *r, pl_error *err)
{
    const char *l = r->line;
    bool fine = r->line_len >= 12 && memcmp(l, "HTTP/1.", 7) == 0 && (l[7] == '0' || l[7] == '1') && l[8] == ' ' &&
                isdigit((unsigned char)l[9]) && isdigit((unsigned char)l[10]) && isdigit((unsigned char)l[11]) &&
                (l[12] == ' ' || l[12] == '\0') && l[9] >= '1' && l[9] <= '5';
    if (!fine)
        return pl_fail(err, PL_EFORMAT, "HTTP response: expected a status line \"HTTP/1.1 200\", found \"%.40s\"", l);
    r->status = (l[9] - '0') * 100 + (l[10] - '0') * 10 + (l[11] - '0');
    if (r->status == 101)
        return pl_fail(err, PL_EFORMAT, "HTTP response: 101, another protocol that nobody asked for");
    r->state = PL_BENCH_HEADERS;
    r->has_length = r->chunked = r->event_stream = false;
    return PL_OK;
}

static pl_status content_length(pl_bench_response *r, const char *value, pl_error *err)
{
    uint64_t n = 0;
    size_t digits = strspn(value, "0123456789");
    if (!digits || digits > 15 || value[digits])
        return pl_fail(err, PL_EFORMAT, "HTTP response: Content-Length is \"%.40s\"", value);
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (uint64_t)(value[i] - '0');
    if (r->has_length && n != r->left)
        return pl_fail(err, PL_EFORMAT, "HTTP response: two Content-Length that differ");
    r->has_length = true;
    r->left = n;
    return PL_OK;
}

static pl_status header(pl_bench_response *r, pl_error *err)
{
    char *colon = strchr(r->line, ':');
    if (!colon || colon == r->line || strcspn(r->line, " \t") < (size_t)(colon - r->line))
        return pl_fail(err, PL_EFORMAT, "HTTP response: no header line: \"%.40s\"", r->line);
    *colon = '\0';
    char *value = colon + 1 + strspn(colon + 1, " \t");
    size_t n = strlen(value);
    while (n && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        value[--n] = '\0';
    if (strcasecmp(r->line, "content-length") == 0)
        return content_length(r, value, err);
    if (strcasecmp(r->line, "transfer-encoding") == 0) {
        if (r->chunked || strcasecmp(value, "chunked") != 0)
            return pl_fail(err, PL_EFORMAT, "HTTP response: Transfer-Encoding \"%.40s\", only chunked is known", value);
        r->chunked = true;
    }
    if (strcasecmp(r->line, "content-type") == 0)
        r->event_stream = strncasecmp(value, "text/event-stream", 17) == 0;
    return PL_OK;
}

static pl_status head_ends(pl_bench_response *r, pl_error *err)
{
    if (r->status < 200) {
        if (++r->interim > PL_BENCH_INTERIM_MAX)
            return pl_fail(err, PL_ELIMIT, "HTTP response: more than %d interim responses", PL_BENCH_INTERIM_MAX);
        r->status = 0;
        r->state = PL_BENCH_STATUS_LINE;
        return PL_OK;
    }
    if (r->chunked && r->has_length)
        return pl_fail(err, PL_EFORMAT, "HTTP response: both Content-Length and Transfer-Encoding");
    if (r->has_length && r->left > PL_BENCH_BODY_MAX)
        return pl_fail(err, PL_ELIMIT, "HTTP response: a body of more than %d MiB", (int)(PL_BENCH_BODY_MAX >> 20));
    if (r->status == 204 || r->status == 304 || (r->has_length && r->left == 0))
        r->state = PL_BENCH_DONE;
    else
        r->state = r->chunked ? PL_BENCH_CHUNK_SIZE : r->has_length ? PL_BENCH_FIXED : PL_BENCH_UNTIL_CLOSE;
    return PL_OK;
}

static pl_status chunk_size(pl_bench_response *r, pl_error *err)
{
    size_t digits = strspn(r->line, "0123456789abcdefABCDEF");
    size_t blank = strspn(r->line + digits, " \t");
    if (!digits || digits > 15 || (r->line[digits + blank] && r->line[digits + blank] != ';'))
        return pl_fail(err, PL_EFORMAT, "HTTP response: expected the size of a chunk, found \"%.40s\"", r->line);
    uint64_t n = 0;
    for (size_t i = 0; i < digits; i++) {
        int c = tolower((unsigned char)r->line[i]);
        n = n * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (n > PL_BENCH_BODY_MAX)
        return pl_fail(err, PL_ELIMIT, "HTTP response: a chunk of more than %d MiB", (int)(PL_BENCH_BODY_MAX >> 20));
    r->left = n;
    r->state = n ? PL_BENCH_CHUNK_DATA : PL_BENCH_TRAILERS;
    return PL_OK;
}

static pl_status take_body(pl_bench_response *r, const char *bytes, size_t n, size_t *used, pl_bench_body_fn *fn,
                           void *arg, pl_error *err)
{
    if (r->state != PL_BENCH_UNTIL_CLOSE && n > r->left)
        n = (size_t)r->left;
    if (n > PL_BENCH_BODY_MAX - r->body)
        return pl_fail(err, PL_ELIMIT, "HTTP response: a body of more than %d MiB", (int)(PL_BENCH_BODY_MAX >> 20));
    r->body += n;
    *used = n;
    PL_TRY(fn(arg, bytes, n, err));
    if (r->state == PL_BENCH_UNTIL_CLOSE)
        return PL_OK;
    r->left -= n;
    if (r->left == 0)
        r->state = r->state == PL_BENCH_FIXED ? PL_BENCH_DONE : PL_BENCH_CHUNK_END;
    return PL_OK;
}

static pl_status line_is_whole(pl_bench_response *r, pl_error *err)
{
    bool empty = r->line_len == 0;
    switch (r->state) {
    case PL_BENCH_STATUS_LINE: return status_line(r, err);
    case PL_BENCH_HEADERS: return empty ? head_ends(r, err) : header(r, err);
    case PL_BENCH_CHUNK_SIZE: return chunk_size(r, err);
    case PL_BENCH_CHUNK_END:
        if (!empty)
            return pl_fail(err, PL_EFORMAT, "HTTP response: a chunk is longer than it says");
        r->state = PL_BENCH_CHUNK_SIZE;
        return PL_OK;
    default: /* trailers tell nothing that is wanted here */
        if (empty)
            r->state = PL_BENCH_DONE;
        return PL_OK;
    }
}

pl_status pl_bench_response_read(pl_bench_response *r, const char *bytes, size_t n, pl_bench_body_fn *fn, void *arg,
                                 pl_error *err)
{
    while (n && r->state != PL_BENCH_DONE) {
        size_t used = 0;
        bool whole = false;
        if (r->state == PL_BENCH_FIXED || r->state == PL_BENCH_CHUNK_DATA || r->state == PL_BENCH_UNTIL_CLOSE) {
            PL_TRY(take_body(r, bytes, n, &used, fn, arg, err));
        } else {
            PL_TRY(take_line(r, bytes, n, &used, &whole, err));
            if (whole) {
                PL_TRY(line_is_whole(r, err));
                r->line_len = 0;
            }
        }
        bytes += used;
        n -= used;
    }
    return PL_OK;
}

pl_status pl_bench_response_end(pl_bench_response *r, pl_error *err)
{
    if (r->state == PL_BENCH_UNTIL_CLOSE)
        r->state = PL_BENCH_DONE;
    if (r->state == PL_BENCH_DONE)
        return PL_OK;
    if (r->status == 0)
        return pl_fail(err, PL_EFORMAT, "the server closed the connection without an answer");
    return pl_fail(err, PL_EFORMAT, "the server closed the connection in the middle of its response");
}
