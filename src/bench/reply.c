/* See reply.h. */
#include "bench/reply.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pl_bench_reply_init(pl_bench_reply *r)
{
    memset(r, 0, sizeof *r);
    r->prompt_tokens = r->cached_tokens = r->tokens = -1;
    pl_buf_init(&r->plain, PL_BENCH_PLAIN_MAX, "answer that is no event stream");
    pl_sha256_init(&r->output);
    pl_sha256_init(&r->reasoning);
    pl_bench_response_init(&r->response);
    pl_bench_sse_init(&r->sse);
}

void pl_bench_reply_free(pl_bench_reply *r)
{
    free(r->piece);
    r->piece = NULL;
    json_decref(r->block);
    r->block = NULL;
    pl_buf_free(&r->plain);
    pl_bench_sse_free(&r->sse);
}

void pl_bench_reply_fail(pl_bench_reply *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (!r->failed)
        (void)vsnprintf(r->error, sizeof r->error, fmt, args);
    va_end(args);
    r->failed = r->ended = true;
}

/* ---- one event of the stream ------------------------------------------------------------------------------------ */

static pl_status add_piece(pl_bench_reply *r, pl_error *err)
{
    if (r->pieces == r->room) {
        if (r->room >= PL_BENCH_PIECES_MAX)
            return pl_fail(err, PL_ELIMIT, "the reply comes in more than %d pieces", PL_BENCH_PIECES_MAX);
        size_t room = r->room ? r->room * 2 : 256;
        int64_t *grown = realloc(r->piece, room * sizeof *grown);
        if (!grown)
            return pl_fail(err, PL_ENOMEM, "no memory for the times of a reply's pieces");
        r->piece = grown;
        r->room = room;
    }
    r->piece[r->pieces++] = r->now;
    return PL_OK;
}

static bool add_text(pl_sha256 *sha, const json_t *text)
{
    if (!json_is_string(text) || json_string_length(text) == 0)
        return false;
    pl_sha256_add(sha, json_string_value(text), json_string_length(text));
    return true;
}

/* A hash of tokens: 12 to 64 lower-case hex digits; anything else is none. A server may say it short and long. */
static void take_hash(pl_bench_reply *r, const json_t *hash)
{
    const char *text = json_is_string(hash) ? json_string_value(hash) : "";
    size_t n = strlen(text);
    if (n < 12 || n > 64 || strspn(text, "0123456789abcdef") != n)
        return;
    size_t had = strlen(r->token_sha);
    if (memcmp(r->token_sha, text, had < n ? had : n) != 0)
        r->hash_conflict = true;
    if (n > had)
        memcpy(r->token_sha, text, n + 1);
}

static void take_block(pl_bench_reply *r, json_t *block)
{
    if (!json_is_object(block))
        return;
    take_hash(r, json_object_get(block, "token_sha"));
    if (json_dumpb(block, NULL, 0, JSON_COMPACT) > PL_BENCH_BLOCK_MAX)
        return;
    json_decref(r->block);
    r->block = json_incref(block);
}

static int64_t count_of(const json_t *usage, const char *name, int64_t before)
{
    const json_t *n = json_object_get(usage, name);
    return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : before;
}

static void take_usage(pl_bench_reply *r, const json_t *usage)
{
    if (!json_is_object(usage))
        return;
    r->prompt_tokens = count_of(usage, "prompt_tokens", r->prompt_tokens);
    r->tokens = count_of(usage, "completion_tokens", r->tokens);
    r->cached_tokens = count_of(json_object_get(usage, "prompt_tokens_details"), "cached_tokens", r->cached_tokens);
}

static pl_status take_choice(pl_bench_reply *r, const json_t *choice, pl_error *err)
{
    const json_t *delta = json_object_get(choice, "delta");
    bool text = add_text(&r->output, json_object_get(choice, "text"));
    text |= add_text(&r->output, json_object_get(delta, "content"));
    bool reasons = add_text(&r->reasoning, json_object_get(delta, "reasoning_content"));
    if (!reasons) /* some servers say both, with the same text */
        reasons = add_text(&r->reasoning, json_object_get(delta, "reasoning"));
    r->has_reasoning |= reasons;
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    if (reason && *reason)
        (void)snprintf(r->finish_reason, sizeof r->finish_reason, "%s", reason);
    take_hash(r, json_object_get(choice, "token_sha"));
    return text || reasons ? add_piece(r, err) : PL_OK;
}

/* The message of an error in OpenAI's form, or in the forms that other servers have for it. */
static const char *message_of(const json_t *error)
{
    const char *text = json_string_value(json_object_get(error, "message"));
    text = text ? text : json_string_value(error);
    return text ? text : "no message";
}

static pl_status take_event(void *arg, const char *data, size_t n, pl_error *err)
{
    pl_bench_reply *r = arg;
    if (r->done)
        return pl_fail(err, PL_EFORMAT, "the stream goes on after [DONE]");
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        r->done = true;
        return PL_OK;
    }
    json_error_t at;
    json_t *event = json_loadb(data, n, JSON_ALLOW_NUL, &at);
    if (!json_is_object(event)) {
        json_decref(event);
        return pl_fail(err, PL_EFORMAT, "an event of the stream is no JSON object: \"%.*s\"", n < 80 ? (int)n : 80,
                       data);
    }
    pl_status status = PL_OK;
    const json_t *error = json_object_get(event, "error");
    if (error && !json_is_null(error)) {
        status = pl_fail(err, PL_EIO, "the stream ends with an error: %.300s", message_of(error));
    } else {
        take_usage(r, json_object_get(event, "usage"));
        take_hash(r, json_object_get(event, "token_sha"));
        take_block(r, json_object_get(event, "tensorfold"));
        take_block(r, json_object_get(event, "paceline"));
        status = take_choice(r, json_array_get(json_object_get(event, "choices"), 0), err);
    }
    json_decref(event);
    return status;
}

static pl_status take_body(void *arg, const char *bytes, size_t n, pl_error *err)
{
    pl_bench_reply *r = arg;
    if (r->response.status == 200 && r->response.event_stream)
        return pl_bench_sse_read(&r->sse, bytes, n, take_event, r, err);
    return pl_buf_add(&r->plain, bytes, n, err);
}

/* ---- the connection --------------------------------------------------------------------------------------------- */

static void end(pl_bench_reply *r, int64_t now)
{
    r->ended = r->whole = true;
    r->closed = now;
}

static bool settle(pl_bench_reply *r, pl_status status, const pl_error *err, int64_t now)
{
    r->status = r->response.status;
    if (status != PL_OK)
        pl_bench_reply_fail(r, "%s", err->message);
    else if (r->response.state == PL_BENCH_DONE)
        end(r, now);
    if (r->ended) {
        pl_sha256_hex(&r->output, r->output_sha256);
        if (r->has_reasoning)
            pl_sha256_hex(&r->reasoning, r->reasoning_sha256);
    }
    return r->ended;
}

bool pl_bench_reply_bytes(pl_bench_reply *r, const char *bytes, size_t n, int64_t now)
{
    pl_error err;
    r->now = now;
    return settle(r, pl_bench_response_read(&r->response, bytes, n, take_body, r, &err), &err, now);
}

bool pl_bench_reply_closed(pl_bench_reply *r, int64_t now)
{
    pl_error err;
    return settle(r, pl_bench_response_end(&r->response, &err), &err, now);
}

/* ---- what it is worth ------------------------------------------------------------------------------------------- */

bool pl_bench_reply_complete(const pl_bench_reply *r)
{
    return !r->failed && r->whole && r->done && r->finish_reason[0] && r->tokens >= 0;
}

bool pl_bench_reply_verified(const pl_bench_reply *r)
{
    return pl_bench_reply_complete(r) && r->token_sha[0] && !r->hash_conflict;
}

bool pl_bench_reply_measured(const pl_bench_reply *r)
{
    return pl_bench_reply_complete(r) && r->tokens >= 2 && r->pieces >= PL_BENCH_FEWEST_PIECES &&
           r->piece[r->pieces - 1] > r->piece[0];
}

json_t *pl_bench_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count_json(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *text_json(const char *text)
{
    json_t *string = *text ? json_string(text) : json_null();
    return string ? string : json_string("text that is not UTF-8");
}

json_t *pl_bench_reply_json(const pl_bench_reply *r)
{
    double first = r->pieces ? (double)(r->piece[0] - r->sent) * 1e-9 : NAN;
    double last = r->pieces ? (double)(r->piece[r->pieces - 1] - r->sent) * 1e-9 : NAN;
    json_t *json = json_pack(
        "{s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "status", r->status, "complete",
        pl_bench_reply_complete(r), "verified", pl_bench_reply_verified(r), "finish_reason",
        text_json(r->finish_reason), "prompt_tokens", count_json(r->prompt_tokens), "cached_tokens",
        count_json(r->cached_tokens), "tokens", count_json(r->tokens), "cache_state",
        r->cached_tokens < 0 ? "unverified"
        : r->cached_tokens   ? "reused"
                             : "cold",
        "token_sha", text_json(r->hash_conflict ? "" : r->token_sha), "output_sha256", text_json(r->output_sha256),
        "reasoning_sha256", text_json(r->reasoning_sha256), "ttft_s", pl_bench_real(first), "pieces",
        (json_int_t)r->pieces, "last_s", pl_bench_real(last), "error", text_json(r->failed ? r->error : ""));
    if (json && r->block)
        (void)json_object_set(json, "server", r->block);
    return json;
}
