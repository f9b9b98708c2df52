/* Request framing. The head is collected whole, then parsed once; the body is decoded as it comes. */
#include "server/http_read.h"

#include "base/num.h"

#include <string.h>
#include <strings.h>

static size_t refuse(pl_http_reader *r, int status, const char *reason)
{
    r->state = PL_HTTP_REFUSED;
    r->status = status;
    r->reason = reason;
    return 0;
}

void pl_http_reader_init(pl_http_reader *r, size_t body_max)
{
    memset(r, 0, sizeof *r);
    pl_buf_init(&r->head, PL_HTTP_HEAD_MAX, "request head");
    pl_buf_init(&r->body, body_max < PL_HTTP_BODY_MAX ? body_max : PL_HTTP_BODY_MAX, "request body");
    pl_buf_init(&r->line, PL_HTTP_CHUNK_LINE_MAX, "chunk line");
}

void pl_http_reader_free(pl_http_reader *r)
{
    pl_buf_free(&r->head);
    pl_buf_free(&r->body);
    pl_buf_free(&r->line);
}

void pl_http_reader_next(pl_http_reader *r)
{
    size_t body_max = r->body.cap;
    pl_buf head = r->head, line = r->line;
    pl_buf_free(&r->body);
    pl_buf_clear(&head);
    pl_buf_clear(&line);
    pl_http_reader_init(r, body_max);
    r->head = head;
    r->line = line;
}

bool pl_http_reader_idle(const pl_http_reader *r)
{
    return r->state == PL_HTTP_HEAD && r->head.len == 0;
}

/* RFC 9110 tchar. */
static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Printable, tab, or a byte of some other encoding (kept as it is, never interpreted). */
static bool is_value_char(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

const char *pl_http_header_get(const pl_http_reader *r, const char *name, size_t *len)
{
    size_t n = strlen(name);
    for (int i = 0; i < r->headers; i++) {
        const pl_http_header *h = &r->header[i];
        if (h->name_len == n && strncasecmp(r->head.data + h->name, name, n) == 0) {
            *len = h->value_len;
            return r->head.data + h->value;
        }
    }
    *len = 0;
    return NULL;
}

bool pl_http_method_is(const pl_http_reader *r, const char *method)
{
    return r->method_len == strlen(method) && memcmp(r->head.data, method, r->method_len) == 0;
}

static int count_headers(const pl_http_reader *r, const char *name)
{
    int n = 0;
    size_t len = strlen(name);
    for (int i = 0; i < r->headers; i++)
        n += r->header[i].name_len == len && strncasecmp(r->head.data + r->header[i].name, name, len) == 0;
    return n;
}

/* Does a comma-separated header value hold this word? */
static bool has_word(const char *value, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t at = 0; at < len;) {
        while (at < len && (value[at] == ' ' || value[at] == '\t' || value[at] == ','))
            at++;
        size_t end = at;
        while (end < len && value[end] != ',')
            end++;
        size_t stop = end;
        while (stop > at && (value[stop - 1] == ' ' || value[stop - 1] == '\t'))
            stop--;
        if (stop - at == n && strncasecmp(value + at, word, n) == 0)
            return true;
        at = end;
    }
    return false;
}

/* Several lines of one name are one list. */
static bool any_has_word(const pl_http_reader *r, const char *name, const char *word)
{
    size_t n = strlen(name);
    for (int i = 0; i < r->headers; i++) {
        const pl_http_header *h = &r->header[i];
        if (h->name_len == n && strncasecmp(r->head.data + h->name, name, n) == 0 &&
            has_word(r->head.data + h->value, h->value_len, word))
            return true;
    }
    return false;
}

/* "METHOD SP target SP HTTP/1.x" in line[0..len). False after a refusal. */
static bool parse_request_line(pl_http_reader *r, const char *line, size_t len)
{
    size_t at = 0;
    while (at < len && is_token_char((unsigned char)line[at]))
        at++;
    if (at == 0 || at == len || line[at] != ' ')
        return refuse(r, 400, "malformed request line");
    r->method_len = at++;
    size_t start = at;
    while (at < len && (unsigned char)line[at] > 0x20 && (unsigned char)line[at] != 0x7f)
        at++;
    if (at == start || at == len || line[at] != ' ')
        return refuse(r, 400, "malformed request line");
    r->target = start;
    r->target_len = at++ - start;
    if (r->target_len > PL_HTTP_TARGET_MAX)
        return refuse(r, 414, "the request target is too long");
    if (len - at != 8 || memcmp(line + at, "HTTP/", 5) != 0)
        return refuse(r, 400, "malformed request line");
    if (memcmp(line + at, "HTTP/1.", 7) != 0 || (line[at + 7] != '0' && line[at + 7] != '1'))
        return refuse(r, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    r->minor = line[at + 7] - '0';
    return true;
}

/* One header line at head.data[start .. start + len). False after a refusal. */
static bool parse_header_line(pl_http_reader *r, size_t start, size_t len)
{
    const char *line = r->head.data + start;
    if (r->headers == PL_HTTP_HEADERS_MAX)
        return refuse(r, 431, "too many header lines");
    size_t at = 0;
    while (at < len && is_token_char((unsigned char)line[at]))
        at++;
    if (at == 0 || at == len || line[at] != ':')
        return refuse(r, 400, "malformed header line");
    pl_http_header *h = &r->header[r->headers++];
    h->name = start;
    h->name_len = at++;
    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    size_t end = len;
    while (end > at && (line[end - 1] == ' ' || line[end - 1] == '\t'))
        end--;
    for (size_t i = at; i < end; i++)
        if (!is_value_char((unsigned char)line[i]))
            return refuse(r, 400, "control character in a header");
    h->value = start + at;
    h->value_len = end - at;
    return true;
}

/* Every line of the head. The CR LF pairs were checked while it was collected. */
static bool parse_lines(pl_http_reader *r)
{
    size_t at = 0;
    for (bool first = true;; first = false) {
        const char *end = memchr(r->head.data + at, '\r', r->head.len - at);
        size_t len = (size_t)(end - (r->head.data + at));
        if (len == 0)
            return true;
        if (first ? !parse_request_line(r, r->head.data, len) : !parse_header_line(r, at, len))
            return false;
        at += len + 2;
    }
}

/* Content-Length: digits only, no sign, no list. False after a refusal. */
static bool parse_length(pl_http_reader *r, const char *value, size_t len)
{
    if (len == 0)
        return refuse(r, 400, "malformed Content-Length");
    size_t n = 0;
    bool huge = false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return refuse(r, 400, "malformed Content-Length");
        huge = huge || !pl_mul_size(n, 10, &n) || !pl_add_size(n, (size_t)(value[i] - '0'), &n);
    }
    if (huge || n > r->body.cap)
        return refuse(r, 413, "the request body is too large");
    r->left = n;
    return true;
}

/* How long the body is. False after a refusal. */
static bool parse_framing(pl_http_reader *r)
{
    size_t len;
    const char *coding = pl_http_header_get(r, "transfer-encoding", &len);
    int lengths = count_headers(r, "content-length");
    if (coding) {
        if (r->minor == 0 || lengths || count_headers(r, "transfer-encoding") > 1)
            return refuse(r, 400, "Transfer-Encoding with Content-Length, twice, or in HTTP/1.0");
        if (len != 7 || strncasecmp(coding, "chunked", 7) != 0)
            return refuse(r, 501, "the only transfer coding is chunked");
        r->chunked = true;
        return true;
    }
    if (lengths > 1)
        return refuse(r, 400, "more than one Content-Length");
    const char *value = pl_http_header_get(r, "content-length", &len);
    return !value || parse_length(r, value, len);
}

/* The head is whole. */
static size_t parse_head(pl_http_reader *r)
{
    if (!parse_lines(r))
        return 0;
    int hosts = count_headers(r, "host");
    if (hosts > 1 || (hosts == 0 && r->minor == 1))
        return refuse(r, 400, "expected exactly one Host header");
    if (!parse_framing(r))
        return 0;
    r->keep_alive =
        r->minor == 1 ? !any_has_word(r, "connection", "close") : any_has_word(r, "connection", "keep-alive");
    size_t len;
    const char *value = pl_http_header_get(r, "expect", &len);
    if (value && r->minor == 1) {
        if (len != 12 || strncasecmp(value, "100-continue", 12) != 0)
            return refuse(r, 417, "the only expectation is 100-continue");
        r->expects_continue = true;
    }
    r->state = r->chunked ? PL_HTTP_CHUNK : r->left ? PL_HTTP_BODY : PL_HTTP_READY;
    return 0;
}

/* Append n bytes to one of the buffers; a refusal when they do not fit. */
static bool take(pl_http_reader *r, pl_buf *to, const char *bytes, size_t n, int status, const char *reason)
{
    pl_error err;
    pl_status done = pl_buf_add(to, bytes, n, &err);
    if (done == PL_OK)
        return true;
    return done == PL_ELIMIT ? refuse(r, status, reason) : refuse(r, 503, "no memory for the request");
}

/* Check a byte of line-structured text against the one before it: CR LF pairs only. */
static bool line_byte_ok(char before, char c)
{
    return (c == '\n') == (before == '\r');
}

static size_t read_head(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t used = 0;
    while (used < n) {
        char c = bytes[used];
        char before = r->head.len ? r->head.data[r->head.len - 1] : '\0';
        if (!line_byte_ok(before, c)) {
            refuse(r, 400, "a line must end in CR LF");
            return used;
        }
        if (!take(r, &r->head, &c, 1, 431, "the request head is too large"))
            return used;
        used++;
        size_t len = r->head.len;
        if (c != '\n')
            continue;
        if (len == 2) { /* an empty line before the request line: RFC 9112 2.2 lets one pass */
            pl_buf_clear(&r->head);
            if (r->empty_lines++) {
                refuse(r, 400, "empty lines before the request line");
                return used;
            }
        } else if (len >= 4 && memcmp(r->head.data + len - 4, "\r\n\r\n", 4) == 0) {
            parse_head(r);
            return used;
        }
    }
    return used;
}

/* A chunk's size line is whole: its CR LF is at the end of r->line. */
static void parse_chunk_line(pl_http_reader *r)
{
    size_t at = 0, size = 0;
    bool huge = false;
    for (; at < r->line.len; at++) {
        char c = r->line.data[at];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        huge = huge || !pl_mul_size(size, 16, &size) || !pl_add_size(size, (size_t)digit, &size);
    }
    size_t end = r->line.len - 2;
    if (at == 0 || (at < end && r->line.data[at] != ';')) {
        refuse(r, 400, "malformed chunk size");
        return;
    }
    for (size_t i = at; i < end; i++)
        if (!is_value_char((unsigned char)r->line.data[i])) {
            refuse(r, 400, "malformed chunk extension");
            return;
        }
    pl_buf_clear(&r->line);
    if (huge || size > r->body.cap - r->body.len) {
        refuse(r, 413, "the request body is too large");
        return;
    }
    r->left = size;
    r->trailer_bytes = 0;
    r->state = size ? PL_HTTP_DATA : PL_HTTP_TRAILER;
}

/* Collect one line (CR LF included) into r->line; true when it is whole. */
static bool read_line(pl_http_reader *r, const char *bytes, size_t n, size_t *used, int status, const char *reason)
{
    while (*used < n) {
        char c = bytes[*used];
        char before = r->line.len ? r->line.data[r->line.len - 1] : '\0';
        if (!line_byte_ok(before, c)) {
            refuse(r, 400, "a line must end in CR LF");
            return false;
        }
        if (!take(r, &r->line, &c, 1, status, reason))
            return false;
        ++*used;
        if (c == '\n')
            return true;
    }
    return false;
}

static size_t read_chunk_line(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t used = 0;
    if (read_line(r, bytes, n, &used, 400, "a chunk's size line is too long"))
        parse_chunk_line(r);
    return used;
}

static size_t read_trailer(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t used = 0;
    if (!read_line(r, bytes, n, &used, 431, "a trailer line is too long"))
        return used;
    size_t len = r->line.len;
    r->trailer_bytes += len;
    if (len == 2)
        r->state = PL_HTTP_READY;
    else if (r->trailer_bytes > PL_HTTP_HEAD_MAX)
        refuse(r, 431, "the trailer is too large");
    else if (!memchr(r->line.data, ':', len) || !is_token_char((unsigned char)r->line.data[0]))
        refuse(r, 400, "malformed trailer line");
    pl_buf_clear(&r->line);
    return used;
}

static size_t read_bytes(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t part = n < r->left ? n : r->left;
    if (!take(r, &r->body, bytes, part, 413, "the request body is too large"))
        return 0;
    r->left -= part;
    if (r->left == 0)
        r->state = r->chunked ? PL_HTTP_DATA_END : PL_HTTP_READY;
    return part;
}

static size_t read_data_end(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t used = 0;
    if (!read_line(r, bytes, n, &used, 400, "a chunk is longer than its size"))
        return used;
    if (r->line.len != 2)
        refuse(r, 400, "a chunk is longer than its size");
    else
        r->state = PL_HTTP_CHUNK;
    pl_buf_clear(&r->line);
    return used;
}

size_t pl_http_read(pl_http_reader *r, const char *bytes, size_t n)
{
    size_t used = 0;
    while (used < n && r->state != PL_HTTP_READY && r->state != PL_HTTP_REFUSED) {
        const char *at = bytes + used;
        size_t rest = n - used;
        switch (r->state) {
        case PL_HTTP_HEAD: used += read_head(r, at, rest); break;
        case PL_HTTP_BODY:
        case PL_HTTP_DATA: used += read_bytes(r, at, rest); break;
        case PL_HTTP_CHUNK: used += read_chunk_line(r, at, rest); break;
        case PL_HTTP_DATA_END: used += read_data_end(r, at, rest); break;
        case PL_HTTP_TRAILER: used += read_trailer(r, at, rest); break;
        case PL_HTTP_READY:
        case PL_HTTP_REFUSED: break;
        }
    }
    return used;
}
