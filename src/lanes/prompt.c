/* Prompts, a piece at a time. */
#include "base/clock.h"
#include "lanes/core.h"

/* Pieces start small and grow while they stay short, so that progress shows, a cancel is seen soon, and replies beside
 * them do not wait long. Only their time depends on it: any split gives the same bits. */
enum { LEAST_PIECE = 16, PASSED_OVER_MOST = 8 };
static const int64_t PIECE_NS = 1000000000, PIECE_BESIDE_NS = 250000000;

static int next_piece(int piece, int most, int64_t took, int64_t aim)
{
    if (took > aim && piece > LEAST_PIECE)
        return piece / 2;
    if (took < aim / 4)
        return piece > most / 2 ? most : 2 * piece;
    return piece;
}

/* Does a go before b? Who was passed over often enough goes first, whatever its length. */
static bool before(const pl__core *c, const pl__lane *a, const pl__lane *b)
{
    bool late_a = a->passed_over >= PASSED_OVER_MOST, late_b = b->passed_over >= PASSED_OVER_MOST;
    if (c->settings.order == PL_PROMPTS_ARRIVAL || (late_a && late_b))
        return a->arrival < b->arrival;
    if (late_a != late_b)
        return late_a;
    int left_a = a->goal - a->kept, left_b = b->goal - b->kept;
    return left_a != left_b ? left_a < left_b : a->arrival < b->arrival;
}

static pl__lane *choose(pl__core *c)
{
    pl__lane *next = NULL;
    for (int i = 0; i < c->target.slots; i++) {
        pl__lane *lane = &c->lane[i];
        if (lane->phase == PL__PROMPT && !pl__core_yields(c, lane) && (!next || before(c, lane, next)))
            next = lane;
    }
    for (int i = 0; next && i < c->target.slots; i++)
        c->lane[i].passed_over += c->lane[i].phase == PL__PROMPT && !pl__core_yields(c, &c->lane[i]);
    if (next)
        next->passed_over = 0;
    return next;
}

static void report(pl__lane *lane)
{
    size_t prompt = pl__lane_request(lane)->prompt_len, done = (size_t)lane->kept;
    pl__stream_prefilled(lane->stream, done < prompt ? done : prompt);
}

/* The prompt is in the slot: the reply begins with a token from its last row, or goes on behind its pending one. */
static void begin_reply(pl__core *c, pl__lane *lane)
{
    lane->phase = PL__REPLY;
    lane->served = 0;
    c->prompts--;
    c->replies++;
    if (lane->stream->count)
        return;
    lane->outcome.timings.prefill = pl_now_ns() - lane->admitted_ns;
    int32_t token;
    if (!pl__conclude_row(c, lane, 0, &token))
        pl__core_leave(c, lane);
}

pl_status pl__prompt_step(pl__core *c, pl_error *err)
{
    pl__lane *lane = choose(c);
    if (!lane)
        return PL_OK;
    int left = lane->goal - lane->kept, rows = left < c->piece ? left : c->piece;
    bool last = rows == left && lane->stream->count == 0;
    int64_t began = pl_now_ns();
    if (rows) {
        pl_status status = c->target.prefill(c->target.arg, lane->slot, lane->token + lane->kept, rows, last,
                                             &lane->stream->cancel, err);
        if (status != PL_OK) {
            pl__core_fail(c, lane, err);
            return status == PL_EFAULT ? status : PL_OK;
        }
    }
    lane->kept += rows;
    c->totals.prompt_tokens += (uint64_t)rows;
    report(lane);
    /* A short rest of a prompt tells little of what a full piece takes. */
    if (rows == c->piece)
        c->piece = next_piece(c->piece, c->target.piece, pl_now_ns() - began, c->replies ? PIECE_BESIDE_NS : PIECE_NS);
    if (lane->kept == lane->goal)
        begin_reply(c, lane);
    return c->fault.status == PL_OK ? PL_OK : pl__core_fault(c, err);
}
