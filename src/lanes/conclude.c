/* A row becomes a token: drawn, written to the log, hashed, counted, looked at for an end. The one place where tokens
 * of a reply are made, for the first one after a prompt and for every row of every window. */
#include "base/clock.h"
#include "lanes/core.h"

/* A thinking block that has used up its budget is closed: the token in its place is forced. */
static bool must_close(const pl_stream *s)
{
    const pl_request *q = &s->request;
    return s->thinking && s->count >= (size_t)q->think_budget;
}

static bool draw(pl__core *c, pl__lane *lane, const float *logits, int32_t *token)
{
    pl_stream *s = lane->stream;
    pl_draw d = {.logits = logits,
                 .position = pl__lane_position(lane),
                 .sampling = &s->request.sampling,
                 .history = &lane->history};
    *token = must_close(s) ? s->request.think_end : pl_draw_token(c->sampler, &d);
    if (*token >= 0)
        return true;
    pl_error *err = &lane->outcome.error;
    lane->outcome.reason = PL_FINISH_ERROR;
    if (s->request.sampling.biases) {
        (void)pl_fail_param(err, PL_EINVAL, "logit_bias", "no token can be drawn: all of them are barred");
        return false;
    }
    /* Every logit is NaN or -inf: the weights or the machine are broken, and so will the next reply be. */
    (void)pl_fail(err, PL_EFAULT, "the model gave no usable logit at position %lld", (long long)d.position);
    c->fault = *err;
    return false;
}

static void log_token(pl__core *c, pl__lane *lane, const float *logits, int32_t token)
{
    pl_stream *s = lane->stream;
    size_t i = s->count, tops = (size_t)s->tops;
    s->token[i] = token;
    if (s->request.top_logprobs >= 0)
        pl_logprobs(c->sampler, logits, token, s->tops, &s->logprob[i], s->top + i * tops, s->top_logprob + i * tops);
    uint32_t id = (uint32_t)token;
    unsigned char le[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                           (unsigned char)(id >> 24)};
    pl_sha256_add(&s->sha, le, sizeof le);
    if (i == 0)
        s->first_ns = pl_now_ns();
    s->thinking = s->thinking && token != s->request.think_end;
    pl_history_commit(&lane->history, token);
    lane->token[lane->tokens++] = token;
    c->totals.reply_tokens++;
    pl__stream_commit(s);
}

static bool ends(pl__lane *lane, int32_t token)
{
    pl_stream *s = lane->stream;
    const pl_request *q = &s->request;
    lane->outcome.reason = PL_FINISH_STOP;
    if (token == q->eos)
        return true;
    if (q->stop && q->stop(q->stop_arg, token)) {
        lane->outcome.by_stop_check = true;
        return true;
    }
    lane->outcome.reason = PL_FINISH_LENGTH;
    return s->count == (size_t)q->max_tokens;
}

bool pl__conclude_row(pl__core *c, pl__lane *lane, int row, int32_t *token)
{
    const float *logits = c->target.logits(c->target.arg, row);
    if (!draw(c, lane, logits, token))
        return false;
    log_token(c, lane, logits, *token);
    return !ends(lane, *token);
}
