/* What the core's tests share: streams without an engine, and the plain engine's reply, made in the plainest way. */
#ifndef TESTS_LANES_CORE_KIT_H
#define TESTS_LANES_CORE_KIT_H

#include "lanes/core.h"
#include "lanes/fake_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct ending {
    pl_stream *stream;
    bool over;
    pl_outcome outcome;
    int away; /* times it gave its slot up */
} ending;

typedef struct kit {
    pair pair;
    pl__core core;
    ending ending[64];
    int endings;
    pl_stream *back[64]; /* gave their slot up: admitted again by kit_run */
    int backs;
} kit;

static inline void kit_left(void *arg, pl_stream *stream, const pl_outcome *outcome)
{
    kit *k = arg;
    for (int i = 0; i < k->endings; i++)
        if (k->ending[i].stream == stream) {
            k->ending[i].over = outcome;
            k->ending[i].away += !outcome;
            if (outcome)
                k->ending[i].outcome = *outcome;
            else
                k->back[k->backs++] = stream;
            return;
        }
    fail_msg("an unknown stream left");
}

/* On any tables. */
static inline void kit_open_on(kit *k, const pl_target *target, const pl_draft_table *drafter,
                               const pl_core_settings *settings)
{
    pl_error err;
    k->endings = k->backs = 0;
    memset(k->ending, 0, sizeof k->ending);
    if (pl__core_open(&k->core, target, drafter, settings, kit_left, k, &err) != PL_OK)
        fail_msg("open: %s", err.message);
}

/* On the fake pair. */
static inline void kit_open(kit *k, int slots, int rows, const pl_core_settings *settings)
{
    memset(k, 0, sizeof *k);
    pair_init(&k->pair, slots, rows);
    kit_open_on(k, &k->pair.target, &k->pair.drafter, settings);
}

/* A greedy request. */
static inline pl_request kit_request(const int32_t *prompt, size_t len, int64_t max_tokens)
{
    return (pl_request){.prompt = prompt,
                        .prompt_len = len,
                        .sampling = {.temperature = 0, .top_p = 1, .repetition_penalty = 1},
                        .max_tokens = max_tokens,
                        .eos = -1,
                        .draft = true,
                        .top_logprobs = -1};
}

static inline pl_stream *kit_stream(kit *k, const pl_request *request)
{
    pl_error err;
    pl_stream *s;
    if (pl__request_check(request, k->core.target.context, k->core.target.vocab, &err) != PL_OK ||
        pl__stream_new(&s, request, NULL, &err) != PL_OK)
        fail_msg("stream: %s", err.message);
    k->ending[k->endings++].stream = s;
    return s;
}

static inline void kit_admit(kit *k, pl_stream *s)
{
    pl_error err;
    assert_true(pl__core_has_room(&k->core));
    assert_int_equal(pl__core_admit(&k->core, s, &err), PL_OK);
}

static inline void kit_step(kit *k)
{
    pl_error err;
    if (pl__core_step(&k->core, &err) != PL_OK)
        fail_msg("step: %s", err.message);
}

/* Step until nothing is left. */
static inline void kit_run(kit *k)
{
    for (int i = 0; i < 200000; i++) {
        while (k->backs && pl__core_has_room(&k->core))
            kit_admit(k, k->back[--k->backs]);
        if (!pl__core_busy(&k->core))
            return;
        kit_step(k);
    }
    fail_msg("the core does not come to an end");
}

static inline void kit_close(kit *k)
{
    assert_int_equal(k->pair.misuse, 0); /* 0 as well where the pair is not used */
    for (int i = 0; i < k->endings; i++) {
        k->ending[i].stream->request.stop_free = NULL;
        pl__stream_discard(k->ending[i].stream);
    }
    pl__core_close(&k->core);
}

/* ---- the plain engine: one token after another, no core, no drafts ----------------------------------------------- */

typedef struct plain {
    int32_t token[PAIR_CONTEXT];
    float logprob[PAIR_CONTEXT];
    int32_t top[PAIR_CONTEXT][PL_TOP_LOGPROBS_MAX];
    float top_logprob[PAIR_CONTEXT][PL_TOP_LOGPROBS_MAX];
    size_t count;
    pl_finish reason;
    bool by_stop_check;
    char sha[65];
} plain;

/* Where the plain engine has its logits from: those behind token[0..n), valid until the next call. */
typedef struct plain_model {
    const float *(*logits)(void *arg, const int32_t *token, int n);
    void *arg;
    int vocab;
    pl_sampler *sampler;
    pl_history history;
} plain_model;

static inline void plain_open(plain_model *m, const float *(*logits)(void *arg, const int32_t *token, int n), void *arg,
                              int vocab)
{
    pl_error err;
    *m = (plain_model){.logits = logits, .arg = arg, .vocab = vocab};
    assert_int_equal(pl_sampler_open(&m->sampler, vocab, "scalar", &err), PL_OK);
    assert_int_equal(pl_history_open(&m->history, vocab, &err), PL_OK);
}

static inline void plain_close(plain_model *m)
{
    pl_sampler_close(m->sampler);
    pl_history_close(&m->history);
}

static inline const float *plain_pair_logits(void *arg, const int32_t *token, int n)
{
    pair_logits(token, n, arg);
    return arg;
}

/* stop_arg: the request's own would have state by now; this one is fresh. */
static inline void plain_reply_of(plain_model *m, const pl_request *q, void *stop_arg, plain *out)
{
    int32_t all[PAIR_CONTEXT + 1];
    pl_sha256 sha;
    bool thinking = q->think_budget > 0;
    memset(out, 0, sizeof *out);
    pl_sha256_init(&sha);
    pl_history_reset(&m->history);
    pl_history_prompt(&m->history, q->prompt, q->prompt_len);
    memcpy(all, q->prompt, q->prompt_len * sizeof *all);
    for (out->reason = PL_FINISH_LENGTH; out->count < (size_t)q->max_tokens;) {
        size_t n = q->prompt_len + out->count, i = out->count++;
        const float *logits = m->logits(m->arg, all, (int)n);
        pl_draw d = {.logits = logits, .position = (int64_t)n, .sampling = &q->sampling, .history = &m->history};
        int32_t token = thinking && i >= (size_t)q->think_budget ? q->think_end : pl_draw_token(m->sampler, &d);
        thinking = thinking && token != q->think_end;
        out->token[i] = all[n] = token;
        if (q->top_logprobs >= 0)
            pl_logprobs(m->sampler, logits, token, q->top_logprobs, &out->logprob[i], out->top[i], out->top_logprob[i]);
        unsigned char le[4] = {(unsigned char)token, (unsigned char)(token >> 8), (unsigned char)(token >> 16), 0};
        pl_sha256_add(&sha, le, 4);
        pl_history_commit(&m->history, token);
        if (token == q->eos) {
            out->reason = PL_FINISH_STOP;
            break;
        }
        if (q->stop && q->stop(stop_arg, token)) {
            out->reason = PL_FINISH_STOP;
            out->by_stop_check = true;
            break;
        }
    }
    pl_sha256_hex(&sha, out->sha);
}

/* On the fake pair. */
static inline void plain_reply(const pl_request *q, void *stop_arg, plain *out)
{
    static float logits[PAIR_VOCAB];
    static plain_model m;
    if (!m.sampler)
        plain_open(&m, plain_pair_logits, logits, PAIR_VOCAB);
    plain_reply_of(&m, q, stop_arg, out);
}

/* The stream's log against the plain reply: all of it, or for a cancelled one as far as it came. False, with a line
 * that tells where, when they differ. */
static inline bool kit_equal(const ending *e, const plain *p)
{
    const pl_stream *s = e->stream;
    bool whole = e->outcome.reason != PL_FINISH_CANCELLED;
    if (!e->over || (whole ? s->count != p->count : s->count > p->count)) {
        print_error("over %d, %zu tokens, plain %zu\n", e->over, s->count, p->count);
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        bool same = s->token[i] == p->token[i];
        if (s->request.top_logprobs >= 0) {
            size_t tops = (size_t)s->tops;
            same = same && !memcmp(&s->logprob[i], &p->logprob[i], sizeof(float)) &&
                   !memcmp(s->top + i * tops, p->top[i], tops * sizeof(int32_t)) &&
                   !memcmp(s->top_logprob + i * tops, p->top_logprob[i], tops * sizeof(float));
        }
        if (!same) {
            print_error("token %zu of %zu is %d, plain %d\n", i, p->count, (int)s->token[i], (int)p->token[i]);
            return false;
        }
    }
    return !whole || (!strcmp(e->outcome.token_sha, p->sha) && e->outcome.reason == p->reason &&
                      e->outcome.by_stop_check == p->by_stop_check && e->outcome.tokens == p->count);
}

#endif
