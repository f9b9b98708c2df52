/* One reply from beginning to end. The prompt runs in pieces; its last logits give the first token; from then on a
 * window of one row a token. A token is drawn, written to the log, and only then looked at for an end, so that the log
 * and its hash hold what was drawn, also behind what the reader sees. */
#include "lanes/engine_int.h"

#include "base/clock.h"
#include "base/sha256.h"

enum { SLOT = 0 };

typedef struct reply {
    pl_engine *engine;
    pl_stream *stream;
    pl_outcome *outcome;
    pl_sha256 sha;
    int64_t admitted_ns, first_ns;
} reply;

static bool cancelled(const reply *r)
{
    return atomic_load_explicit(&r->stream->cancel, memory_order_relaxed);
}

/* Pieces start small and grow while they stay short, so that progress shows and a cancel is seen within about a second
 * on a machine where a full piece would take minutes. Only their time depends on it: any split gives the same bits. */
enum { FIRST_PIECE = 64, LEAST_PIECE = 16 };
static const int64_t PIECE_NS = 1000000000;

static int next_piece(int piece, int most, int64_t took)
{
    if (took > PIECE_NS && piece > LEAST_PIECE)
        return piece / 2;
    if (took < PIECE_NS / 4)
        return piece > most / 2 ? most : 2 * piece;
    return piece;
}

static pl_status run_prompt(reply *r, pl_error *err)
{
    const pl_target *t = &r->engine->target;
    const pl_request *q = &r->stream->request;
    int piece = t->piece < FIRST_PIECE ? t->piece : FIRST_PIECE;
    for (size_t done = 0; done < q->prompt_len;) {
        if (cancelled(r))
            return pl_fail(err, PL_ECANCELED, "cancelled");
        int64_t began = pl_now_ns();
        size_t left = q->prompt_len - done;
        int rows = left < (size_t)piece ? (int)left : piece;
        PL_TRY(t->prefill(t->arg, SLOT, q->prompt + done, rows, left == (size_t)rows, &r->stream->cancel, err));
        done += (size_t)rows;
        pl__engine_count_prompt(r->engine, (size_t)rows);
        pl__stream_prefilled(r->stream, done);
        piece = next_piece(piece, t->piece, pl_now_ns() - began);
    }
    return PL_OK;
}

/* Draw the token of the next position from row 0 of the logits and commit it. */
static pl_status draw(reply *r, int32_t *token, pl_error *err)
{
    pl_engine *e = r->engine;
    pl_stream *s = r->stream;
    const float *logits = e->target.logits(e->target.arg, 0);
    pl_draw d = {.logits = logits,
                 .position = (int64_t)(s->request.prompt_len + s->count),
                 .sampling = &s->request.sampling,
                 .history = &e->history};
    *token = pl_draw_token(e->sampler, &d);
    if (*token < 0 && !s->request.sampling.biases)
        return pl_fail(err, PL_EFAULT, "the model gave no usable logit at position %lld", (long long)d.position);
    if (*token < 0)
        return pl_fail_param(err, PL_EINVAL, "logit_bias", "no token can be drawn: all of them are barred");
    s->token[s->count] = *token;
    if (s->request.top_logprobs >= 0)
        pl_logprobs(e->sampler, logits, *token, s->tops, &s->logprob[s->count], s->top + s->count * (size_t)s->tops,
                    s->top_logprob + s->count * (size_t)s->tops);
    uint32_t id = (uint32_t)*token;
    unsigned char le[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                           (unsigned char)(id >> 24)};
    pl_sha256_add(&r->sha, le, sizeof le);
    pl_history_commit(&e->history, *token);
    if (s->count == 0)
        r->first_ns = pl_now_ns();
    pl__stream_commit(s);
    return PL_OK;
}

/* Does the reply end with this token? */
static bool ends(reply *r, int32_t token)
{
    const pl_request *q = &r->stream->request;
    r->outcome->reason = PL_FINISH_STOP;
    if (token == q->eos)
        return true;
    if (q->stop && q->stop(q->stop_arg, token)) {
        r->outcome->by_stop_check = true;
        return true;
    }
    r->outcome->reason = PL_FINISH_LENGTH;
    return r->stream->count == (size_t)q->max_tokens;
}

static pl_status make_reply(reply *r, pl_error *err)
{
    const pl_target *t = &r->engine->target;
    const pl_request *q = &r->stream->request;
    PL_TRY(t->admit(t->arg, SLOT, err));
    pl_history_reset(&r->engine->history);
    pl_history_prompt(&r->engine->history, q->prompt, q->prompt_len);
    PL_TRY(run_prompt(r, err));
    r->outcome->timings.prefill = pl_now_ns() - r->admitted_ns;
    for (;;) {
        int32_t token;
        if (cancelled(r))
            return pl_fail(err, PL_ECANCELED, "cancelled");
        PL_TRY(draw(r, &token, err));
        if (ends(r, token))
            return PL_OK;
        pl_window w = {.slot = SLOT, .rows = 1, .token = &token};
        PL_TRY(t->window(t->arg, &w, 1, &r->stream->cancel, err));
        PL_TRY(t->keep(t->arg, SLOT, (int)(q->prompt_len + r->stream->count), err));
    }
}

pl_status pl__solo_run(pl_engine *e, pl_stream *s, pl_outcome *outcome)
{
    reply r = {.engine = e, .stream = s, .outcome = outcome, .admitted_ns = pl_now_ns()};
    pl_sha256_init(&r.sha);
    outcome->timings.queued = r.admitted_ns - s->submitted_ns;
    pl__stream_start(s);
    pl_status status = make_reply(&r, &outcome->error);
    e->target.release(e->target.arg, SLOT);
    if (status != PL_OK)
        outcome->reason = status == PL_ECANCELED ? PL_FINISH_CANCELLED : PL_FINISH_ERROR;
    outcome->tokens = s->count;
    pl_sha256_hex(&r.sha, outcome->token_sha);
    if (s->count) {
        outcome->timings.first = r.first_ns - s->submitted_ns;
        outcome->timings.decode = pl_now_ns() - r.first_ns;
    }
    return status == PL_ECANCELED ? PL_OK : status;
}
