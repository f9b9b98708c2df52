/* The filters of a draw, as cuts in one order: logit descending, lower id first. A filter keeps a first part of that
 * order, so it is a set, the same whatever way it is found; nothing here sorts a whole row. */
#ifndef PL_MODEL_SELECT_H
#define PL_MODEL_SELECT_H

#include "base/rowmath.h"

#include <stdint.h>

/* Tokens in ascending id. */
typedef struct pl__items {
    const float *x;    /* [n] logits, no NaN, no +inf */
    const int32_t *id; /* [n]; NULL: item i is token i */
    int n;
} pl__items;

static inline int32_t pl__item_id(const pl__items *items, int i)
{
    return items->id ? items->id[i] : (int32_t)i;
}

enum { PL__BUCKETS = 2048 };

/* Scratch; each array holds a row. Items that a filter returns live in x and id. */
typedef struct pl__select {
    const pl_rowmath *math;
    float *x, *p, *edge_x, *edge_p;
    int32_t *id, *edge_id;
    uint64_t *weight; /* [PL__BUCKETS] */
} pl__select;

/* The k first (all when there are no more). top: the largest logit. */
pl__items pl__keep_k(pl__select *s, pl__items items, float top, int k);

/* The fewest first whose share of the softmax of x / t over the items is at least `share`; at least one. Shares are
 * summed as integers, pl_expf((x - top) / t) * 2^42 each, so that no order of summation enters. */
pl__items pl__keep_share(pl__select *s, pl__items items, float top, float t, double share);

/* Those whose probability is at least `least` times the largest's: x >= top + t * log(least). */
pl__items pl__keep_near(pl__select *s, pl__items items, float top, float t, double least);

#endif
