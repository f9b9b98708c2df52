/* The core of the lanes: slots with streams in them, prompts in pieces, rounds of decoding. It knows the two tables of
 * target.h and the depth rule, and neither threads nor queues: whoever owns it calls admit and step, and is told of
 * every stream that leaves. One thread; after open nothing allocates.
 *
 *   step = a piece of one prompt, or a round:
 *          asks decided -> the drafter's pass -> depths decided -> one launch of all windows
 *          -> every stream draws, commits, ends -> kept lengths, prices and rates learned
 *
 * A token is drawn from the row behind the tokens before it by the stream's own settings, and nothing else: a draft is
 * kept when it is the token that was drawn. So drafts, depths, company and order reach no token. */
#ifndef PL_LANES_CORE_H
#define PL_LANES_CORE_H

#include "depth/depth.h"
#include "lanes/engine.h"
#include "lanes/lane.h"
#include "lanes/round_log.h"
#include "lanes/target.h"

/* A stream has left the core, for good (outcome) or to wait again (outcome NULL: it gave its slot up). */
typedef void pl__left_fn(void *arg, pl_stream *stream, const pl_outcome *outcome);

/* Totals since the start. */
typedef struct pl__totals {
    pl_numbers numbers;
    uint64_t prompt_tokens, reply_tokens, launches, passes;
    int64_t prefill_ns, decode_ns; /* in pieces; in rounds */
} pl__totals;

typedef struct pl__core {
    pl_target target;
    pl_draft_table drafter; /* block 0: nobody drafts */
    pl_core_settings settings;
    pl__left_fn *left;
    void *left_arg;

    pl_sampler *sampler;
    pl_depth *depth;
    pl__lane *lane; /* [target.slots] */
    void *lane_memory;
    int prompts, replies;        /* lanes in each phase */
    uint64_t round;              /* number of the next one */
    uint64_t turns;              /* windows run so far */
    uint64_t arrivals;           /* streams admitted so far */
    bool piece_last;             /* the last step was a piece */
    int64_t prompt_ns, reply_ns; /* since both were at work */
    int piece;                   /* rows of the next piece */
    pl_error fault;              /* PL_OK while there is none */
    atomic_bool abort;           /* give up a launch of several streams; any thread */

    /* of the round in the making, [target.slots] */
    pl__lane **in;
    int ins;
    pl_window *window;
    pl_depth_lane *plan;
    pl_depth_result *result;
    pl_draft_ask *ask;
    pl__lane **asker;
    int *slot;
    int32_t *draft;             /* [asks of one pass][block] */
    float *confidence, *margin; /* likewise */

    pl__round_log log;
    pl__totals totals;
} pl__core;

/* Bytes that pl__core_open reserves. drafter may be NULL. */
size_t pl__core_bytes(const pl_target *target, const pl_draft_table *drafter);
/* The tables are copied; drafter may be NULL. PL_EINVAL, PL_ENOMEM, PL_EIO (the accept log). */
pl_status pl__core_open(pl__core *core, const pl_target *target, const pl_draft_table *drafter,
                        const pl_core_settings *settings, pl__left_fn *left, void *left_arg, pl_error *err);
/* All lanes must be empty. A zeroed core may be closed. */
void pl__core_close(pl__core *core);

/* Is a slot free? */
bool pl__core_has_room(const pl__core *core);
/* Take a stream in; it must have room. A failure of the target is the stream's outcome, and PL_EFAULT is returned. */
pl_status pl__core_admit(pl__core *core, pl_stream *stream, pl_error *err);
/* A background stream gives its slot up: left is called with NULL. False when there is none. */
bool pl__core_give_way(pl__core *core);
/* Is there anything to step? */
bool pl__core_busy(const pl__core *core);
/* One piece or one round. PL_EFAULT: the model is broken; every stream has left with that error. */
pl_status pl__core_step(pl__core *core, pl_error *err);
/* Every stream leaves with this outcome. */
void pl__core_end_all(pl__core *core, pl_finish reason, const pl_error *err);

/* ---- shared by the core's own files ----------------------------------------------------------------------------- */

/* prompt.c: run one piece of the prompt that is due. PL_OK also when its stream left. */
pl_status pl__prompt_step(pl__core *core, pl_error *err);
/* round.c */
pl_status pl__round_step(pl__core *core, pl_error *err);
/* draft.c: copied drafts of the chosen lanes; then the pass of those whose plan asks, and what it proposed. */
void pl__draft_copies(pl__core *core);
pl_status pl__draft_pass(pl__core *core, pl_error *err);
/* conclude.c: draw the token behind row `row` of the launch and commit it: log, hash, history, end. *token. False when
 * the reply ends with it or cannot go on (lane->outcome tells). */
bool pl__conclude_row(pl__core *core, pl__lane *lane, int row, int32_t *token);
/* Does a background lane stand back now? While others are here it gets one round in sixteen. */
bool pl__core_yields(const pl__core *core, const pl__lane *lane);
/* The fault, as a status. */
pl_status pl__core_fault(const pl__core *core, pl_error *err);
/* The lane is free; its stream leaves with lane->outcome. */
void pl__core_leave(pl__core *core, pl__lane *lane);
/* The lane's stream failed (PL_ECANCELED: was given up). */
void pl__core_fail(pl__core *core, pl__lane *lane, const pl_error *err);

#endif
