/* A round: one shared launch of all replies' windows, and what becomes of it. */
#include "lanes/core.h"

/* When the launch cannot hold a row of every reply, those go first that were served longest ago. */
static void choose_lanes(pl__core *c)
{
    c->ins = 0;
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        if (lane->phase != PL__REPLY || pl__core_yields(c, lane))
            continue;
        int at = c->ins++;
        for (; at > 0 && c->in[at - 1]->served > lane->served; at--)
            c->in[at] = c->in[at - 1];
        c->in[at] = lane;
    }
    if (c->ins > c->target.rows)
        c->ins = c->target.rows;
}

/* What a reply's window has room for behind its pending row: every row may give a token. */
static int most_drafts(const pl__core *c, const pl__lane *lane)
{
    int64_t left = pl__lane_request(lane)->max_tokens - (int64_t)lane->stream->count;
    int most = c->target.window_rows - 1 < PL_WINDOW_DRAFTS ? c->target.window_rows - 1 : PL_WINDOW_DRAFTS;
    return left - 1 < most ? (int)(left - 1) : most;
}

static void offer(pl__core *c)
{
    for (int i = 0; i < c->ins; i++) {
        pl__lane *lane = c->in[i];
        const pl_request *q = pl__lane_request(lane);
        c->plan[i] = (pl_depth_lane){.slot = lane->slot,
                                     .drafts = c->settings.drafts && q->draft,
                                     .sampled = q->sampling.temperature > 0,
                                     .most = most_drafts(c, lane)};
    }
}

static pl_status draft(pl__core *c, pl_error *err)
{
    pl_depth_round round = {.lane = c->plan, .lanes = c->ins, .rows = c->target.rows};
    offer(c);
    for (int i = 0; i < c->ins; i++)
        c->in[i]->heads = 0;
    if (!c->settings.drafts || !pl_depth_drafts(c->depth, c->ins))
        return PL_OK; /* a plain round: exactly the work of a server without drafts */
    pl__draft_copies(c);
    pl_depth_decide(c->depth, &round);
    for (int i = 0; i < c->ins; i++)
        c->plan[i].ask = c->plan[i].ask && c->drafter.block;
    PL_TRY(pl__draft_pass(c, err));
    for (int i = 0; i < c->ins; i++) {
        c->plan[i].heads = c->in[i]->heads;
        c->plan[i].confidence = c->in[i]->confidence;
    }
    round.passed = true;
    pl_depth_decide(c->depth, &round);
    return PL_OK;
}

/* The windows, as the plan has them. Returns the rows of the launch. */
static int lay_windows(pl__core *c)
{
    int rows = 0;
    for (int i = 0; i < c->ins; i++) {
        pl__lane *lane = c->in[i];
        const pl_depth_lane *plan = &c->plan[i];
        const int32_t *from = plan->copy ? lane->copied : lane->head;
        lane->window[0] = lane->token[lane->tokens - 1];
        for (int k = 0; k < plan->depth; k++)
            lane->window[k + 1] = from[k];
        c->window[i] = (pl_window){.slot = lane->slot, .rows = plan->depth + 1, .token = lane->window};
        rows += plan->depth + 1;
    }
    return rows;
}

/* How far the drafter's own proposal agrees with what was drawn, also past or beside what was verified. */
static void compare(const pl__lane *lane, const int32_t *drawn, int count, pl_depth_result *r)
{
    while (r->agreed < lane->heads && r->agreed < count && lane->head[r->agreed] == drawn[r->agreed])
        r->agreed++;
    r->known_miss = r->agreed < lane->heads && r->agreed < count;
}

static void count(pl__core *c, pl__lane *lane, const pl_depth_lane *plan, const pl_depth_result *r)
{
    pl_numbers now = {.rounds = 1,
                      .plain_rounds = plan->depth == 0 && !plan->ask,
                      .rows = (uint64_t)plan->depth + 1,
                      .asks = plan->ask,
                      .drafted = (uint64_t)plan->depth,
                      .accepted = (uint64_t)r->accepted,
                      .copied = plan->copy ? (uint64_t)plan->depth : 0,
                      .copied_kept = plan->copy ? (uint64_t)r->accepted : 0};
    pl_numbers_add(&lane->outcome.numbers, &now);
    pl_numbers_add(&c->totals.numbers, &now);
}

/* Walk the window while its rows are the drawn tokens. */
static void walk(pl__core *c, pl__lane *lane, const pl_depth_lane *plan, int row, pl_depth_result *r)
{
    int32_t drawn[PL_WINDOW_DRAFTS + 1];
    int made = 0;
    bool on = true;
    *r = (pl_depth_result){.slot = lane->slot,
                           .sampled = plan->sampled,
                           .copy = plan->copy,
                           .match = plan->match,
                           .depth = plan->depth,
                           .heads = lane->heads,
                           .confidence = lane->confidence};
    while (on) {
        size_t before = lane->stream->count;
        on = pl__conclude_row(c, lane, row + made, &drawn[made]);
        if (lane->stream->count == before)
            break; /* nothing could be drawn */
        made++;
        r->missed = made <= plan->depth && lane->window[made] != drawn[made - 1];
        if (made > plan->depth || r->missed)
            break;
    }
    r->accepted = made ? made - 1 : 0; /* the tokens beyond the one that any window gives */
    compare(lane, drawn, made, r);
    count(c, lane, plan, r);
    lane->kept += made;
    lane->served = ++c->turns;
    lane->over = !on;
}

static pl_status settle(pl__core *c, pl_error *err)
{
    for (int i = 0; i < c->ins; i++) {
        pl__lane *lane = c->in[i];
        if (lane->over) {
            pl__core_leave(c, lane);
            continue;
        }
        pl_status status = c->target.keep(c->target.arg, lane->slot, lane->kept, err);
        if (status == PL_EFAULT)
            return status;
        if (status != PL_OK)
            pl__core_fail(c, lane, err);
    }
    return c->fault.status == PL_OK ? PL_OK : pl__core_fault(c, err);
}

/* The launch failed: for a lone reply that is its own affair, else that of all who were in it. */
static pl_status give_up(pl__core *c, pl_status status, pl_error *err)
{
    if (status == PL_EFAULT)
        return status;
    for (int i = 0; i < c->ins; i++)
        pl__core_fail(c, c->in[i], err);
    return PL_OK;
}

pl_status pl__round_step(pl__core *c, pl_error *err)
{
    pl__round_begin(&c->log);
    choose_lanes(c);
    if (!c->ins)
        return PL_OK;
    PL_TRY(draft(c, err));
    int rows = lay_windows(c);
    /* A stream's cancel may only give up a launch that is its alone. */
    const atomic_bool *cancel = c->ins == 1 ? &c->in[0]->stream->cancel : &c->abort;
    pl__round_part(&c->log, PL__PART_HOST);
    pl_status status = c->target.window(c->target.arg, c->window, c->ins, cancel, err);
    pl__round_part(&c->log, PL__PART_VERIFY);
    c->totals.launches++;
    if (status != PL_OK)
        return give_up(c, status, err);
    int asks = 0;
    for (int i = 0, row = 0; i < c->ins; row += c->plan[i++].depth + 1) {
        walk(c, c->in[i], &c->plan[i], row, &c->result[i]);
        asks += c->plan[i].ask;
    }
    pl__round_part(&c->log, PL__PART_DRAW);
    pl_depth_outcome outcome = {.result = c->result,
                                .lanes = c->ins,
                                .rows = rows,
                                .asks = asks,
                                .verify_ms = pl__round_ms(&c->log, PL__PART_VERIFY),
                                .pass_ms =
                                    pl__round_ms(&c->log, PL__PART_INGEST) + pl__round_ms(&c->log, PL__PART_PROPOSE)};
    pl_depth_observe(c->depth, &outcome);
    status = settle(c, err);
    pl__round_part(&c->log, PL__PART_CONCLUDE);
    pl__round_end(&c->log, c->round++, &outcome);
    return status;
}
