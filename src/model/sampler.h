/* Draws a token from a row of logits. A draw is a pure function of (logits row, settings, history, seed, position): no
 * state, no order of calls, no thread count or instruction set reaches it. docs/internals/sampler.md. */
#ifndef PL_MODEL_SAMPLER_H
#define PL_MODEL_SAMPLER_H

#include "model/history.h"
#include "model/noise.h"
#include "model/sampling.h"

enum {
    PL_MAX_PENDING = 16,   /* drafts ahead of a row */
    PL_MAX_VOCAB = 1 << 21 /* the probability sums are exact integers up to here */
};

/* Scratch for draws, planned at start; one a thread. */
typedef struct pl_sampler pl_sampler;

/* Bytes that pl_sampler_open reserves. */
size_t pl_sampler_bytes(int vocab);
/* isa as for pl_rowmath_for ("auto", "scalar", ...): PL_EINVAL when it is not here or vocab is out of 1..PL_MAX_VOCAB.
 * PL_ENOMEM. Nothing after this allocates. */
pl_status pl_sampler_open(pl_sampler **sampler, int vocab, const char *isa, pl_error *err);
void pl_sampler_close(pl_sampler *sampler);

/* One row to draw from. */
typedef struct pl_draw {
    const float *logits;         /* [vocab] as the model gave them; NaN counts as -inf, +inf as the largest float */
    int64_t position;            /* absolute position of the token to draw */
    const pl_sampling *sampling; /* resolved and checked */
    const pl_history *history;   /* committed tokens; NULL: none (penalties then see only pending) */
    const int32_t *pending; /* [pendings] tokens ahead of this row that are not committed yet, in the reply's order */
    int pendings;           /* at most PL_MAX_PENDING */
} pl_draw;

/* The token: penalties (repetition, then frequency and presence), logit_bias, top-k, temperature, top-p, min-p, then
 * the largest (logit - row's largest) / temperature + noise; lower id on ties, at every cut too. -1 when every token is
 * barred (-inf). */
int32_t pl_draw_token(pl_sampler *sampler, const pl_draw *draw);

/* Natural logarithms of probabilities at temperature 1, before penalties and bias: of token id into *logprob, and the
 * `top` likeliest, best first, lower id on ties, into top_id and top_logprob. Returns how many there are:
 * min(top, vocab). */
int pl_logprobs(pl_sampler *sampler, const float *logits, int32_t id, int top, float *logprob, int32_t *top_id,
                float *top_logprob);

#endif
