#include "lanes/core.h"

#include "base/clock.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>

/* Prices to begin with, in ms; real rounds replace them at once (depth/cost.h), so only their proportions count: those
 * of the trained model on two processors, where a further row took half of a first one, and a pass a third more. */
static const double FIRST_MS = 10, ROW_MS = 5, PASS_MS = 13, ASK_MS = 10;
enum { FIRST_PIECE = 64, BACKGROUND_EVERY = 16 };

/* What a lane needs of its own: tokens and the index of its context. */
static size_t lane_bytes(const pl_target *t)
{
    return (size_t)t->context * sizeof(int32_t) + pl__copy_bytes(t->context);
}

static size_t scratch_each(void)
{
    return sizeof(pl__lane *) * 2 + sizeof(pl_window) + sizeof(pl_depth_lane) + sizeof(pl_depth_result) +
           sizeof(pl_draft_ask) + sizeof(int);
}

size_t pl__core_bytes(const pl_target *t, const pl_draft_table *drafter)
{
    size_t slots = (size_t)t->slots, block = drafter ? (size_t)drafter->block * (size_t)drafter->asks : 0;
    return pl_sampler_bytes(t->vocab) + pl_depth_bytes(t->slots) +
           slots * (sizeof(pl__lane) + lane_bytes(t) + pl_history_bytes(t->vocab) + scratch_each()) +
           block * (sizeof(int32_t) + 2 * sizeof(float));
}

static pl_status open_lanes(pl__core *c, pl_error *err)
{
    size_t slots = (size_t)c->target.slots, each = lane_bytes(&c->target), all;
    c->lane = calloc(slots, sizeof *c->lane);
    c->lane_memory = pl_mul_size(slots, each, &all) ? malloc(all) : NULL;
    if (!c->lane || !c->lane_memory)
        return pl_fail(err, PL_ENOMEM, "no memory for %d lanes of %d tokens", c->target.slots, c->target.context);
    memset(c->lane_memory, 0xff, all); /* touched now: what the plan printed is resident */
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        lane->slot = i;
        lane->token = (int32_t *)((char *)c->lane_memory + (size_t)i * each);
        pl__copy_init(&lane->copy, c->target.context, lane->token + c->target.context);
        PL_TRY(pl_history_open(&lane->history, c->target.vocab, err));
    }
    return PL_OK;
}

static pl_status open_scratch(pl__core *c, pl_error *err)
{
    size_t slots = (size_t)c->target.slots, block = (size_t)c->drafter.block * (size_t)c->drafter.asks + 1;
    c->in = calloc(slots, sizeof *c->in);
    c->window = calloc(slots, sizeof *c->window);
    c->plan = calloc(slots, sizeof *c->plan);
    c->result = calloc(slots, sizeof *c->result);
    c->ask = calloc(slots, sizeof *c->ask);
    c->asker = calloc(slots, sizeof *c->asker);
    c->slot = calloc(slots, sizeof *c->slot);
    c->draft = calloc(block, sizeof *c->draft);
    c->confidence = calloc(block, sizeof *c->confidence);
    c->margin = calloc(block, sizeof *c->margin);
    if (!c->in || !c->window || !c->plan || !c->result || !c->ask || !c->asker || !c->slot || !c->draft ||
        !c->confidence || !c->margin)
        return pl_fail(err, PL_ENOMEM, "no memory for rounds of %d streams", c->target.slots);
    return PL_OK;
}

static pl_status open_parts(pl__core *c, pl_error *err)
{
    pl_depth_settings depth = {.slots = c->target.slots,
                               .plain_streams = c->settings.plain_streams,
                               .joint = c->settings.joint,
                               .fixed = c->settings.fixed_depth ? c->settings.fixed_depth : -1};
    pl_cost_init(&depth.cost, FIRST_MS, ROW_MS, PASS_MS, ASK_MS);
    PL_TRY(pl_sampler_open(&c->sampler, c->target.vocab, "auto", err));
    PL_TRY(pl_depth_open(&c->depth, &depth, err));
    PL_TRY(open_lanes(c, err));
    PL_TRY(open_scratch(c, err));
    return pl__round_log_open(&c->log, c->settings.accept_log, c->settings.profile, err);
}

pl_status pl__core_open(pl__core *c, const pl_target *target, const pl_draft_table *drafter,
                        const pl_core_settings *settings, pl__left_fn *left, void *left_arg, pl_error *err)
{
    memset(c, 0, sizeof *c);
    c->target = *target;
    c->settings = *settings;
    c->left = left;
    c->left_arg = left_arg;
    c->piece = target->piece < FIRST_PIECE ? target->piece : FIRST_PIECE;
    if (target->rows < 1 || target->slots < 1 || target->window_rows < 1)
        return pl_fail(err, PL_EINVAL,
                       "a target of %d slots, %d rows and %d rows a window: at least 1 of each expected", target->slots,
                       target->rows, target->window_rows);
    if (drafter && drafter->block > PL_BLOCK_MOST)
        return pl_fail(err, PL_EINVAL, "a drafter of %d drafts, %d at most expected", drafter->block, PL_BLOCK_MOST);
    if (drafter && drafter->block && drafter->asks > 0)
        c->drafter = *drafter;
    pl_status status = open_parts(c, err);
    if (status != PL_OK)
        pl__core_close(c);
    return status;
}

void pl__core_close(pl__core *c)
{
    pl__round_log_close(&c->log);
    for (int i = 0; c->lane && i < c->target.slots; i++)
        pl_history_close(&c->lane[i].history);
    free(c->lane);
    free(c->lane_memory);
    free(c->in);
    free(c->window);
    free(c->plan);
    free(c->result);
    free(c->ask);
    free(c->asker);
    free(c->slot);
    free(c->draft);
    free(c->confidence);
    free(c->margin);
    pl_depth_close(c->depth);
    pl_sampler_close(c->sampler);
    memset(c, 0, sizeof *c);
}

bool pl__core_has_room(const pl__core *c)
{
    return c->prompts + c->replies < c->target.slots;
}

bool pl__core_busy(const pl__core *c)
{
    return c->prompts + c->replies > 0;
}

/* The stream's tokens so far: its prompt, and what it said before it gave way. All but a pending one are to be run. */
static void load_tokens(pl__lane *lane)
{
    const pl_stream *s = lane->stream;
    const pl_request *q = &s->request;
    memcpy(lane->token, q->prompt, q->prompt_len * sizeof *lane->token);
    memcpy(lane->token + q->prompt_len, s->token, s->count * sizeof *lane->token);
    lane->tokens = (int)(q->prompt_len + s->count);
    lane->goal = s->count ? lane->tokens - 1 : lane->tokens;
    lane->kept = 0;
    pl_history_reset(&lane->history);
    pl_history_prompt(&lane->history, q->prompt, q->prompt_len);
    for (size_t i = 0; i < s->count; i++)
        pl_history_commit(&lane->history, s->token[i]);
    pl__copy_reset(&lane->copy);
}

pl_status pl__core_admit(pl__core *c, pl_stream *stream, pl_error *err)
{
    pl__lane *lane = c->lane;
    while (lane->phase != PL__FREE)
        lane++;
    lane->stream = stream;
    lane->phase = PL__PROMPT;
    lane->outcome = stream->outcome;
    lane->passed_over = 0;
    lane->arrival = c->arrivals++;
    lane->admitted_ns = pl_now_ns();
    if (!stream->started)
        lane->outcome.timings.queued = lane->admitted_ns - stream->submitted_ns;
    c->prompts++;
    load_tokens(lane);
    pl_depth_admit(c->depth, lane->slot);
    pl__stream_start(stream);
    pl_status status = c->target.admit(c->target.arg, lane->slot, err);
    if (status != PL_OK)
        pl__core_fail(c, lane, err);
    return status == PL_EFAULT ? status : PL_OK;
}

/* The slot is free again; the stream is the caller's. */
static void clear(pl__core *c, pl__lane *lane)
{
    c->prompts -= lane->phase == PL__PROMPT;
    c->replies -= lane->phase == PL__REPLY;
    lane->phase = PL__FREE;
    lane->stream = NULL;
    c->target.release(c->target.arg, lane->slot);
}

void pl__core_leave(pl__core *c, pl__lane *lane)
{
    pl_stream *s = lane->stream;
    pl_outcome *o = &lane->outcome;
    pl__stream_account(s, o);
    if (s->count)
        o->timings.decode = pl_now_ns() - s->first_ns;
    clear(c, lane);
    c->left(c->left_arg, s, o);
}

void pl__core_fail(pl__core *c, pl__lane *lane, const pl_error *err)
{
    lane->outcome.reason = err->status == PL_ECANCELED ? PL_FINISH_CANCELLED : PL_FINISH_ERROR;
    lane->outcome.error = *err;
    pl__core_leave(c, lane);
}

pl_status pl__core_fault(const pl__core *c, pl_error *err)
{
    *err = c->fault;
    return c->fault.status;
}

void pl__core_end_all(pl__core *c, pl_finish reason, const pl_error *err)
{
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        if (lane->phase == PL__FREE)
            continue;
        lane->outcome.reason = reason;
        if (err)
            lane->outcome.error = *err;
        pl__core_leave(c, lane);
    }
}

bool pl__core_give_way(pl__core *c)
{
    pl__lane *last = NULL;
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        if (lane->phase != PL__FREE && pl__lane_request(lane)->background && !pl__lane_cancelled(lane) &&
            (!last || lane->tokens < last->tokens))
            last = lane; /* the one with the least to run again */
    }
    if (!last)
        return false;
    pl_stream *s = last->stream;
    s->outcome = last->outcome; /* its numbers go along */
    clear(c, last);
    c->left(c->left_arg, s, NULL);
    return true;
}

static void drop_cancelled(pl__core *c)
{
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        if (lane->phase == PL__FREE || !pl__lane_cancelled(lane))
            continue;
        lane->outcome.reason = PL_FINISH_CANCELLED;
        pl__core_leave(c, lane);
    }
}

static bool is_foreground(const pl__lane *lane)
{
    return lane->phase != PL__FREE && !pl__lane_request(lane)->background;
}

bool pl__core_yields(const pl__core *c, const pl__lane *lane)
{
    if (!pl__lane_request(lane)->background || c->round % BACKGROUND_EVERY == BACKGROUND_EVERY - 1)
        return false;
    for (int i = 0; i < c->target.slots; i++)
        if (is_foreground(&c->lane[i]))
            return true;
    return false;
}

static int at_work(const pl__core *c, pl__phase phase)
{
    int lanes = 0;
    for (int i = 0; i < c->target.slots; i++)
        lanes += c->lane[i].phase == phase && !pl__core_yields(c, &c->lane[i]);
    return lanes;
}

/* While prompts and replies are both at work every piece is followed by a round, and rounds go on until they had their
 * share of the time. */
static bool piece_is_due(pl__core *c)
{
    int prompts = at_work(c, PL__PROMPT), replies = at_work(c, PL__REPLY);
    if (!prompts || !replies) {
        c->prompt_ns = c->reply_ns = 0;
        return prompts > 0;
    }
    if (c->piece_last)
        return false;
    return (double)c->reply_ns >= c->settings.decode_share * (double)(c->prompt_ns + c->reply_ns);
}

pl_status pl__core_step(pl__core *c, pl_error *err)
{
    drop_cancelled(c);
    if (!pl__core_busy(c))
        return PL_OK;
    bool piece = piece_is_due(c);
    int64_t began = pl_now_ns();
    pl_status status = piece ? pl__prompt_step(c, err) : pl__round_step(c, err);
    int64_t took = pl_now_ns() - began;
    *(piece ? &c->prompt_ns : &c->reply_ns) += took;
    *(piece ? &c->totals.prefill_ns : &c->totals.decode_ns) += took;
    c->piece_last = piece;
    if (status != PL_OK)
        pl__core_end_all(c, PL_FINISH_ERROR, err);
    return status;
}
