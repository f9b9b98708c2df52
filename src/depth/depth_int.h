/* Inside of the rule. */
#ifndef PL_DEPTH_INT_H
#define PL_DEPTH_INT_H

#include "depth/depth.h"

/* Tokens and price of the last rounds. */
typedef struct pl__recent {
    double tokens[PL_DEPTH_RECENT], ms[PL_DEPTH_RECENT];
    int count, next;
} pl__recent;

typedef struct pl__depth_slot {
    pl__recent recent;
    double copy_kept, copy_said; /* verified copy drafts: kept, reached */
} pl__depth_slot;

/* Rounds with a pass held against what plain ones of as many streams would have given; see pause.c. */
typedef struct pl__pause {
    double gain;     /* tokens in hand since asking began again, in ms of plain rounds; below 0: drafting loses */
    int trial;       /* rounds with a pass since then */
    int rest;        /* plain rounds still to go */
    int strikes;     /* rests in a row */
    unsigned rounds; /* of so many streams, of any kind */
} pl__pause;

enum { PL__DEPTH_LANES = 64 /* of a round that drafts; wider ones are plain */ };
enum { PL_PAUSE_STREAMS = 8 /* stream counts with an account of their own; more count as the most */ };

struct pl_depth {
    pl_depth_settings settings;
    pl_cost cost;
    pl_keep_rate heads;
    pl__pause pause[PL_PAUSE_STREAMS + 1]; /* [decoding streams] */
    bool plain, asks;                      /* the round in the making: without any drafts; with asks */
    pl__depth_slot *slot;                  /* [slots] */
};

/* Does the drafter rest now, for rounds of so many streams? */
bool pl__pause_now(const pl__pause *pause);
/* A round is over: what it gave and cost, and the price of a plain one. */
void pl__pause_saw(pl__pause *pause, bool passed, double tokens, double ms, int lanes, double plain_ms);

/* Choose the depths of all lanes: chance[lane][j] is the chance that draft j is kept if all before it were, of `offer`
 * drafts. depth.c picks the source, this the lengths. */
typedef struct pl__offer {
    double chance[PL_DEPTH_MOST];
    int drafts;
    bool copy;
} pl__offer;

void pl__choose_alone(const pl_depth *depth, const pl__offer *offer, pl_depth_round *round);
void pl__choose_joint(const pl_depth *depth, const pl__offer *offer, pl_depth_round *round);
/* Tokens a modelled ms that this slot has made of late. */
double pl__slot_rate(const pl_depth *depth, int slot);

#endif
