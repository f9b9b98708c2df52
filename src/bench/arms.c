/* See arms.h. */
#include "bench/arms.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The kept runs of one cell. */
typedef struct tally {
    double aggregate[PL_BENCH_ARMS_MAX][2 * PL_BENCH_ROUNDS_MAX],
        per_stream[PL_BENCH_ARMS_MAX][2 * PL_BENCH_ROUNDS_MAX];
    double ttft[PL_BENCH_ARMS_MAX][2 * PL_BENCH_ROUNDS_MAX];
    int runs[PL_BENCH_ARMS_MAX];
    char digest[65]; /* of the first run with one */
    size_t hash_len;
    bool unequal, unverified, missing;
    pl_bench_verdict worst; /* of the runs themselves */
} tally;

typedef struct bench {
    const pl_bench_arms *a;
    json_t *report, *discarded; /* both borrowed from the report */
    json_t *runs;               /* of the cell under way */
    tally t;
} bench;

pl_status pl_bench_arm_read(pl_bench_arm *arm, const char *text, pl_error *err)
{
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : 0;
    if (n == 0 || n > PL_BENCH_NAME_MAX || !equals[1] || strcspn(text, " |\t\r\n") < n)
        return pl_fail(err, PL_EINVAL, "an arm: expected NAME=COMMAND, found \"%.80s\"", text);
    memcpy(arm->name, text, n);
    arm->name[n] = '\0';
    arm->command = equals + 1;
    return PL_OK;
}

int pl_bench_arm_of(int arms, int i)
{
    int at = i % (2 * arms);
    return at < arms ? at : 2 * arms - 1 - at;
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */

static void listen_to(const pl_bench_arms *a, pl_bench_machine m[2])
{
    struct timespec t = {.tv_sec = (time_t)a->quiet_s, .tv_nsec = (long)(fmod(a->quiet_s, 1) * 1e9)};
    pl_bench_machine_read(&m[0], a->root);
    (void)nanosleep(&t, NULL);
    pl_bench_machine_read(&m[1], a->root);
}

static pl_status run_cell(const pl_bench_arms *a, const pl_bench_cell *cell, pl_bench_server *server,
                          pl_bench_around *around, pl_bench_result *result, pl_error *err)
{
    char name[PL_BENCH_MODEL_MAX];
    pl_bench_plan plan = a->plan;
    plan.url = &server->url;
    plan.model = a->model;
    if (!*a->model) {
        PL_TRY(pl_bench_model_name(&server->url, (int64_t)(a->plan.limit_s * 1e9), name, err));
        plan.model = name;
    }
    around->known = -pl_bench_group_ticks(a->root, server->group) - pl_bench_own_ticks();
    pl_bench_machine_read(&around->during[0], a->root);
    pl_status status = pl_bench_cell_run(&plan, cell, result, err);
    around->known += pl_bench_group_ticks(a->root, server->group) + pl_bench_own_ticks();
    pl_bench_machine_read(&around->during[1], a->root);
    return status;
}

/* Start a server, run the cell, end the server. What goes wrong on the server's side is told in *run. */
static pl_status run_arm(const pl_bench_arms *a, int arm, const pl_bench_cell *cell, pl_bench_result *result,
                         pl_bench_around *around, json_t *run, pl_error *err)
{
    pl_bench_server server;
    *result = (pl_bench_result){.verdict = PL_BENCH_FAILED, .aggregate = NAN, .per_stream = NAN, .ttft_max = NAN};
    memset(around, 0, sizeof *around);
    listen_to(a, around->before);
    around->during[0] = around->during[1] = around->before[1];
    int64_t began = pl_now_ns();
    pl_status status = pl_bench_server_start(&server, a->arm[arm].command, a->key, a->ready_s, err);
    int wrong = json_object_set_new(run, "ready_s", pl_bench_real((double)(pl_now_ns() - began) * 1e-9));
    if (status == PL_OK) {
        status = run_cell(a, cell, &server, around, result, err);
        if (!pl_bench_server_stop(&server, a->grace_s)) {
            wrong |= json_object_set_new(run, "error", json_string("the server ended by itself"));
            result->verdict = PL_BENCH_FAILED;
        }
    }
    listen_to(a, around->after);
    if (status == PL_ENOMEM || status == PL_EINVAL)
        return status;
    if (status != PL_OK) {
        json_t *text = json_string(err->message);
        wrong |= json_object_set_new(run, "error", text ? text : json_string("an error that is not UTF-8"));
        result->verdict = PL_BENCH_FAILED;
    }
    wrong |= json_object_set_new(run, "machine", pl_bench_around_json(around));
    if (result->line)
        wrong |= json_object_set(run, "result", result->line) | json_object_set(run, "evidence", result->runs);
    return wrong ? pl_fail(err, PL_ENOMEM, "no memory for the report of a run") : PL_OK;
}

/* ---- one cell --------------------------------------------------------------------------------------------------- */

static void keep(bench *b, int arm, const pl_bench_result *r)
{
    tally *t = &b->t;
    int at = t->runs[arm]++;
    t->aggregate[arm][at] = r->aggregate;
    t->per_stream[arm][at] = r->per_stream;
    t->ttft[arm][at] = r->ttft_max;
    t->worst = r->verdict > t->worst ? r->verdict : t->worst;
    if (!t->digest[0]) {
        memcpy(t->digest, r->digest, sizeof t->digest);
        t->hash_len = r->hash_len;
    }
    if (!r->digest[0] || r->hash_len != t->hash_len) /* another kind of hash says nothing */
        t->unverified = true;
    else if (strcmp(t->digest, r->digest) != 0)
        t->unequal = true;
}

static pl_status save(bench *b, const pl_bench_cell *cell, const char *what, int arm, const pl_bench_result *r,
                      pl_error *err)
{
    char text[512], rate[32] = "no rate";
    if (isfinite(r->aggregate))
        (void)snprintf(rate, sizeof rate, "%.2f tokens/s", r->aggregate);
    (void)snprintf(text, sizeof text, "%s, %s, T %g, %d streams: %s, %s", b->a->arm[arm].name, cell->name,
                   cell->temperature, cell->streams, rate, what);
    return b->a->saved ? b->a->saved(b->a->saved_arg, b->report, text, err) : PL_OK;
}

/* One run of an arm, again while it is disturbed. */
static pl_status run_until_quiet(bench *b, int arm, const pl_bench_cell *cell, pl_error *err)
{
    pl_status status = PL_OK;
    for (int attempt = 0; attempt <= b->a->reruns && status == PL_OK; attempt++) {
        pl_bench_result result;
        pl_bench_around around;
        char why[200] = "";
        json_t *run = json_pack("{s:s, s:i, s:I, s:s, s:f, s:i}", "arm", b->a->arm[arm].name, "attempt", attempt, "at",
                                (json_int_t)pl_wall_seconds(), "prompt", cell->name, "temperature", cell->temperature,
                                "streams", cell->streams);
        if (!run)
            return pl_fail(err, PL_ENOMEM, "no memory for a run");
        status = run_arm(b->a, arm, cell, &result, &around, run, err);
        /* Only figures are disturbed by others: a failure and a wrong token stand. */
        bool away =
            status == PL_OK && result.verdict < PL_BENCH_FAILED && pl_bench_disturbed(&around, &b->a->limits, why);
        if (status == PL_OK && away)
            (void)json_object_set_new(run, "why", json_string(why));
        if (status == PL_OK && json_array_append(away ? b->discarded : b->runs, run) != 0)
            status = pl_fail(err, PL_ENOMEM, "no memory for a run");
        json_decref(run);
        if (status == PL_OK && !away)
            keep(b, arm, &result);
        if (status == PL_OK)
            status = save(b, cell, away ? why : pl_bench_verdict_name(result.verdict), arm, &result, err);
        pl_bench_result_free(&result);
        if (!away)
            return status;
    }
    b->t.missing = true;
    return status;
}

static const char *tokens_word(const bench *b, const pl_bench_cell *cell)
{
    const tally *t = &b->t;
    if (!b->a->compare || (cell->temperature > 0 && !b->a->plan.seeded))
        return "not compared";
    return t->unequal ? "unequal" : t->unverified || t->missing ? "unverified" : "equal";
}

static pl_bench_verdict judge(const bench *b, const char *tokens)
{
    const tally *t = &b->t;
    pl_bench_verdict worst = t->worst;
    if (t->missing && worst < PL_BENCH_FAILED)
        worst = PL_BENCH_FAILED;
    if (strcmp(tokens, "unequal") == 0)
        worst = PL_BENCH_UNEQUAL;
    if (strcmp(tokens, "unverified") == 0 && worst < PL_BENCH_UNVERIFIED)
        worst = PL_BENCH_UNVERIFIED;
    if (strcmp(tokens, "equal") == 0 && worst == PL_BENCH_UNCOMPARED)
        worst = PL_BENCH_EQUAL;
    return worst;
}

/* Mean over mean, and against the first arm. An arm that lacks a run has no figure. */
static json_t *summary(const bench *b)
{
    const tally *t = &b->t;
    json_t *list = json_array();
    double first = NAN;
    for (int arm = 0; arm < b->a->arms; arm++) {
        int n = t->runs[arm];
        double mean = n == 2 * b->a->rounds ? pl_bench_mean(t->aggregate[arm], n) : NAN;
        for (int i = 0; i < n; i++)
            if (!isfinite(t->aggregate[arm][i]))
                mean = NAN;
        if (arm == 0)
            first = mean;
        (void)json_array_append_new(
            list, json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "arm", b->a->arm[arm].name, "runs", n, "aggregate_tps",
                            pl_bench_real(mean), "of_first", pl_bench_real(mean / first), "per_stream_tps",
                            pl_bench_real(isfinite(mean) ? pl_bench_mean(t->per_stream[arm], n) : NAN), "ttft_s_max",
                            pl_bench_real(isfinite(mean) ? pl_bench_mean(t->ttft[arm], n) : NAN)));
    }
    return list;
}

static pl_status run_cell_of_arms(bench *b, const pl_bench_cell *cell, json_t *cells, pl_bench_verdict *worst,
                                  pl_error *err)
{
    memset(&b->t, 0, sizeof b->t);
    b->runs = json_array();
    json_t *json = json_pack("{s:s, s:f, s:i, s:o}", "prompt", cell->name, "temperature", cell->temperature, "streams",
                             cell->streams, "runs", b->runs);
    if (!json || json_array_append_new(cells, json) != 0)
        return pl_fail(err, PL_ENOMEM, "no memory for a cell");
    for (int i = 0; i < 2 * b->a->rounds * b->a->arms; i++)
        PL_TRY(run_until_quiet(b, pl_bench_arm_of(b->a->arms, i), cell, err));
    const char *tokens = tokens_word(b, cell);
    pl_bench_verdict verdict = judge(b, tokens);
    *worst = verdict > *worst ? verdict : *worst;
    if (json_object_set_new(json, "tokens", json_string(tokens)) |
        json_object_set_new(json, "verdict", json_string(pl_bench_verdict_name(verdict))) |
        json_object_set_new(json, "arms", summary(b)))
        return pl_fail(err, PL_ENOMEM, "no memory for a cell");
    return PL_OK;
}

static json_t *head(const pl_bench_arms *a)
{
    json_t *arms = json_array();
    for (int i = 0; i < a->arms; i++)
        (void)json_array_append_new(arms,
                                    json_pack("{s:s, s:s}", "name", a->arm[i].name, "command", a->arm[i].command));
    return json_pack("{s:s, s:s, s:o, s:i, s:i, s:i, s:i, s:I, s:b, s:f, s:f, s:[], s:[]}", "label", a->plan.label,
                     "order", "forth and back", "arms", arms, "rounds", a->rounds, "reruns", a->reruns, "tokens",
                     a->plan.tokens, "runs", a->plan.reps, "seed", (json_int_t)a->plan.seed, "seeded", a->plan.seeded,
                     "busy_limit", a->limits.busy, "celsius_limit", a->limits.celsius, "cells", "discarded");
}

pl_status pl_bench_arms_run(const pl_bench_arms *a, json_t **report, pl_bench_verdict *verdict, pl_error *err)
{
    *report = NULL;
    *verdict = PL_BENCH_EQUAL;
    if (a->arms < 1 || a->arms > PL_BENCH_ARMS_MAX || a->rounds < 1 || a->rounds > PL_BENCH_ROUNDS_MAX)
        return pl_fail(err, PL_EINVAL, "1 to %d arms and 1 to %d rounds", PL_BENCH_ARMS_MAX, PL_BENCH_ROUNDS_MAX);
    bench *b = calloc(1, sizeof *b);
    json_t *json = head(a);
    pl_status status = b && json ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the report (or a name is not UTF-8)");
    if (status == PL_OK)
        *b = (bench){.a = a, .report = json, .discarded = json_object_get(json, "discarded")};
    for (int i = 0; i < a->cells && status == PL_OK; i++)
        status = run_cell_of_arms(b, &a->cell[i], json_object_get(json, "cells"), verdict, err);
    if (status == PL_OK && (json_object_set_new(json, "verdict", json_string(pl_bench_verdict_name(*verdict))) != 0 ||
                            (a->saved && (status = a->saved(a->saved_arg, json, NULL, err)) != PL_OK)))
        status = status == PL_OK ? pl_fail(err, PL_ENOMEM, "no memory for the report") : status;
    free(b);
    if (status == PL_OK)
        *report = json;
    else
        json_decref(json);
    return status;
}
