/* See sse.h. */
#include "bench/sse.h"

#include <string.h>

void pl_bench_sse_init(pl_bench_sse *sse)
{
    pl_buf_init(&sse->line, PL_BENCH_EVENT_MAX, "line of the event stream");
    pl_buf_init(&sse->data, PL_BENCH_EVENT_MAX, "event of the event stream");
    sse->after_cr = sse->begun = false;
}

void pl_bench_sse_free(pl_bench_sse *sse)
{
    pl_buf_free(&sse->line);
    pl_buf_free(&sse->data);
}

static pl_status data_line(pl_bench_sse *sse, const char *line, size_t n, pl_error *err)
{
    if (n < 4 || memcmp(line, "data", 4) != 0 || (n > 4 && line[4] != ':'))
        return PL_OK;
    size_t at = n == 4 ? 4 : n > 5 && line[5] == ' ' ? 6 : 5;
    PL_TRY(pl_buf_add(&sse->data, line + at, n - at, err));
    return pl_buf_addc(&sse->data, '\n', err);
}

static pl_status end_line(pl_bench_sse *sse, pl_bench_event_fn *fn, void *arg, pl_error *err)
{
    const char *line = sse->line.data ? sse->line.data : "";
    size_t n = sse->line.len;
    if (!sse->begun && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3, n -= 3;
    sse->begun = true;
    pl_status status = PL_OK;
    if (n) {
        status = data_line(sse, line, n, err);
    } else if (sse->data.len) {
        status = fn(arg, sse->data.data, sse->data.len - 1, err);
        pl_buf_clear(&sse->data);
    }
    pl_buf_clear(&sse->line);
    return status;
}

pl_status pl_bench_sse_read(pl_bench_sse *sse, const char *bytes, size_t n, pl_bench_event_fn *fn, void *arg,
                            pl_error *err)
{
    const char *end = bytes + n;
    while (bytes < end) {
        if (sse->after_cr && *bytes == '\n') {
            sse->after_cr = false;
            bytes++;
            continue;
        }
        sse->after_cr = false;
        const char *stop = bytes;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        PL_TRY(pl_buf_add(&sse->line, bytes, (size_t)(stop - bytes), err));
        if (stop == end)
            return PL_OK;
        sse->after_cr = *stop == '\r';
        bytes = stop + 1;
        PL_TRY(end_line(sse, fn, arg, err));
    }
    return PL_OK;
}
