/* A target and a drafter without a model, for many slots at once. Logits are a hash of all tokens before them, so any
 * wrong row, slot, length or order of calls gives another reply. The drafter proposes what the target would draw, up to
 * the length that the test says, then something else; so every accept length can be forced, and a draft that was not
 * drawn with the stream's own noise shows as one that is not kept. */
#ifndef TESTS_LANES_FAKE_PAIR_H
#define TESTS_LANES_FAKE_PAIR_H

#include "lanes/target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIR_VOCAB = 61, PAIR_CONTEXT = 512, PAIR_SLOTS = 40, PAIR_ROWS = 64, PAIR_BLOCK = 5, PAIR_WINDOW = 16 };

typedef struct pair_slot {
    int32_t token[PAIR_CONTEXT + PAIR_WINDOW];
    int kept, len, ingested; /* committed; with the last window; seen by the drafter */
    bool admitted;
} pair_slot;

typedef struct pair {
    pl_target target;
    pl_draft_table drafter;
    pair_slot slot[PAIR_SLOTS];
    struct {
        int slot, tokens;
    } row[PAIR_ROWS]; /* of the latest launch: whose, and how many tokens stand before it */
    int rows;
    float logits[PAIR_VOCAB];
    float draft_logits[PAIR_VOCAB];

    /* How the drafter behaves. */
    int (*right)(void *arg, int slot); /* how many drafts are right, 0..PAIR_BLOCK; others are garbage in full */
    float (*confidence)(void *arg);
    void *arg;
    pl_status window_fails; /* the next window fails with it */
    int misuse, launches, passes, proposals;
} pair;

static inline uint64_t pair_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The logits behind token[0..n). Every seventh context is nearly certain of its token, the rest are wide. */
static inline void pair_logits(const int32_t *token, int n, float *logits)
{
    uint64_t h = 1469598103934665603u;
    for (int i = n > 24 ? n - 24 : 0; i < n; i++)
        h = pair_mix((h ^ (uint64_t)(uint32_t)token[i]) + 0x9e3779b97f4a7c15u);
    for (int i = 0; i < PAIR_VOCAB; i++)
        logits[i] = (float)(pair_mix(h + (uint64_t)i) >> 40) * 0x1p-22f - 2;
    if (h % 7 == 0)
        logits[h / 7 % PAIR_VOCAB] += 8;
}

static inline pl_status pair_admit(void *arg, int slot, pl_error *err)
{
    (void)err;
    pair *p = arg;
    p->misuse += slot < 0 || slot >= p->target.slots || p->slot[slot].admitted;
    p->slot[slot] = (pair_slot){.admitted = true};
    return PL_OK;
}

static inline pl_status pair_prefill(void *arg, int slot, const int32_t *token, int rows, bool last,
                                     const atomic_bool *cancel, pl_error *err)
{
    pair *p = arg;
    pair_slot *s = &p->slot[slot];
    if (cancel && *cancel)
        return pl_fail(err, PL_ECANCELED, "cancelled");
    p->misuse += !s->admitted || rows < 1 || rows > p->target.piece || s->kept + rows > p->target.context;
    memcpy(s->token + s->kept, token, (size_t)rows * sizeof *token);
    s->len = s->kept += rows;
    p->rows = last;
    p->row[0].slot = slot;
    p->row[0].tokens = s->kept;
    return PL_OK;
}

static inline pl_status pair_window(void *arg, const pl_window *w, int windows, const atomic_bool *cancel,
                                    pl_error *err)
{
    pair *p = arg;
    p->launches++;
    if (cancel && *cancel)
        return pl_fail(err, PL_ECANCELED, "cancelled");
    if (p->window_fails != PL_OK)
        return pl_fail(err, p->window_fails, "the fake window fails");
    p->rows = 0;
    for (int i = 0; i < windows; i++) {
        pair_slot *s = &p->slot[w[i].slot];
        p->misuse += !s->admitted || w[i].rows < 1 || w[i].rows > p->target.window_rows ||
                     p->rows + w[i].rows > p->target.rows || s->kept + w[i].rows > p->target.context || s->kept < 1;
        for (int j = 0; j < i; j++)
            p->misuse += w[j].slot == w[i].slot;
        memcpy(s->token + s->kept, w[i].token, (size_t)w[i].rows * sizeof(int32_t));
        s->len = s->kept + w[i].rows;
        for (int r = 0; r < w[i].rows && p->rows < PAIR_ROWS; r++) {
            p->row[p->rows].slot = w[i].slot;
            p->row[p->rows++].tokens = s->kept + r + 1;
        }
    }
    return PL_OK;
}

static inline const float *pair_row(void *arg, int i)
{
    pair *p = arg;
    p->misuse += i < 0 || i >= p->rows;
    pair_logits(p->slot[p->row[i].slot].token, p->row[i].tokens, p->logits);
    return p->logits;
}

static inline pl_status pair_keep(void *arg, int slot, int count, pl_error *err)
{
    (void)err;
    pair *p = arg;
    pair_slot *s = &p->slot[slot];
    p->misuse += !s->admitted || count < s->kept || count > s->len;
    s->kept = count;
    p->rows = 0; /* logits are gone */
    return PL_OK;
}

static inline void pair_release(void *arg, int slot)
{
    pair *p = arg;
    p->misuse += !p->slot[slot].admitted;
    p->slot[slot].admitted = false;
}

static inline pl_status pair_ingest(void *arg, const int *slot, int slots, pl_error *err)
{
    (void)err;
    pair *p = arg;
    for (int i = 0; i < slots; i++) {
        pair_slot *s = &p->slot[slot[i]];
        p->misuse += !s->admitted || s->ingested > s->kept;
        s->ingested = s->kept;
    }
    return PL_OK;
}

static inline int32_t pair_best(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < PAIR_VOCAB; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

static inline pl_status pair_propose(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose,
                                     void *choose_arg, int32_t *draft, float *confidence, float *margin, pl_error *err)
{
    (void)err;
    pair *p = arg;
    p->passes++;
    p->proposals += asks;
    p->misuse += asks < 1 || asks > p->drafter.asks;
    int right[PAIR_SLOTS];
    for (int i = 0; i < asks; i++) {
        const pair_slot *s = &p->slot[ask[i].slot];
        p->misuse += !s->admitted || s->ingested != s->kept;
        right[i] = p->right ? p->right(p->arg, ask[i].slot) : PAIR_BLOCK;
    }
    for (int r = 0; r < PAIR_BLOCK; r++)
        for (int i = 0; i < asks; i++) {
            const pair_slot *s = &p->slot[ask[i].slot];
            int32_t all[PAIR_CONTEXT + PAIR_BLOCK + 1];
            memcpy(all, s->token, (size_t)s->kept * sizeof *all);
            all[s->kept] = ask[i].anchor;
            memcpy(all + s->kept + 1, draft + i * PAIR_BLOCK, (size_t)r * sizeof *all);
            pair_logits(all, s->kept + 1 + r, p->draft_logits);
            int32_t *d = &draft[i * PAIR_BLOCK + r];
            *d = choose ? choose(choose_arg, i, r, p->draft_logits) : pair_best(p->draft_logits);
            confidence[i * PAIR_BLOCK + r] = p->confidence ? p->confidence(p->arg) : 2;
            margin[i * PAIR_BLOCK + r] = 1;
        }
    for (int i = 0; i < asks; i++) {
        int32_t *d = draft + i * PAIR_BLOCK;
        if (right[i] < 0 || right[i] > PAIR_BLOCK)
            for (int r = 0; r < PAIR_BLOCK; r++)
                d[r] = right[i] < 0 ? -7 - r : INT32_MAX - r;
        else if (right[i] < PAIR_BLOCK)
            d[right[i]] = (d[right[i]] + 1) % PAIR_VOCAB;
    }
    return PL_OK;
}

static inline void pair_reset(void *arg, int slot)
{
    ((pair *)arg)->slot[slot].ingested = 0;
}

static inline void pair_init(pair *p, int slots, int rows)
{
    memset(p, 0, sizeof *p);
    p->target = (pl_target){.arg = p,
                            .slots = slots,
                            .context = PAIR_CONTEXT,
                            .piece = 8,
                            .rows = rows,
                            .window_rows = PAIR_WINDOW,
                            .vocab = PAIR_VOCAB,
                            .admit = pair_admit,
                            .prefill = pair_prefill,
                            .window = pair_window,
                            .logits = pair_row,
                            .keep = pair_keep,
                            .release = pair_release};
    p->drafter = (pl_draft_table){
        .arg = p, .block = PAIR_BLOCK, .asks = 12, .ingest = pair_ingest, .propose = pair_propose, .reset = pair_reset};
}

#endif
