/* Where drafts come from: the stream's own context, and the drafter's pass. Both only propose. */
#include "lanes/core.h"

#include <string.h>

/* The asks of the launch in the making, for the drafter's choice. */
typedef struct asking {
    pl__core *core;
    pl__lane *const *lane; /* [asks] */
} asking;

/* A draft is drawn as the target will draw: same settings, same noise, as if the drafts before it were kept. */
static int32_t choose(void *arg, int ask, int row, const float *logits)
{
    asking *c = arg;
    pl__lane *lane = c->lane[ask];
    pl_draw d = {.logits = logits,
                 .position = pl__lane_position(lane) + row,
                 .sampling = &pl__lane_request(lane)->sampling,
                 .history = &lane->history,
                 .pending = lane->head,
                 .pendings = row};
    int32_t token = pl_draw_token(c->core->sampler, &d);
    lane->head[row] = token < 0 ? 0 : token; /* any token may be proposed */
    return lane->head[row];
}

/* Without penalties, bias and noise the choice is the largest logit, which the drafter finds by itself. */
static bool plainly_greedy(const pl__lane *lane)
{
    const pl_sampling *s = &pl__lane_request(lane)->sampling;
    return s->temperature == 0 && s->biases == 0 && s->repetition_penalty == 1 && s->frequency_penalty == 0 &&
           s->presence_penalty == 0;
}

void pl__draft_copies(pl__core *c)
{
    for (int i = 0; i < c->ins; i++) {
        pl__lane *lane = c->in[i];
        pl_depth_lane *plan = &c->plan[i];
        if (!plan->drafts || plan->most < 1)
            continue;
        pl__copy_extend(&lane->copy, lane->token, lane->tokens);
        plan->copies = pl__copy_find(&lane->copy, lane->token, lane->tokens, lane->copied, plan->most, &plan->match);
    }
}

/* Drafts are used up to the first that is no token at all: a broken drafter may cost time and nothing else. */
static void take(pl__core *c, pl__lane *lane, int ask)
{
    int block = c->drafter.block;
    memcpy(lane->head, c->draft + (size_t)ask * (size_t)block, (size_t)block * sizeof *lane->head);
    memcpy(lane->confidence, c->confidence + (size_t)ask * (size_t)block, (size_t)block * sizeof *lane->confidence);
    lane->heads = 0;
    while (lane->heads < block && lane->head[lane->heads] >= 0 && lane->head[lane->heads] < c->target.vocab)
        lane->heads++;
}

static pl_status pass(pl__core *c, int first, int asks, pl_error *err)
{
    asking who = {.core = c, .lane = c->asker + first};
    bool greedy = true;
    for (int i = 0; i < asks; i++)
        greedy = greedy && plainly_greedy(c->asker[first + i]);
    PL_TRY(c->drafter.propose(c->drafter.arg, c->ask + first, asks, greedy ? NULL : choose, &who, c->draft,
                              c->confidence, c->margin, err));
    for (int i = 0; i < asks; i++)
        take(c, c->asker[first + i], i);
    c->totals.passes++;
    return PL_OK;
}

static pl_status ingest_and_propose(pl__core *c, int asks, pl_error *err)
{
    PL_TRY(c->drafter.ingest(c->drafter.arg, c->slot, asks, err));
    pl__round_part(&c->log, PL__PART_INGEST);
    for (int first = 0; first < asks; first += c->drafter.asks) {
        int left = asks - first;
        PL_TRY(pass(c, first, left < c->drafter.asks ? left : c->drafter.asks, err));
    }
    pl__round_part(&c->log, PL__PART_PROPOSE);
    return PL_OK;
}

pl_status pl__draft_pass(pl__core *c, pl_error *err)
{
    int asks = 0;
    for (int i = 0; i < c->ins; i++) {
        pl__lane *lane = c->in[i];
        if (!c->plan[i].ask)
            continue;
        c->ask[asks] = (pl_draft_ask){.slot = lane->slot, .anchor = lane->token[lane->tokens - 1]};
        c->slot[asks] = lane->slot;
        c->asker[asks++] = lane;
    }
    if (!asks)
        return PL_OK;
    pl__round_part(&c->log, PL__PART_HOST);
    pl_status status = ingest_and_propose(c, asks, err);
    if (status == PL_EFAULT)
        return status;
    if (status != PL_OK) { /* replies go on without it */
        pl__round_warn("the drafter failed, there are no more drafts", err);
        c->drafter.block = 0;
        for (int i = 0; i < asks; i++)
            c->asker[i]->heads = 0;
    }
    return PL_OK;
}
