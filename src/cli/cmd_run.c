/* paceline run: one reply in the terminal. A client of the public C API and of nothing below it, so that `run` and
 * `serve` are one path and give one reply. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "cli/run_output.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROMPT_CAP = 64 << 20, POLL_MS = 100 };

static volatile sig_atomic_t interrupted;

/* The first Ctrl-C asks for the end of the reply. The handler is gone after it, so that a second one ends the
 * program. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

typedef struct run {
    const pl_settings *settings;
    pl_buf prompt; /* text from standard input */
    int32_t *ids;
    size_t count;
    pl_query query;
    pl_instance *instance;
    pl_job *job;
    run_output output;
} run;

static bool by_flag(const pl_settings *s, pl_setting_id id)
{
    return s->value[id].source == PL_FROM_FLAG;
}

/* Settings that would have no effect are refused rather than dropped. */
static pl_status check_together(const pl_settings *s, pl_error *err)
{
    bool raw = pl_set_on(s, PL_SET_RAW), ids = pl_set_given(s, PL_SET_IDS);
    if (ids && (s->args || raw))
        return pl_fail_param(err, PL_EINVAL, "ids",
                             "--ids is the whole input: neither a prompt nor --raw goes with it");
    if (pl_set_on(s, PL_SET_BOS) && !raw)
        return pl_fail_param(err, PL_EINVAL, "bos", "--bos goes with --raw; a chat begins with that token anyway");
    static const pl_setting_id chat_only[] = {PL_SET_SYSTEM, PL_SET_THINKING, PL_SET_EFFORT};
    for (size_t i = 0; i < sizeof chat_only / sizeof *chat_only; i++)
        if ((raw || ids) && by_flag(s, chat_only[i])) {
            const char *name = pl_setting_table[chat_only[i]].name;
            return pl_fail_param(err, PL_EINVAL, name, "--%s is for chats; it does not go with --raw or --ids", name);
        }
    return PL_OK;
}

/* The text of the prompt: the word given, or standard input for "-" and for a pipe. */
static pl_status read_prompt(run *r, pl_error *err)
{
    const pl_settings *s = r->settings;
    if (pl_set_given(s, PL_SET_IDS)) {
        PL_TRY(pl_ids_parse(pl_set_text(s, PL_SET_IDS), &r->ids, &r->count, err));
        r->query.ids = r->ids;
        r->query.ids_len = r->count;
        return PL_OK;
    }
    if (s->args && strcmp(s->arg[0], "-") != 0) {
        r->query.text = s->arg[0];
        r->query.text_len = strlen(s->arg[0]);
    } else {
        if (!s->args && isatty(STDIN_FILENO))
            return pl_fail(err, PL_EINVAL, "a prompt is needed; usage: paceline run %s", s->command->usage);
        PL_TRY(pl_file_read(&r->prompt, "-", err));
        r->query.text = r->prompt.data ? r->prompt.data : "";
        r->query.text_len = r->prompt.len;
    }
    if (!r->query.text_len)
        return pl_fail(err, PL_EINVAL, "the prompt is empty");
    return PL_OK;
}

static void fill_query(run *r)
{
    const pl_settings *s = r->settings;
    pl_query *q = &r->query;
    q->raw = pl_set_on(s, PL_SET_RAW);
    q->bos = pl_set_on(s, PL_SET_BOS);
    if (pl_set_given(s, PL_SET_SYSTEM))
        q->system = pl_set_text(s, PL_SET_SYSTEM);
    if (pl_set_given(s, PL_SET_SEED)) {
        q->seeded = true;
        q->seed = pl_set_int(s, PL_SET_SEED);
    }
    q->ignore_eos = pl_set_on(s, PL_SET_IGNORE_EOS);
    q->draft = pl_set_on(s, PL_SET_DRAFTS);
}

static pl_status fill_options(const run *r, const char *dir, pl_options *o, pl_error *err)
{
    const pl_settings *s = r->settings;
    pl_options_init(o);
    o->model_dir = dir;
    o->threads = (int)pl_set_int(s, PL_SET_THREADS);
    o->context = (int)pl_set_int(s, PL_SET_CONTEXT);
    o->max_tokens = (int)pl_set_int(s, PL_SET_MAX_TOKENS);
    o->drafts = pl_set_on(s, PL_SET_DRAFTS);
    o->plain_streams = (int)pl_set_int(s, PL_SET_PLAIN_STREAMS);
    o->depth_joint = (int)pl_set_int(s, PL_SET_DEPTH_JOINT);
    o->round_profile = pl_set_on(s, PL_SET_ROUND_PROFILE);
    if (pl_set_given(s, PL_SET_ACCEPT_LOG))
        o->accept_log = pl_set_text(s, PL_SET_ACCEPT_LOG);
    if (pl_set_given(s, PL_SET_CACHE_DIR))
        o->cache_dir = pl_set_text(s, PL_SET_CACHE_DIR);
    if (pl_set_given(s, PL_SET_SEED_SALT))
        o->seed_salt = pl_set_text(s, PL_SET_SEED_SALT);
    if (pl_set_given(s, PL_SET_TEMPERATURE))
        o->temperature = pl_set_real(s, PL_SET_TEMPERATURE);
    if (pl_set_given(s, PL_SET_TOP_P))
        o->top_p = pl_set_real(s, PL_SET_TOP_P);
    if (pl_set_given(s, PL_SET_MIN_P))
        o->min_p = pl_set_real(s, PL_SET_MIN_P);
    if (pl_set_given(s, PL_SET_TOP_K))
        o->top_k = (int)pl_set_int(s, PL_SET_TOP_K);
    if (pl_set_given(s, PL_SET_THINKING))
        o->thinking = pl_set_on(s, PL_SET_THINKING);
    o->progress = run_loading;
    o->progress_arg = (void *)(uintptr_t)&r->output;
    return cmd_effort(s, &o->effort, err);
}

static pl_status open_model(run *r, pl_error *err)
{
    char *dir = NULL;
    pl_options options;
    PL_TRY(cmd_model_dir(r->settings, &dir, err));
    int64_t began = pl_now_ns();
    pl_status status = fill_options(r, dir, &options, err);
    if (status == PL_OK)
        status = pl_open(&r->instance, &options, err);
    r->output.load_ms = (double)(pl_now_ns() - began) * 1e-6;
    free(dir);
    return status;
}

/* Read the reply's events to its end. An output that can no longer be written gives the reply up. */
static pl_status read_reply(run *r, pl_event *event, pl_error *err)
{
    bool cancelled = false;
    pl_status failed = PL_OK;
    pl_error ignored;
    do {
        if (interrupted && !cancelled) {
            pl_cancel(r->job);
            cancelled = true;
        }
        pl_status status = pl_poll(r->job, event, POLL_MS, &ignored);
        if (status == PL_EBUSY)
            continue;
        if (status != PL_OK)
            return pl_fail(err, status, "%s", ignored.message);
        if (failed == PL_OK)
            failed = run_event(&r->output, event, err);
        if (failed != PL_OK && !cancelled) {
            pl_cancel(r->job);
            cancelled = true;
        }
    } while (event->kind != PL_EVENT_FINISHED);
    if (failed == PL_OK && event->reason == PL_REASON_ERROR) {
        *err = *event->error;
        return err->status;
    }
    return failed;
}

static pl_status run_all(run *r, pl_error *err)
{
    PL_TRY(check_together(r->settings, err));
    pl_log_set_level((pl_log_level)pl_set_int(r->settings, PL_SET_LOG));
    PL_TRY(read_prompt(r, err));
    fill_query(r);
    PL_TRY(open_model(r, err));
    PL_TRY(pl_submit(r->instance, &r->query, &r->job, err));
    catch_interrupt();
    pl_event event = {.kind = PL_EVENT_STARTED};
    PL_TRY(read_reply(r, &event, err));
    PL_TRY(run_end(&r->output, &event, err));
    if (event.reason == PL_REASON_CANCELLED && interrupted)
        return pl_fail(err, PL_ECANCELED, "stopped");
    return PL_OK;
}

int cmd_run(const pl_settings *settings)
{
    run r = {.settings = settings};
    pl_error err;
    pl_buf_init(&r.prompt, PROMPT_CAP, "prompt");
    pl_query_init(&r.query);
    run_output_init(&r.output, pl_set_on(settings, PL_SET_JSON));
    pl_status status = run_all(&r, &err);
    pl_job_close(r.job);
    pl_close(r.instance);
    run_output_free(&r.output);
    pl_buf_free(&r.prompt);
    free(r.ids);
    if (status == PL_OK)
        return CMD_OK;
    return status == PL_ECANCELED && interrupted ? CMD_INTERRUPTED : cmd_fail(settings, &err);
}
