#include "cli/run_output.h"

#include "base/clock.h"
#include "cli/cmd.h"
#include "text/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { REPLY_CAP = 256 << 20, TOLD_LIVE_MS = 500, TOLD_LOG_MS = 10000 };

static const char *const reasons[] = {"stop", "length", "cancelled", "error"};

void run_output_init(run_output *out, bool json)
{
    *out = (run_output){.json = json, .terminal = isatty(STDERR_FILENO), .began = pl_now_ns(), .ends_in_newline = true};
    out->said = out->began;
    pl_buf_init(&out->tokens, REPLY_CAP, "reply");
    pl_buf_init(&out->text, REPLY_CAP, "reply");
    pl_buf_init(&out->reasoning, REPLY_CAP, "reply");
}

void run_output_free(run_output *out)
{
    pl_buf_free(&out->tokens);
    pl_buf_free(&out->text);
    pl_buf_free(&out->reasoning);
}

/* On a terminal a line is drawn over itself, twice a second; elsewhere a line every ten seconds, so that a log of a
 * short run stays empty. */
static void tell(run_output *out, const char *what, uint64_t done, uint64_t total)
{
    int64_t now = pl_now_ns();
    if (now - out->said < (int64_t)(out->terminal ? TOLD_LIVE_MS : TOLD_LOG_MS) * 1000000)
        return;
    out->said = now;
    double percent = total ? 100.0 * (double)done / (double)total : 100.0;
    if (out->terminal)
        fprintf(stderr, "\r\033[K%s: %" PRIu64 " of %" PRIu64 " (%.0f%%)", what, done, total, percent);
    else
        fprintf(stderr, "paceline run: %s: %" PRIu64 " of %" PRIu64 " (%.0f%%)\n", what, done, total, percent);
    out->drawn = out->terminal;
}

static void clear_line(run_output *out)
{
    if (out->drawn)
        fputs("\r\033[K", stderr);
    out->drawn = false;
}

void run_loading(void *arg, const char *what, uint64_t done, uint64_t total)
{
    tell(arg, what, done, total);
}

/* Thinking goes to standard error, the answer alone to standard output. */
static pl_status show_text(run_output *out, const pl_event *event, pl_error *err)
{
    if (event->reasoning_len) {
        if (out->terminal)
            fputs("\033[2m", stderr);
        fwrite(event->reasoning, 1, event->reasoning_len, stderr);
        if (out->terminal)
            fputs("\033[0m", stderr);
        out->reasoning.len = 1; /* some was shown */
    }
    if (!event->text_len)
        return PL_OK;
    if (out->reasoning.len) {
        fputc('\n', stderr);
        out->reasoning.len = 0;
    }
    out->ends_in_newline = event->text[event->text_len - 1] == '\n';
    return cmd_print(event->text, event->text_len, err);
}

static pl_status keep(run_output *out, const pl_event *event, pl_error *err)
{
    if (event->kind == PL_EVENT_TOKEN)
        PL_TRY(pl_buf_addf(&out->tokens, err, "%s%" PRId32, out->tokens.len ? ", " : "", event->token));
    PL_TRY(pl_buf_add(&out->text, event->text, event->text_len, err));
    return pl_buf_add(&out->reasoning, event->reasoning, event->reasoning_len, err);
}

pl_status run_event(run_output *out, const pl_event *event, pl_error *err)
{
    out->prompt_tokens = event->prompt_tokens;
    if (event->kind == PL_EVENT_PREFILL)
        tell(out, "prompt tokens", event->prefilled, event->prompt_tokens);
    if (event->kind != PL_EVENT_TOKEN && event->kind != PL_EVENT_FINISHED)
        return PL_OK;
    clear_line(out);
    return out->json ? keep(out, event, err) : show_text(out, event, err);
}

/* Tokens behind the first, over the time from the first to the last. */
static double pace(const pl_event *last)
{
    return last->tokens > 1 && last->decode_s > 0 ? (double)(last->tokens - 1) / last->decode_s : 0;
}

static double prompt_pace(const run_output *out, const pl_event *last)
{
    return last->prefill_s > 0 ? (double)out->prompt_tokens / last->prefill_s : 0;
}

static pl_status write_json(const run_output *out, const pl_event *last, pl_buf *json, pl_error *err)
{
    PL_TRY(pl_buf_addf(json, err, "{\"tokens\": [%s], \"text\": ", out->tokens.len ? out->tokens.data : ""));
    PL_TRY(pl_json_write_string(out->text.data ? out->text.data : "", out->text.len, json, err));
    if (out->reasoning.len) {
        PL_TRY(pl_buf_adds(json, ", \"reasoning\": ", err));
        PL_TRY(pl_json_write_string(out->reasoning.data, out->reasoning.len, json, err));
    }
    PL_TRY(pl_buf_addf(json, err,
                       ", \"finish_reason\": \"%s\", \"token_sha\": \"%s\", \"prompt_tokens\": %zu, "
                       "\"completion_tokens\": %zu, \"reasoning_tokens\": %zu, ",
                       reasons[last->reason], last->token_sha, out->prompt_tokens, last->tokens,
                       last->reasoning_tokens));
    return pl_buf_addf(json, err,
                       "\"timings\": {\"load_ms\": %.3f, \"prefill_ms\": %.3f, \"first_token_ms\": %.3f, "
                       "\"decode_ms\": %.3f, \"prompt_tokens_per_second\": %.3f, \"tokens_per_second\": %.3f}, "
                       "\"paceline\": {\"rounds\": %" PRIu64 ", \"plain_rounds\": %" PRIu64 ", \"rows\": %" PRIu64
                       ", \"asks\": %" PRIu64 ", \"drafted\": %" PRIu64 ", \"accepted\": %" PRIu64
                       ", \"copied\": %" PRIu64 ", \"copied_kept\": %" PRIu64 "}}\n",
                       out->load_ms, last->prefill_s * 1e3, last->first_token_s * 1e3, last->decode_s * 1e3,
                       prompt_pace(out, last), pace(last), last->rounds, last->plain_rounds, last->rows, last->asks,
                       last->drafted, last->accepted, last->copied, last->copied_kept);
}

pl_status run_end(run_output *out, const pl_event *last, pl_error *err)
{
    if (!out->json) {
        if (!out->ends_in_newline)
            PL_TRY(cmd_print("\n", 1, err));
        fprintf(stderr, "[%zu prompt tokens at %.1f/s, %zu reply tokens at %.1f/s, %s, token_sha %s]\n",
                out->prompt_tokens, prompt_pace(out, last), last->tokens, pace(last), reasons[last->reason],
                last->token_sha);
        return PL_OK;
    }
    pl_buf json;
    pl_buf_init(&json, (size_t)REPLY_CAP * 8, "reply");
    pl_status status = write_json(out, last, &json, err);
    if (status == PL_OK)
        status = cmd_print(json.data, json.len, err);
    pl_buf_free(&json);
    return status;
}
