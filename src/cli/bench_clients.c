/* paceline bench concurrent URL, paceline bench openai URL: a server that runs, measured from outside. */
#include "cli/bench_plan.h"

#include "bench/server.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct bench {
    const pl_settings *settings;
    bench_plan plan;
    pl_bench_url url;
    char model[PL_BENCH_MODEL_MAX];
    json_t *file; /* what --output gets */
    pl_bench_verdict worst;
    bool lone; /* bench openai */
} bench;

static pl_status print_head(const bench *b, pl_error *err)
{
    char text[512];
    int n = b->lone ? snprintf(text, sizeof text, "%-24s %5s %4s  %10s %10s  %s\n", "prompt", "T", "runs", "tokens/s",
                               "first s", "verdict")
                    : snprintf(text, sizeof text, "%-24s %5s %7s  %10s %10s %10s %10s  %s\n", "prompt", "T", "streams",
                               "tokens/s", "a stream", "steady", "first s", "verdict");
    return cmd_print(text, (size_t)n, err);
}

static const char *real_text(const json_t *line, const char *name, char text[24])
{
    const json_t *value = json_object_get(line, name);
    if (json_is_number(value))
        (void)snprintf(text, 24, "%.3f", json_number_value(value));
    else
        (void)snprintf(text, 24, "-");
    return text;
}

/* "equal", or the verdict with what it rests on: "unequal (alone: 1 of 4 differ)". */
static void verdict_text(const json_t *line, char *out, size_t size)
{
    static const char *const kinds[] = {"repeats", "alone", "serial"};
    size_t n = (size_t)snprintf(out, size, "%s", json_string_value(json_object_get(line, "verdict")));
    for (size_t i = 0; i < 3 && n < size; i++) {
        const json_t *t = json_object_get(line, kinds[i]);
        int equal = (int)json_integer_value(json_object_get(t, "equal"));
        int unequal = (int)json_integer_value(json_object_get(t, "unequal"));
        int unverified = (int)json_integer_value(json_object_get(t, "unverified"));
        if (unequal || unverified)
            n += (size_t)snprintf(out + n, size - n, "; %s: %d differ, %d unverified of %d", kinds[i], unequal,
                                  unverified, equal + unequal + unverified);
    }
    const char *error = json_string_value(json_array_get(json_object_get(line, "errors"), 0));
    if (error && n < size)
        (void)snprintf(out + n, size - n, "; %s", error);
}

static pl_status print_line(const bench *b, const json_t *line, pl_error *err)
{
    char text[1024], a[24], s[24], st[24], t[24], verdict[700];
    const char *name = json_string_value(json_object_get(line, "prompt"));
    double temperature = json_number_value(json_object_get(line, "temperature"));
    verdict_text(line, verdict, sizeof verdict);
    int n;
    if (b->lone)
        n = snprintf(text, sizeof text, "%-24.63s %5g %4d  %10s %10s  %s\n", name, temperature,
                     (int)json_integer_value(json_object_get(line, "runs")), real_text(line, "decode_tps_median", a),
                     real_text(line, "ttft_s_median", t), verdict);
    else
        n = snprintf(text, sizeof text, "%-24.63s %5g %7d  %10s %10s %10s %10s  %s\n", name, temperature,
                     (int)json_integer_value(json_object_get(line, "streams")), real_text(line, "aggregate_tps", a),
                     real_text(line, "per_stream_tps", s), real_text(line, "steady_tps", st),
                     real_text(line, "ttft_s_max", t), verdict);
    return cmd_print(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, err);
}

static pl_status run_cell(bench *b, const pl_bench_cell *cell, pl_error *err)
{
    pl_bench_result result;
    pl_status status = pl_bench_cell_run(&b->plan.plan, cell, &result, err);
    if (status == PL_OK) {
        json_t *kept = json_pack("{s:O, s:O}", "cell", result.line, "runs", result.runs);
        if (!kept || json_array_append_new(json_object_get(b->file, "cells"), kept) != 0)
            status = pl_fail(err, PL_ENOMEM, "no memory for the evidence");
        b->worst = result.verdict > b->worst ? result.verdict : b->worst;
    }
    if (status == PL_OK)
        status = pl_set_on(b->settings, PL_SET_BENCH_JSON) ? bench_print_json(result.line, err)
                                                           : print_line(b, result.line, err);
    const char *path = pl_set_text(b->settings, PL_SET_OUTPUT);
    if (status == PL_OK && *path)
        status = bench_save(path, b->file, err); /* after every cell: a long bench that is broken off leaves it */
    pl_bench_result_free(&result);
    return status;
}

static pl_status open_bench(bench *b, pl_error *err)
{
    const pl_settings *s = b->settings;
    PL_TRY(pl_bench_url_read(&b->url, s->arg[0], err));
    b->url.key = pl_set_text(s, PL_SET_API_KEY);
    PL_TRY(bench_plan_open(&b->plan, s, err));
    const char *model = pl_set_text(s, PL_SET_MODEL_NAME);
    if (strlen(model) >= sizeof b->model)
        return pl_fail_param(err, PL_EINVAL, "model-name", "--model-name: fewer than 256 bytes expected");
    (void)snprintf(b->model, sizeof b->model, "%s", model);
    if (!*model)
        PL_TRY(pl_bench_model_name(&b->url, (int64_t)(b->plan.plan.limit_s * 1e9), b->model, err));
    b->plan.plan.url = &b->url;
    b->plan.plan.model = b->model;
    const pl_bench_plan *p = &b->plan.plan;
    b->file = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:b, s:f, s:[]}", "command", s->command->name, "label",
                        p->label, "url", s->arg[0], "model", b->model, "tokens", p->tokens, "runs", p->reps, "seed",
                        p->seeded ? json_integer(p->seed) : json_null(), "mixed", b->plan.cell[0].sets > 1, "stagger_s",
                        p->stagger_s, "cells");
    return b->file ? PL_OK : pl_fail(err, PL_EINVAL, "the label, the URL or the model's name is not UTF-8");
}

int cmd_bench_concurrent(const pl_settings *settings)
{
    pl_error err;
    bench b = {.settings = settings, .lone = settings->command->bit == PL_CMD_BENCH_OPENAI};
    pl_status status = open_bench(&b, &err);
    if (status == PL_OK && !pl_set_on(settings, PL_SET_BENCH_JSON))
        status = print_head(&b, &err);
    for (int i = 0; i < b.plan.cells && status == PL_OK; i++)
        status = run_cell(&b, &b.plan.cell[i], &err);
    json_decref(b.file);
    bench_plan_close(&b.plan);
    return status == PL_OK ? bench_exit(b.worst) : cmd_fail(settings, &err);
}
