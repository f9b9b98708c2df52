#include "model/sampler.h"

#include "base/arena.h"
#include "base/num.h"
#include "model/select.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

struct pl_sampler {
    int vocab;
    pl_arena arena;
    float *row; /* [vocab] a row with penalties and bias applied */
    pl__select select;
};

/* Arrays of a row that a sampler holds: row, and the seven of pl__select less the buckets. */
enum { ROW_ARRAYS = 7 };

size_t pl_sampler_bytes(int vocab)
{
    if (vocab < 1 || vocab > PL_MAX_VOCAB)
        return 0;
    return ROW_ARRAYS * pl_arena_need((size_t)vocab * sizeof(float)) + pl_arena_need(PL__BUCKETS * sizeof(uint64_t));
}

pl_status pl_sampler_open(pl_sampler **sampler, int vocab, const char *isa, pl_error *err)
{
    *sampler = NULL;
    if (vocab < 1 || vocab > PL_MAX_VOCAB)
        return pl_fail(err, PL_EINVAL, "a sampler takes vocabularies of 1 to %d tokens; found %d", PL_MAX_VOCAB, vocab);
    const pl_rowmath *math = pl_rowmath_for(isa);
    if (!math)
        return pl_fail(err, PL_EINVAL, "this machine or build has no instruction set \"%s\"", isa);
    pl_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return pl_fail(err, PL_ENOMEM, "no memory for a sampler");
    pl_status status = pl_arena_open(&s->arena, pl_sampler_bytes(vocab), "sampler", err);
    if (status != PL_OK) {
        free(s);
        return status;
    }
    size_t row = (size_t)vocab * sizeof(float);
    s->vocab = vocab;
    s->row = pl_arena_take(&s->arena, row);
    s->select = (pl__select){.math = math,
                             .x = pl_arena_take(&s->arena, row),
                             .p = pl_arena_take(&s->arena, row),
                             .edge_x = pl_arena_take(&s->arena, row),
                             .edge_p = pl_arena_take(&s->arena, row),
                             .id = pl_arena_take(&s->arena, row),
                             .edge_id = pl_arena_take(&s->arena, row),
                             .weight = pl_arena_take(&s->arena, PL__BUCKETS * sizeof(uint64_t))};
    *sampler = s;
    return PL_OK;
}

void pl_sampler_close(pl_sampler *sampler)
{
    if (!sampler)
        return;
    pl_arena_close(&sampler->arena);
    free(sampler);
}

/* One token's logit behind the penalties; times: how often it is in the reply (0: in the prompt alone). */
static float penalised(const pl_sampling *s, float logit, uint32_t times)
{
    logit = logit > 0 ? logit / s->repetition_penalty : logit * s->repetition_penalty;
    if (times > 0) {
        logit -= (float)times * s->frequency_penalty;
        logit -= s->presence_penalty;
    }
    return logit;
}

static bool has_penalties(const pl_sampling *s)
{
    return s->repetition_penalty != 1 || s->frequency_penalty != 0 || s->presence_penalty != 0;
}

static void apply_penalties(const pl_draw *d, float *row, int vocab)
{
    const pl_history *h = d->history;
    int distinct = h ? h->distinct : 0;
    for (int i = 0; i < distinct; i++) {
        int32_t id = h->token[i];
        row[id] = penalised(d->sampling, d->logits[id], h->note[id] - 1);
    }
    for (int i = 0; i < d->pendings; i++) { /* again for these, from the raw logit, with what is ahead counted */
        int32_t id = d->pending[i];
        if (id < 0 || id >= vocab)
            continue;
        uint32_t times = h && h->note[id] > 0 ? h->note[id] - 1 : 0;
        for (int k = 0; k < d->pendings; k++)
            times += d->pending[k] == id;
        row[id] = penalised(d->sampling, d->logits[id], times);
    }
}

/* No NaN and no +inf from here on: a NaN can never be chosen, and infinities tie as the largest float. */
static void clean(float *row, int n)
{
    for (int i = 0; i < n; i++) {
        if (row[i] != row[i])
            row[i] = -INFINITY;
        else if (row[i] > FLT_MAX)
            row[i] = FLT_MAX;
    }
}

/* The row to draw from, clean, and its largest logit: the model's own row where nothing changes it. */
static const float *prepared(pl_sampler *s, const pl_draw *d, float *top)
{
    const float *row = d->logits;
    size_t n = (size_t)s->vocab;
    const pl_sampling *set = d->sampling;
    bool penalties = has_penalties(set) && (d->history || d->pendings > 0);
    if (penalties || set->biases > 0) {
        memcpy(s->row, d->logits, n * sizeof *s->row);
        if (penalties)
            apply_penalties(d, s->row, s->vocab);
        for (int i = 0; i < set->biases; i++)
            s->row[set->bias[i].token] += set->bias[i].add;
        row = s->row;
    }
    bool odd;
    *top = s->select.math->max(row, n, &odd);
    if (odd) {
        if (row != s->row)
            memcpy(s->row, row, n * sizeof *s->row);
        clean(s->row, s->vocab);
        row = s->row;
        *top = s->select.math->max(row, n, &odd);
    }
    return row;
}

static int first_at(const pl__items *items, float top)
{
    int i = 0;
    while (i < items->n - 1 && items->x[i] != top)
        i++;
    return i;
}

/* The item with the largest (x - top) / t + noise; lower id on ties. Below top, because a noise of a few units would
 * drown in a huge logit.
 *
 * The noise takes two logarithms, so it is computed only for items that might win: with u = 2^e (1 + f),
 * -log(-log(1 - u)) < -log(u) <= -ln2 (e + f), and e + f is what the bits of u, read as an integer, say. The slack
 * covers every rounding on the way (the best is never below -3.7, so what might win lies within 41 of it), and an item
 * left out could not have won: what is chosen is the exact arg-max. */
static int32_t noisiest(const pl__items *items, float top, float t, uint64_t seed, int64_t position)
{
    const uint64_t key = pl_noise_key(seed, position);
    const double ln2 = 0x1.62e42fefa39efp-1, inverse = 1.0 / (double)t;
    const double slack = 1e-3;
    int first = first_at(items, top);
    int32_t best_id = pl__item_id(items, first);
    double best = pl_noise_gumbel(pl_noise_bits(key, best_id));
    for (int i = 0; i < items->n; i++) {
        int32_t id = pl__item_id(items, i);
        uint64_t w = pl_noise_bits(key, id);
        double low_log2 = (double)(int64_t)pl_f64_bits(pl_noise_uniform(w)) * 0x1p-52 - 1023.0;
        double below = (double)items->x[i] - (double)top;
        if (below * inverse - ln2 * low_log2 + slack < best || i == first)
            continue;
        double score = below / (double)t + pl_noise_gumbel(w);
        if (score > best || (score == best && id < best_id)) {
            best = score;
            best_id = id;
        }
    }
    return best_id;
}

int32_t pl_draw_token(pl_sampler *s, const pl_draw *d)
{
    const pl_sampling *set = d->sampling;
    float top;
    pl__items items = {prepared(s, d, &top), NULL, s->vocab};
    if (!(top > -INFINITY))
        return -1;
    float t = set->temperature;
    if (t == 0)
        return first_at(&items, top);
    if (set->top_k > 0)
        items = pl__keep_k(&s->select, items, top, set->top_k);
    if (set->top_p < 1)
        items = pl__keep_share(&s->select, items, top, t, (double)set->top_p);
    if (set->min_p > 0)
        items = pl__keep_near(&s->select, items, top, t, (double)set->min_p);
    return noisiest(&items, top, t, set->seed, d->position);
}

/* Insert (x, id) into the best `count` of at most `most`, best first, lower id first on ties (ids come ascending). */
static int insert(float *x, int32_t *id, int count, int most, float value, int32_t token)
{
    int at = count;
    while (at > 0 && value > x[at - 1])
        at--;
    if (at == most)
        return count;
    int last = count < most ? count : most - 1;
    for (int i = last; i > at; i--) {
        x[i] = x[i - 1];
        id[i] = id[i - 1];
    }
    x[at] = value;
    id[at] = token;
    return last + 1;
}

int pl_logprobs(pl_sampler *s, const float *logits, int32_t id, int top, float *logprob, int32_t *top_id,
                float *top_logprob)
{
    static const pl_sampling plain = {.repetition_penalty = 1};
    pl_draw d = {.logits = logits, .sampling = &plain};
    float largest;
    const float *row = prepared(s, &d, &largest);
    int n = s->vocab, count = 0;
    if (top > n)
        top = n;
    for (int i = 0; i < n && top > 0; i++)
        if (count < top || row[i] > top_logprob[count - 1])
            count = insert(top_logprob, top_id, count, top, row[i], i);
    if (!(largest > -INFINITY)) { /* no distribution at all: every probability is 0 */
        *logprob = -INFINITY;
        return count;
    }
    double log_sum = pl_log(s->select.math->exp_sum(row, (size_t)n, largest));
    *logprob = (float)((double)row[id] - (double)largest - log_sum);
    for (int i = 0; i < count; i++)
        top_logprob[i] = (float)((double)top_logprob[i] - (double)largest - log_sum);
    return count;
}
