/* What the sampler's tests share: seeded rows, and the draw written the straightforward way. */
#ifndef PL_TESTS_MODEL_SAMPLER_KIT_H
#define PL_TESTS_MODEL_SAMPLER_KIT_H

#include "base/check.h"
#include "base/clock.h"
#include "model/sampler.h"

#include <math.h>

static uint64_t kit_state;

/* PACELINE_TEST_SEED repeats a run. */
static inline void kit_seed(void)
{
    const char *given = getenv("PACELINE_TEST_SEED");
    kit_state = given ? strtoull(given, NULL, 10) : (uint64_t)pl_now_ns();
    printf("seed %llu\n", (unsigned long long)kit_state);
}

static inline uint32_t kit_random(uint32_t below)
{
    kit_state = kit_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((kit_state >> 33) % below);
}

static inline double kit_uniform(void)
{
    return ((double)kit_random(1u << 30) + 0.5) * 0x1p-30;
}

static inline pl_sampler *kit_sampler(int vocab, const char *isa)
{
    pl_sampler *s;
    pl_error err;
    if (pl_sampler_open(&s, vocab, isa, &err) != PL_OK)
        fail_msg("%s", err.message);
    return s;
}

static inline pl_sampling kit_plain(void)
{
    pl_sampling s;
    pl_sampling_resolve(&s, NULL, 0);
    return s;
}

typedef struct kit_item {
    double x; /* logit */
    int id;
} kit_item;

static inline int kit_order(const void *a, const void *b)
{
    const kit_item *p = a, *q = b;
    return p->x != q->x ? (p->x < q->x) - (p->x > q->x) : (p->id > q->id) - (p->id < q->id);
}

/* Sort everything, cut three times in doubles. Returns how many of item[] stay, best first. A cut whose share lies
 * within 1e-6 of top_p is too close to call: *close is set. */
static inline int kit_filter(kit_item *item, const float *x, int n, const pl_sampling *s, bool *close)
{
    int kept = 0;
    *close = false;
    for (int i = 0; i < n; i++)
        if (x[i] > -INFINITY)
            item[kept++] = (kit_item){(double)x[i], i};
    qsort(item, (size_t)kept, sizeof *item, kit_order);
    if (s->top_k > 0 && kept > s->top_k)
        kept = s->top_k;
    double t = (double)s->temperature, total = 0, sum = 0;
    for (int i = 0; i < kept; i++)
        total += exp((item[i].x - item[0].x) / t);
    for (int i = 0; s->top_p < 1 && i < kept; i++) {
        sum += exp((item[i].x - item[0].x) / t);
        if (fabs(sum / total - (double)s->top_p) < 1e-6)
            *close = true;
        if (sum >= (double)s->top_p * total) {
            kept = i + 1;
            break;
        }
    }
    for (int i = 0; s->min_p > 0 && i < kept; i++) {
        double p = exp((item[i].x - item[0].x) / t);
        if (fabs(p - (double)s->min_p) < 1e-9)
            *close = true;
        if (p < (double)s->min_p)
            kept = i;
    }
    return kept;
}

/* Every kept item's noise, the largest score, the lower id on ties. */
static inline int kit_draw(const kit_item *item, int kept, const pl_sampling *s, int64_t position)
{
    double best = -HUGE_VAL;
    int id = -1;
    for (int i = 0; i < kept; i++) {
        double score = (item[i].x - item[0].x) / (double)s->temperature + pl_gumbel(s->seed, position, item[i].id);
        if (score > best || (score == best && item[i].id < id)) {
            best = score;
            id = item[i].id;
        }
    }
    return id;
}

#endif
