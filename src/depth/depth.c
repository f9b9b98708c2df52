#include "depth/depth_int.h"

#include <stdlib.h>
#include <string.h>

enum { COPIES_INSTEAD = 4 /* copied tokens that make a pass unnecessary when they are likely to land */ };
/* Copied drafts begin as a fair guess, better with a longer match, and then count what landed. */
static const double COPY_GUESS = 0.75, COPY_LONG = 0.9, COPY_PRIOR = 4, COPY_FADE = 0.97, COPY_SURE = 0.85;
enum { LONG_MATCH = 12, PLAIN_EVERY = 256 };

size_t pl_depth_bytes(int slots)
{
    return sizeof(pl_depth) + (size_t)slots * sizeof(pl__depth_slot);
}

pl_status pl_depth_open(pl_depth **out, const pl_depth_settings *s, pl_error *err)
{
    *out = NULL;
    if (s->slots < 1)
        return pl_fail_param(err, PL_EINVAL, "slots", "depth: at least one slot expected, found %d", s->slots);
    if (s->joint < 0 || s->joint > 2)
        return pl_fail_param(err, PL_EINVAL, "depth-joint", "depth-joint: 0, 1 or 2 expected, found %d", s->joint);
    pl_depth *d = calloc(1, sizeof *d);
    pl__depth_slot *slot = calloc((size_t)s->slots, sizeof *slot);
    if (!d || !slot) {
        free(d);
        free(slot);
        return pl_fail(err, PL_ENOMEM, "depth: no memory for %d slots", s->slots);
    }
    d->settings = *s;
    d->cost = s->cost;
    d->slot = slot;
    *out = d;
    return PL_OK;
}

void pl_depth_close(pl_depth *d)
{
    if (!d)
        return;
    free(d->slot);
    free(d);
}

void pl_depth_admit(pl_depth *d, int slot)
{
    d->slot[slot] = (pl__depth_slot){0};
}

static double copy_chance(const pl__depth_slot *slot, int match)
{
    double guess = match >= LONG_MATCH ? COPY_LONG : COPY_GUESS;
    return (slot->copy_kept + COPY_PRIOR * guess) / (slot->copy_said + COPY_PRIOR);
}

static pl__pause *pause_of(pl_depth *d, int lanes)
{
    return &d->pause[lanes < PL_PAUSE_STREAMS ? lanes : PL_PAUSE_STREAMS];
}

static bool counts_as_plain(const pl_depth *d, int lanes)
{
    return lanes > PL__DEPTH_LANES || (d->settings.plain_streams && lanes >= d->settings.plain_streams);
}

bool pl_depth_drafts(const pl_depth *d, int lanes)
{
    return !counts_as_plain(d, lanes);
}

static void decide_asks(pl_depth *d, pl_depth_round *round)
{
    for (int i = 0; i < round->lanes; i++) {
        pl_depth_lane *lane = &round->lane[i];
        bool copied = d->settings.fixed < 0 && lane->copies >= COPIES_INSTEAD &&
                      copy_chance(&d->slot[lane->slot], lane->match) >= COPY_SURE;
        lane->ask = d->asks && lane->drafts && lane->most > 0 && !copied;
    }
}

/* The longer expected run of what a lane is offered: the head's drafts or the copied ones. */
static void offer_of(const pl_depth *d, const pl_depth_lane *lane, pl__offer *offer)
{
    *offer = (pl__offer){0};
    if (!lane->drafts)
        return;
    double head_sum = 0, copy_sum = 0, chain = 1;
    double chance[PL_DEPTH_MOST], copy = copy_chance(&d->slot[lane->slot], lane->match);
    int heads = lane->heads < lane->most ? lane->heads : lane->most;
    int copies = lane->copies < lane->most ? lane->copies : lane->most;
    for (int k = 0; k < heads; k++)
        head_sum += chain *= chance[k] = pl_keep_chance(&d->heads, lane->sampled, k, lane->confidence[k]);
    chain = 1;
    for (int k = 0; k < copies; k++)
        copy_sum += chain *= copy;
    offer->copy = copy_sum > head_sum;
    offer->drafts = offer->copy ? copies : heads;
    for (int k = 0; k < offer->drafts; k++)
        offer->chance[k] = offer->copy ? copy : chance[k];
}

static void choose_fixed(const pl_depth *d, const pl__offer *offer, pl_depth_round *round)
{
    int spare = round->rows - round->lanes;
    for (int i = 0; i < round->lanes; i++) {
        int depth = offer[i].drafts < d->settings.fixed ? offer[i].drafts : d->settings.fixed;
        round->lane[i].depth = depth < spare ? depth : spare;
        round->lane[i].copy = round->lane[i].depth && offer[i].copy;
        spare -= round->lane[i].depth;
    }
}

static void decide_depths(pl_depth *d, pl_depth_round *round)
{
    pl__offer offer[PL__DEPTH_LANES];
    bool any = false;
    for (int i = 0; i < round->lanes; i++) {
        round->lane[i].depth = 0;
        round->lane[i].copy = false;
        if (d->plain)
            continue;
        offer_of(d, &round->lane[i], &offer[i]);
        any |= offer[i].drafts > 0;
    }
    if (!any)
        return;
    if (d->settings.fixed >= 0)
        choose_fixed(d, offer, round);
    else if (round->lanes == 1 || d->settings.joint == 0)
        pl__choose_alone(d, offer, round);
    else
        pl__choose_joint(d, offer, round);
}

/* Gains are held against the price of a plain round, so that price is kept fresh: two early rounds of each number of
 * streams are plain, then one of many. */
static bool looks_at_plain(pl_depth *d, int lanes)
{
    unsigned round = pause_of(d, lanes)->rounds++;
    return round == 2 || round == 3 || round % PLAIN_EVERY == PLAIN_EVERY - 1;
}

void pl_depth_decide(pl_depth *d, pl_depth_round *round)
{
    if (round->passed) {
        decide_depths(d, round);
        return;
    }
    bool fixed = d->settings.fixed >= 0;
    d->plain = counts_as_plain(d, round->lanes) || (!fixed && looks_at_plain(d, round->lanes));
    d->asks = !d->plain && (fixed || !pl__pause_now(pause_of(d, round->lanes)));
    decide_asks(d, round);
}

static void learn(pl_depth *d, const pl_depth_result *r)
{
    int most = r->heads < PL_KEEP_POSITIONS ? r->heads : PL_KEEP_POSITIONS;
    for (int k = 0; k < most && k <= r->agreed; k++) {
        if (k == r->agreed && !r->known_miss)
            break;
        pl_keep_saw(&d->heads, r->sampled, k, r->confidence[k], k < r->agreed);
    }
    if (!r->copy)
        return;
    pl__depth_slot *slot = &d->slot[r->slot];
    int reached = r->missed ? r->accepted + 1 : r->accepted;
    for (int k = 0; k < reached; k++) {
        slot->copy_kept = COPY_FADE * slot->copy_kept + (k < r->accepted);
        slot->copy_said = COPY_FADE * slot->copy_said + 1;
    }
}

void pl_depth_observe(pl_depth *d, const pl_depth_outcome *o)
{
    pl_cost_saw_verify(&d->cost, o->rows, o->verify_ms);
    pl_cost_saw_pass(&d->cost, o->asks, o->pass_ms);
    /* Rates are in modelled ms, which one stall does not shake. */
    double ms = pl_cost_verify(&d->cost, o->rows) + pl_cost_pass(&d->cost, o->asks), tokens = 0;
    for (int i = 0; i < o->lanes; i++) {
        const pl_depth_result *r = &o->result[i];
        learn(d, r);
        pl__recent *recent = &d->slot[r->slot].recent;
        recent->tokens[recent->next] = 1 + r->accepted;
        recent->ms[recent->next] = ms;
        recent->next = (recent->next + 1) % PL_DEPTH_RECENT;
        recent->count += recent->count < PL_DEPTH_RECENT;
        tokens += 1 + r->accepted;
    }
    if (counts_as_plain(d, o->lanes) || o->lanes < 1)
        return;
    pl__pause_saw(pause_of(d, o->lanes), o->asks > 0, tokens, ms, o->lanes, pl_cost_verify(&d->cost, o->lanes));
}
