/* The report of `bench arms` as a Markdown table. */
#include "bench/arms.h"

#include <stdio.h>
#include <string.h>

static void real_text(const json_t *value, const char *form, char out[32])
{
    (void)snprintf(out, 32, "-");
    if (!json_is_number(value))
        return;
    double number = json_number_value(value);
    if (strcmp(form, "%.3f") == 0)
        (void)snprintf(out, 32, "%.3f", number);
    else
        (void)snprintf(out, 32, "%.2f", number);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "-";
}

static pl_status cell_rows(const json_t *cell, pl_buf *out, pl_error *err)
{
    size_t i;
    const json_t *arm;
    json_array_foreach(json_object_get(cell, "arms"), i, arm)
    {
        char total[32], ratio[32], stream[32], first[32];
        real_text(json_object_get(arm, "aggregate_tps"), "%.2f", total);
        real_text(json_object_get(arm, "of_first"), "%.3f", ratio);
        real_text(json_object_get(arm, "per_stream_tps"), "%.2f", stream);
        real_text(json_object_get(arm, "ttft_s_max"), "%.3f", first);
        PL_TRY(pl_buf_addf(out, err, "| %s | %g | %d | %s | %d | %s | %s | %s | %s | %s | %s |\n",
                           text_of(cell, "prompt"), json_number_value(json_object_get(cell, "temperature")),
                           (int)json_integer_value(json_object_get(cell, "streams")), text_of(arm, "arm"),
                           (int)json_integer_value(json_object_get(arm, "runs")), total, ratio, stream, first,
                           text_of(cell, "tokens"), text_of(cell, "verdict")));
    }
    return PL_OK;
}

static pl_status tell_run(const json_t *run, const char *what, pl_buf *out, pl_error *err)
{
    return pl_buf_addf(out, err, "* %s, %s, T %g, %d streams, attempt %d: %s\n", text_of(run, "arm"),
                       text_of(run, "prompt"), json_number_value(json_object_get(run, "temperature")),
                       (int)json_integer_value(json_object_get(run, "streams")),
                       (int)json_integer_value(json_object_get(run, "attempt")), what);
}

/* What went wrong in runs that count: a server that did not start, the first error of a request. */
static pl_status tell_failures(const json_t *report, pl_buf *out, pl_error *err)
{
    size_t i, j;
    const json_t *cell, *run;
    bool any = false;
    json_array_foreach(json_object_get(report, "cells"), i, cell)
        json_array_foreach(json_object_get(cell, "runs"), j, run)
    {
        const json_t *errors = json_object_get(json_object_get(run, "result"), "errors");
        const char *what = json_string_value(json_object_get(run, "error"));
        what = what ? what : json_string_value(json_array_get(errors, 0));
        if (!what)
            continue;
        if (!any)
            PL_TRY(pl_buf_adds(out, "\nFailures\n\n", err));
        any = true;
        PL_TRY(tell_run(run, what, out, err));
    }
    return PL_OK;
}

pl_status pl_bench_arms_table(const json_t *report, pl_buf *out, pl_error *err)
{
    size_t i;
    const json_t *one;
    PL_TRY(
        pl_buf_adds(out,
                    "| prompt | T | streams | arm | runs | tokens/s | of first | a stream | first token s | tokens | "
                    "verdict |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
                    err));
    json_array_foreach(json_object_get(report, "cells"), i, one) PL_TRY(cell_rows(one, out, err));
    const json_t *discarded = json_object_get(report, "discarded");
    if (json_array_size(discarded))
        PL_TRY(pl_buf_addf(out, err, "\nRuns thrown away, disturbed: %zu\n\n", json_array_size(discarded)));
    json_array_foreach(discarded, i, one) PL_TRY(tell_run(one, text_of(one, "why"), out, err));
    return tell_failures(report, out, err);
}
