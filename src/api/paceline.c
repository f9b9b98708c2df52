/* The public C API: a thin coat over host, spec and reply. */
#include "api/reply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_QUEUE = 64, DEFAULT_PLAIN_STREAMS = 3, DEFAULT_JOINT = 1 };
static const double DECODE_SHARE = 0.25;

struct pl_instance {
    pl_host *host;
};

struct pl_job {
    pl_reply *reply;
    size_t prompt_tokens;
    bool finished;
};

void pl_options_init(pl_options *o)
{
    *o = (pl_options){.drafts = true,
                      .plain_streams = PL_DEFAULT,
                      .depth_joint = PL_DEFAULT,
                      .temperature = NAN,
                      .top_p = NAN,
                      .min_p = NAN,
                      .top_k = PL_DEFAULT,
                      .thinking = PL_DEFAULT};
}

void pl_query_init(pl_query *q)
{
    *q = (pl_query){.thinking = PL_DEFAULT,
                    .temperature = NAN,
                    .top_p = NAN,
                    .min_p = NAN,
                    .top_k = PL_DEFAULT,
                    .repetition_penalty = NAN,
                    .frequency_penalty = NAN,
                    .presence_penalty = NAN,
                    .draft = true,
                    .top_logprobs = PL_DEFAULT};
}

static void say(pl_sampling_part *part, unsigned bit, float *to, double value)
{
    if (isnan(value))
        return;
    *to = (float)value;
    part->has |= bit;
}

static pl_status say_sampling(pl_sampling_part *part, double temperature, double top_p, double min_p, int top_k,
                              pl_error *err)
{
    if (temperature > 2) /* the other bounds are those of pl_sampling_check */
        return pl_fail_param(err, PL_EINVAL, "temperature", "temperature: expected 0 to 2, found %g", temperature);
    say(part, PL_HAS_TEMPERATURE, &part->value.temperature, temperature);
    say(part, PL_HAS_TOP_P, &part->value.top_p, top_p);
    say(part, PL_HAS_MIN_P, &part->value.min_p, min_p);
    if (top_k != PL_DEFAULT) {
        part->value.top_k = top_k < 0 ? 0 : top_k;
        part->has |= PL_HAS_TOP_K;
    }
    return PL_OK;
}

/* `value` in [min, max], or `unsaid`. */
static pl_status in_range(const char *name, int64_t value, int64_t unsaid, int64_t min, int64_t max, pl_error *err)
{
    if (value == unsaid || (value >= min && value <= max))
        return PL_OK;
    return pl_fail_param(err, PL_EINVAL, name, "%s: expected %lld to %lld, found %lld", name, (long long)min,
                         (long long)max, (long long)value);
}

static pl_status read_options(const pl_options *o, pl_host_settings *s, pl_error *err)
{
    if (!o->model_dir || !*o->model_dir)
        return pl_fail_param(err, PL_EINVAL, "model_dir", "model_dir: no folder given");
    PL_TRY(in_range("threads", o->threads, 0, 1, 1024, err));
    PL_TRY(in_range("context", o->context, 0, 16, 1 << 24, err));
    PL_TRY(in_range("queue", o->queue, 0, 1, 1 << 20, err));
    PL_TRY(in_range("parallel", o->parallel, 0, 1, 1024, err));
    PL_TRY(in_range("plain_streams", o->plain_streams, PL_DEFAULT, 0, 1024, err));
    PL_TRY(in_range("depth_joint", o->depth_joint, PL_DEFAULT, 0, 2, err));
    PL_TRY(in_range("max_tokens", o->max_tokens, 0, 1, 1 << 24, err));
    PL_TRY(in_range("thinking", o->thinking, PL_DEFAULT, 0, 1, err));
    PL_TRY(in_range("effort", o->effort, 0, 1, 100, err));
    *s = (pl_host_settings){.dir = o->model_dir,
                            .threads = o->threads,
                            .context = o->context,
                            .slots = o->parallel ? o->parallel : 1,
                            .engine.queue = o->queue ? o->queue : DEFAULT_QUEUE,
                            .cache_dir = o->cache_dir,
                            .seed_salt = o->seed_salt,
                            .drafts = o->drafts,
                            .progress = o->progress,
                            .progress_arg = o->progress_arg};
    pl_core_settings *core = &s->engine.core;
    core->plain_streams = o->plain_streams == PL_DEFAULT ? DEFAULT_PLAIN_STREAMS : o->plain_streams;
    core->joint = o->depth_joint == PL_DEFAULT ? DEFAULT_JOINT : o->depth_joint;
    core->decode_share = DECODE_SHARE;
    core->accept_log = o->accept_log;
    core->profile = o->round_profile;
    pl_defaults_unset(&s->flags);
    s->flags.max_tokens = o->max_tokens;
    s->flags.thinking = o->thinking == PL_DEFAULT ? -1 : o->thinking;
    s->flags.effort = o->effort;
    return say_sampling(&s->flags.sampling, o->temperature, o->top_p, o->min_p, o->top_k, err);
}

pl_status pl_open(pl_instance **out, const pl_options *options, pl_error *err)
{
    *out = NULL;
    pl_host_settings settings;
    PL_TRY(read_options(options, &settings, err));
    pl_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return pl_fail(err, PL_ENOMEM, "no memory for an instance");
    pl_status status = pl_host_open(&instance->host, &settings, err);
    if (status != PL_OK) {
        free(instance);
        return status;
    }
    *out = instance;
    return PL_OK;
}

void pl_close(pl_instance *instance)
{
    if (!instance)
        return;
    pl_host_close(instance->host);
    free(instance);
}

static pl_status chat_prompt(const pl_host *host, const pl_query *q, pl_spec *spec, pl_error *err)
{
    pl_chat_options options = pl_chat_default_options;
    options.thinking = q->thinking == PL_DEFAULT ? pl_host_thinks(host) : q->thinking;
    options.effort = q->effort ? q->effort : pl_host_effort(host);
    pl_chat *chat = NULL;
    pl_json_doc *doc = NULL;
    pl_status status;
    if (q->messages) {
        status = pl_json_parse(q->messages, q->messages_len, NULL, &doc, err);
        if (status == PL_OK)
            status = pl_chat_from_json(pl_json_root(doc), NULL, NULL, &options, &chat, err);
    } else {
        status = pl_chat_from_text(q->system, q->text, q->text_len, &options, &chat, err);
    }
    if (status == PL_OK)
        status = pl_spec_chat(spec, pl_host_tokenizer(host), chat, err);
    pl_chat_free(chat);
    pl_json_free(doc);
    return status;
}

static pl_status read_prompt(const pl_host *host, const pl_query *q, pl_spec *spec, pl_error *err)
{
    if (!!q->messages + !!q->text + !!q->ids != 1)
        return pl_fail_param(err, PL_EINVAL, "prompt", "expected exactly one of messages, text and ids");
    if (q->ids)
        return pl_spec_ids(spec, q->ids, q->ids_len, pl_host_config(host)->vocab_size, err);
    if (q->text && q->raw)
        return pl_spec_text(spec, pl_host_tokenizer(host), q->text, q->text_len, q->bos ? pl_host_bos(host) : -1, err);
    return chat_prompt(host, q, spec, err);
}

static pl_status read_query(const pl_host *host, const pl_query *q, pl_spec *spec, pl_error *err)
{
    PL_TRY(in_range("max_tokens", q->max_tokens, 0, 1, 1 << 24, err));
    PL_TRY(in_range("thinking", q->thinking, PL_DEFAULT, 0, 1, err));
    PL_TRY(in_range("effort", q->effort, 0, 1, 100, err));
    PL_TRY(in_range("top_logprobs", q->top_logprobs, PL_DEFAULT, 0, PL_TOP_LOGPROBS_MAX, err));
    for (size_t i = 0; i < q->n_stops; i++)
        PL_TRY(pl_spec_add_stop(spec, q->stops[i], strlen(q->stops[i]), err));
    pl_sampling_part *part = &spec->sampling;
    PL_TRY(say_sampling(part, q->temperature, q->top_p, q->min_p, q->top_k, err));
    say(part, PL_HAS_REPETITION, &part->value.repetition_penalty, q->repetition_penalty);
    say(part, PL_HAS_FREQUENCY, &part->value.frequency_penalty, q->frequency_penalty);
    say(part, PL_HAS_PRESENCE, &part->value.presence_penalty, q->presence_penalty);
    part->value.seed = (uint64_t)q->seed;
    part->has |= q->seeded ? PL_HAS_SEED : 0;
    spec->max_tokens = q->max_tokens;
    spec->ignore_eos = q->ignore_eos;
    spec->draft = q->draft;
    spec->top_logprobs = q->top_logprobs == PL_DEFAULT ? -1 : q->top_logprobs;
    return read_prompt(host, q, spec, err);
}

pl_status pl_submit(pl_instance *instance, const pl_query *query, pl_job **out, pl_error *err)
{
    *out = NULL;
    pl_job *job = calloc(1, sizeof *job);
    if (!job)
        return pl_fail(err, PL_ENOMEM, "no memory for a job");
    pl_spec spec;
    pl_spec_init(&spec);
    pl_status status = read_query(instance->host, query, &spec, err);
    if (status == PL_OK)
        status = pl_reply_submit(instance->host, &spec, 1, 1, NULL, NULL, &job->reply, err);
    job->prompt_tokens = spec.prompt.len;
    pl_spec_free(&spec);
    if (status != PL_OK) {
        free(job);
        return status;
    }
    *out = job;
    return PL_OK;
}

void pl_cancel(pl_job *job)
{
    pl_reply_cancel(job->reply);
}

void pl_job_close(pl_job *job)
{
    if (!job)
        return;
    pl_reply_release(job->reply);
    free(job);
}

static void fill_end(pl_event *event, const pl_reply_event *e)
{
    static const pl_reason reasons[] = {[PL_FINISH_STOP] = PL_REASON_STOP,
                                        [PL_FINISH_LENGTH] = PL_REASON_LENGTH,
                                        [PL_FINISH_CANCELLED] = PL_REASON_CANCELLED,
                                        [PL_FINISH_ERROR] = PL_REASON_ERROR};
    const pl_outcome *o = e->outcome;
    event->reason = reasons[o->reason];
    event->tokens = o->tokens;
    event->reasoning_tokens = e->reasoning_tokens;
    event->token_sha = o->token_sha;
    event->queued_s = (double)o->timings.queued * 1e-9;
    event->prefill_s = (double)o->timings.prefill * 1e-9;
    event->first_token_s = (double)o->timings.first * 1e-9;
    event->decode_s = (double)o->timings.decode * 1e-9;
    event->rounds = o->numbers.rounds;
    event->plain_rounds = o->numbers.plain_rounds;
    event->rows = o->numbers.rows;
    event->drafted = o->numbers.drafted;
    event->accepted = o->numbers.accepted;
    event->asks = o->numbers.asks;
    event->copied = o->numbers.copied;
    event->copied_kept = o->numbers.copied_kept;
    event->error = o->reason == PL_FINISH_ERROR ? &o->error : NULL;
}

pl_status pl_poll(pl_job *job, pl_event *event, int timeout_ms, pl_error *err)
{
    static const pl_event_kind kinds[] = {[PL_STREAM_STARTED] = PL_EVENT_STARTED,
                                          [PL_STREAM_PREFILL] = PL_EVENT_PREFILL,
                                          [PL_STREAM_TOKEN] = PL_EVENT_TOKEN,
                                          [PL_STREAM_FINISHED] = PL_EVENT_FINISHED};
    *event = (pl_event){.prompt_tokens = job->prompt_tokens};
    if (job->finished)
        return pl_fail(err, PL_ENOTFOUND, "the reply is over");
    pl_reply_event e;
    if (!pl_reply_next(job->reply, &e)) {
        if (timeout_ms == 0 || !pl_reply_wait(job->reply, timeout_ms) || !pl_reply_next(job->reply, &e))
            return pl_fail(err, PL_EBUSY, "nothing new within %d ms", timeout_ms);
    }
    event->kind = kinds[e.kind];
    event->prefilled = e.prefilled;
    event->token = e.token;
    event->logprob = e.logprob;
    event->tops = e.tops;
    event->top = e.top;
    event->top_logprob = e.top_logprob;
    event->reasoning = e.reasoning ? e.reasoning : "";
    event->reasoning_len = e.reasoning_len;
    event->text = e.text ? e.text : "";
    event->text_len = e.text_len;
    if (e.kind == PL_STREAM_FINISHED) {
        job->finished = true;
        fill_end(event, &e);
    }
    return PL_OK;
}
