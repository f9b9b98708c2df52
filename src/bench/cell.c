/* See cell.h. */
#include "bench/cell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_K = 20, ERRORS_SHOWN = 4 };
#define TOP_P 0.95

/* Of the server's own block: how the drafter did. */
static const char *const counters[] = {"rounds", "plain_rounds", "drafted", "accepted"};
enum { COUNTERS = sizeof counters / sizeof *counters };

/* What a run of a cell has: streams requests and their replies. */
typedef struct wave {
    pl_bench_request request[PL_BENCH_STREAMS_MAX];
    pl_bench_reply reply[PL_BENCH_STREAMS_MAX];
    char *body[PL_BENCH_STREAMS_MAX];
    int n; /* replies to free */
} wave;

typedef char hash[65];

typedef struct work {
    const pl_bench_plan *plan;
    const pl_bench_cell *cell;
    pl_bench_result *result;
    wave *wave;
    hash *first; /* [streams] of the first run; "" unverified */
    hash *alone, *serial;
    int runs; /* so far */
    pl_bench_tally repeats, with_alone, with_serial;
    int alone_failed, serial_failed;
    double counted[COUNTERS]; /* over the runs; NAN once a reply lacks one */
    double aggregate[PL_BENCH_REPS_MAX], per_stream[PL_BENCH_REPS_MAX], steady[PL_BENCH_REPS_MAX];
    double ttft[PL_BENCH_REPS_MAX], ttft_max[PL_BENCH_REPS_MAX];
    json_t *errors, *hashes;
    pl_sha256 digest;
} work;

const char *pl_bench_verdict_name(pl_bench_verdict verdict)
{
    static const char *const names[] = {"equal", "uncompared", "unverified", "failed", "unequal"};
    return names[verdict];
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static const pl_bench_prompt *prompt_of(const pl_bench_cell *cell, int i)
{
    const pl_bench_set *set = &cell->set[i % cell->sets];
    return &set->prompt[i / cell->sets % set->n];
}

char *pl_bench_body(const pl_bench_plan *plan, const pl_bench_cell *cell, int i, int tokens, bool draft)
{
    const pl_bench_prompt *prompt = prompt_of(cell, i);
    json_t *json =
        json_pack("{s:s, s:i, s:f, s:b, s:b, s:{s:b}}", "model", plan->model, "max_tokens", tokens, "temperature",
                  cell->temperature, "ignore_eos", 1, "stream", 1, "stream_options", "include_usage", 1);
    int wrong = json == NULL;
    if (prompt->chat)
        wrong |= json_object_update_new(json, json_pack("{s:[{s:s, s:s}], s:{s:b, s:b}}", "messages", "role", "user",
                                                        "content", prompt->text, "chat_template_kwargs", "thinking", 0,
                                                        "enable_thinking", 0));
    else
        wrong |= json_object_set_new(json, "prompt", json_string(prompt->text));
    if (cell->temperature > 0) {
        wrong |= json_object_update_new(json, json_pack("{s:i, s:f}", "top_k", TOP_K, "top_p", TOP_P));
        if (plan->seeded)
            wrong |= json_object_set_new(json, "seed", json_integer(plan->seed + i / cell->sets));
    }
    if (!draft)
        wrong |= json_object_set_new(json, "draft", json_false());
    char *body = wrong ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return body;
}

static void free_wave(wave *w)
{
    for (int i = 0; i < w->n; i++) {
        pl_bench_reply_free(&w->reply[i]);
        free(w->body[i]);
        w->body[i] = NULL;
    }
    w->n = 0;
}

/* Requests `from` to `from + n` together; the replies stay in the wave until the next. */
static pl_status send_wave(work *k, int from, int n, int tokens, bool draft, pl_error *err)
{
    wave *w = k->wave;
    free_wave(w);
    pl_bench_pace pace = {.stagger_ns = (int64_t)(k->plan->stagger_s * 1e9),
                          .limit_ns = (int64_t)((k->plan->limit_s + k->plan->stagger_s * n) * 1e9)};
    for (int i = 0; i < n; i++) {
        bool chat = prompt_of(k->cell, from + i)->chat;
        w->body[i] = pl_bench_body(k->plan, k->cell, from + i, tokens, draft);
        w->request[i] = (pl_bench_request){"POST", chat ? "/chat/completions" : "/completions", w->body[i]};
        pl_bench_reply_init(&w->reply[i]);
        w->n = i + 1;
        if (!w->body[i])
            return pl_fail(err, PL_ENOMEM, "no memory for a request (or a prompt or the model's name is not UTF-8)");
    }
    return pl_bench_client_run(k->plan->url, w->request, w->reply, n, &pace, err);
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

static void take_hash(hash out, const pl_bench_reply *reply)
{
    memcpy(out, pl_bench_reply_verified(reply) ? reply->token_sha : "",
           pl_bench_reply_verified(reply) ? strlen(reply->token_sha) + 1 : 1);
}

static void compare(pl_bench_tally *t, const hash a, const hash b)
{
    if (!a[0] || strlen(a) != strlen(b))
        t->unverified++;
    else if (strcmp(a, b) == 0)
        t->equal++;
    else
        t->unequal++;
}

/* The server's own seed may be another one every time: then nothing says that draws must be equal. */
static bool comparable(const work *k)
{
    return k->cell->temperature <= 0 || k->plan->seeded;
}

static void note_error(work *k, const char *when, int i, const pl_bench_reply *reply)
{
    char text[640];
    if (pl_bench_reply_complete(reply) || json_array_size(k->errors) >= ERRORS_SHOWN)
        return;
    (void)snprintf(text, sizeof text, "%s, request %d: %s", when, i,
                   reply->failed ? reply->error : "the stream is incomplete: no finish_reason or no usage");
    json_t *json = json_string(text);
    (void)json_array_append_new(k->errors, json ? json : json_string("an error that is not UTF-8"));
}

static void count(work *k, const pl_bench_reply *reply)
{
    for (int i = 0; i < COUNTERS; i++) {
        const json_t *n = json_object_get(reply->block, counters[i]);
        bool fine = json_is_integer(n) && json_integer_value(n) >= 0 && json_integer_value(n) <= INT32_MAX;
        k->counted[i] += fine ? (double)json_integer_value(n) : NAN;
    }
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */

static pl_status keep_wave(work *k, const char *kind, int from, pl_error *err)
{
    json_t *list = json_array();
    int wrong = list == NULL;
    for (int i = 0; i < k->wave->n; i++) {
        json_t *one = pl_bench_reply_json(&k->wave->reply[i]);
        wrong |= !one || json_object_set_new(one, "request", json_integer(from + i)) != 0 ||
                 json_object_set_new(one, "prompt", json_string(prompt_of(k->cell, from + i)->name)) != 0 ||
                 json_array_append(list, one) != 0;
        json_decref(one);
    }
    json_t *run = json_pack("{s:s, s:o}", "kind", kind, "requests", list);
    if (wrong || !run || json_array_append_new(k->result->runs, run) != 0)
        return pl_fail(err, PL_ENOMEM, "no memory for the evidence of a run");
    return PL_OK;
}

static pl_status run_once(work *k, int run, pl_error *err)
{
    pl_bench_result *out = k->result;
    pl_bench_figures f;
    int n = k->cell->streams;
    PL_TRY(send_wave(k, 0, n, k->plan->tokens, true, err));
    pl_bench_figures_of(&f, k->wave->reply, n);
    out->failed += f.failed;
    out->unmeasured += f.unmeasured;
    out->unverified += f.unverified;
    k->aggregate[run] = f.aggregate;
    k->per_stream[run] = f.per_stream;
    k->steady[run] = f.steady;
    k->ttft[run] = f.ttft_mean;
    k->ttft_max[run] = f.ttft_max;
    for (int i = 0; i < n; i++) {
        hash mine;
        take_hash(mine, &k->wave->reply[i]);
        note_error(k, "together", i, &k->wave->reply[i]);
        count(k, &k->wave->reply[i]);
        pl_sha256_add(&k->digest, mine, strlen(mine) + 1);
        if (run == 0) {
            memcpy(k->first[i], mine, sizeof mine);
            (void)json_array_append_new(k->hashes, mine[0] ? json_string(mine) : json_null());
        } else if (comparable(k)) {
            compare(&k->repeats, k->first[i], mine);
        }
        if (k->plan->alone && comparable(k))
            compare(&k->with_alone, k->alone[i], mine);
    }
    k->runs++;
    return keep_wave(k, "together", 0, err);
}

/* Each request by itself, drafted or not; its hashes. */
static pl_status run_alone(work *k, bool draft, hash *out, int *failed, pl_error *err)
{
    const char *kind = draft ? "alone" : "serial";
    for (int i = 0; i < k->cell->streams; i++) {
        PL_TRY(send_wave(k, i, 1, k->plan->tokens, draft, err));
        take_hash(out[i], &k->wave->reply[0]);
        *failed += !pl_bench_reply_complete(&k->wave->reply[0]);
        note_error(k, kind, i, &k->wave->reply[0]);
        PL_TRY(keep_wave(k, kind, i, err));
    }
    return PL_OK;
}

/* A first request, so that no run pays for what a server does once. It counts for nothing but its failure. */
static pl_status warm_up(work *k, pl_error *err)
{
    PL_TRY(send_wave(k, 0, 1, PL_BENCH_WARM_TOKENS, true, err));
    note_error(k, "warm-up", 0, &k->wave->reply[0]);
    return PL_OK;
}

static pl_status run_all(work *k, pl_error *err)
{
    PL_TRY(warm_up(k, err));
    if (k->plan->alone)
        PL_TRY(run_alone(k, true, k->alone, &k->alone_failed, err));
    if (k->plan->serial) {
        PL_TRY(run_alone(k, false, k->serial, &k->serial_failed, err));
        for (int i = 0; i < k->cell->streams && comparable(k); i++)
            compare(&k->with_serial, k->alone[i], k->serial[i]);
    }
    for (int run = 0; run < k->plan->reps; run++)
        PL_TRY(run_once(k, run, err));
    return PL_OK;
}

/* ---- what it came to -------------------------------------------------------------------------------------------- */

static pl_bench_verdict judge(const work *k)
{
    const pl_bench_tally *t[] = {&k->repeats, &k->with_alone, &k->with_serial};
    int equal = 0, unequal = 0, unverified = k->result->unverified;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        equal += t[i]->equal, unequal += t[i]->unequal, unverified += t[i]->unverified;
    if (unequal)
        return PL_BENCH_UNEQUAL;
    if (k->result->failed || k->alone_failed || k->serial_failed)
        return PL_BENCH_FAILED;
    return unverified ? PL_BENCH_UNVERIFIED : equal ? PL_BENCH_EQUAL : PL_BENCH_UNCOMPARED;
}

static json_t *tally_json(const pl_bench_tally *t, int failed)
{
    return json_pack("{s:i, s:i, s:i, s:i}", "equal", t->equal, "unequal", t->unequal, "unverified", t->unverified,
                     "failed", failed);
}

static json_t *reals(const double *value, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        (void)json_array_append_new(list, pl_bench_real(value[i]));
    return list;
}

/* A lone stream's own figures: medians, and every run's. */
static int add_lone(const work *k, json_t *line)
{
    double rates[PL_BENCH_REPS_MAX], waits[PL_BENCH_REPS_MAX];
    memcpy(rates, k->per_stream, sizeof rates);
    memcpy(waits, k->ttft, sizeof waits);
    return json_object_set_new(line, "decode_tps", reals(k->per_stream, k->runs)) |
           json_object_set_new(line, "decode_tps_median", pl_bench_real(pl_bench_median(rates, k->runs))) |
           json_object_set_new(line, "ttft_s_median", pl_bench_real(pl_bench_median(waits, k->runs)));
}

static double most(const double *value, int n)
{
    double best = NAN;
    for (int i = 0; i < n; i++)
        if (isfinite(value[i]) && !(best >= value[i]))
            best = value[i];
    return best;
}

static pl_status summarise(work *k, pl_error *err)
{
    pl_bench_result *out = k->result;
    out->aggregate = pl_bench_mean(k->aggregate, k->runs);
    out->per_stream = pl_bench_mean(k->per_stream, k->runs);
    out->ttft_max = most(k->ttft_max, k->runs);
    out->verdict = judge(k);
    if (out->unverified == 0) {
        pl_sha256_hex(&k->digest, out->digest);
        out->hash_len = strlen(k->first[0]);
    }
    json_t *line = json_pack(
        "{s:s, s:s, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:O}", "label", k->plan->label,
        "prompt", k->cell->name, "temperature", k->cell->temperature, "streams", k->cell->streams, "runs", k->runs,
        "tokens", k->plan->tokens, "failed", out->failed, "unmeasured", out->unmeasured, "unverified", out->unverified,
        "aggregate_tps", pl_bench_real(out->aggregate), "per_stream_tps", pl_bench_real(out->per_stream), "steady_tps",
        pl_bench_real(pl_bench_mean(k->steady, k->runs)), "ttft_s_max", pl_bench_real(out->ttft_max), "repeats",
        tally_json(&k->repeats, 0), "verdict", pl_bench_verdict_name(out->verdict), "token_sha", k->hashes);
    int wrong = line == NULL;
    if (k->cell->streams == 1)
        wrong |= add_lone(k, line);
    else
        wrong |= json_object_set_new(line, "aggregate_tps_runs", reals(k->aggregate, k->runs));
    if (k->plan->alone)
        wrong |= json_object_set_new(line, "alone", tally_json(&k->with_alone, k->alone_failed));
    if (k->plan->serial)
        wrong |= json_object_set_new(line, "serial", tally_json(&k->with_serial, k->serial_failed));
    for (int i = 0; i < COUNTERS; i++)
        if (isfinite(k->counted[i]))
            wrong |= json_object_set_new(line, counters[i], json_integer((json_int_t)k->counted[i]));
    if (json_array_size(k->errors))
        wrong |= json_object_set(line, "errors", k->errors);
    out->line = line;
    return wrong ? pl_fail(err, PL_ENOMEM, "no memory for the figures of a cell (or the label is not UTF-8)") : PL_OK;
}

pl_status pl_bench_cell_run(const pl_bench_plan *plan, const pl_bench_cell *cell, pl_bench_result *result,
                            pl_error *err)
{
    size_t n = (size_t)cell->streams;
    *result = (pl_bench_result){.runs = json_array()};
    if (cell->streams < 1 || cell->streams > PL_BENCH_STREAMS_MAX || plan->reps < 1 || plan->reps > PL_BENCH_REPS_MAX)
        return pl_fail(err, PL_EINVAL, "1 to %d streams and 1 to %d runs", PL_BENCH_STREAMS_MAX, PL_BENCH_REPS_MAX);
    work *k = calloc(1, sizeof *k);
    if (!k)
        return pl_fail(err, PL_ENOMEM, "no memory for a cell");
    *k = (work){.plan = plan, .cell = cell, .result = result, .wave = calloc(1, sizeof *k->wave)};
    k->first = calloc(n, sizeof *k->first);
    k->alone = calloc(n, sizeof *k->alone);
    k->serial = calloc(n, sizeof *k->serial);
    k->errors = json_array();
    k->hashes = json_array();
    pl_sha256_init(&k->digest);
    pl_status status = PL_OK;
    if (!k->wave || !k->first || !k->alone || !k->serial || !k->errors || !k->hashes || !result->runs)
        status = pl_fail(err, PL_ENOMEM, "no memory for a cell");
    if (status == PL_OK)
        status = run_all(k, err);
    if (status == PL_OK)
        status = summarise(k, err);
    if (k->wave)
        free_wave(k->wave);
    json_decref(k->errors);
    json_decref(k->hashes);
    free(k->wave);
    free(k->first);
    free(k->alone);
    free(k->serial);
    free(k);
    return status;
}

void pl_bench_result_free(pl_bench_result *result)
{
    json_decref(result->line);
    json_decref(result->runs);
    *result = (pl_bench_result){0};
}
