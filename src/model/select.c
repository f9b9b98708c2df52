#include "model/select.h"

#include "base/mathfn.h"

/* How a kept part is measured: one an item, or its share of the probability. */
typedef struct measure {
    const float *p; /* [n] NULL: every item weighs 1 */
    float top;
    float scale; /* buckets a logit */
} measure;

static uint64_t weigh(const float *p, int i)
{
    return p ? (uint64_t)((double)p[i] * 0x1p42) : 1;
}

/* Equal distances below the largest logit share a bucket, and a nearer one never has a higher number: the rounding of a
 * difference and of a product keeps their order. The last bucket takes everything far away, -inf too. */
static int bucket_of(const measure *m, float x)
{
    float d = (m->top - x) * m->scale;
    return d < (float)(PL__BUCKETS - 1) ? (int)d : PL__BUCKETS - 1;
}

/* Unsigned integers in the order of the floats; -0 and +0 are one. */
static uint32_t key_of(float x)
{
    uint32_t b = pl_f32_bits(x + 0.0f);
    return b & 0x80000000 ? ~b : b | 0x80000000;
}

/* The last item kept: everything with a larger key, and of those with this key the ids up to `id`. */
typedef struct cut {
    uint32_t key;
    int32_t id;
} cut;

/* Where `need` (at most their whole weight) is reached among n edge items, in ascending id: by the digits of the key,
 * largest first, then along the ids of the items that share it. */
static cut find_cut(const pl__select *s, int n, bool by_share, uint64_t need)
{
    const float *p = by_share ? s->edge_p : NULL;
    cut c = {0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) {
        uint64_t digit[256] = {0};
        for (int i = 0; i < n; i++) {
            uint32_t key = key_of(s->edge_x[i]);
            if (shift == 24 || key >> (shift + 8) == c.key >> (shift + 8))
                digit[key >> shift & 255] += weigh(p, i);
        }
        int d = 255;
        while (d > 0 && digit[d] < need)
            need -= digit[d--];
        c.key |= (uint32_t)d << shift;
    }
    for (int i = 0; i < n; i++) {
        if (key_of(s->edge_x[i]) != c.key)
            continue;
        c.id = s->edge_id[i];
        uint64_t w = weigh(p, i);
        if (w >= need)
            break;
        need -= w;
    }
    return c;
}

/* Put the edge items that the cut keeps among the `kept` items in s->x, s->id, by ascending id, from the back. */
static int merge(pl__select *s, int kept, int edges, cut c)
{
    int extra = 0;
    for (int i = 0; i < edges; i++) {
        uint32_t key = key_of(s->edge_x[i]);
        if (key > c.key || (key == c.key && s->edge_id[i] <= c.id)) {
            s->edge_x[extra] = s->edge_x[i];
            s->edge_id[extra++] = s->edge_id[i];
        }
    }
    int n = kept + extra;
    for (int to = n - 1; extra > 0; to--) {
        if (kept > 0 && s->id[kept - 1] > s->edge_id[extra - 1]) {
            kept--;
            s->x[to] = s->x[kept];
            s->id[to] = s->id[kept];
        } else {
            extra--;
            s->x[to] = s->edge_x[extra];
            s->id[to] = s->edge_id[extra];
        }
    }
    return n;
}

/* The fewest first items whose weight reaches need, given the buckets' weights in s->weight. */
static pl__items keep_first(pl__select *s, pl__items items, const measure *m, uint64_t need)
{
    int edge = 0;
    while (edge < PL__BUCKETS - 1 && s->weight[edge] < need)
        need -= s->weight[edge++];
    int kept = 0, edges = 0;
    for (int i = 0; i < items.n; i++) {
        float x = items.x[i];
        int b = bucket_of(m, x);
        if (b > edge)
            continue;
        int32_t id = pl__item_id(&items, i);
        if (b < edge) { /* s->x and s->id may be the items themselves: kept never runs ahead of i */
            s->x[kept] = x;
            s->id[kept++] = id;
        } else {
            s->edge_x[edges] = x;
            s->edge_id[edges] = id;
            s->edge_p[edges++] = m->p ? m->p[i] : 0;
        }
    }
    cut c = find_cut(s, edges, m->p != NULL, need);
    return (pl__items){s->x, s->id, merge(s, kept, edges, c)};
}

/* The weight of each bucket; the sum of all. */
static uint64_t fill_buckets(pl__select *s, const pl__items *items, const measure *m)
{
    uint64_t total = 0;
    memset(s->weight, 0, PL__BUCKETS * sizeof *s->weight);
    for (int i = 0; i < items->n; i++) {
        uint64_t w = weigh(m->p, i);
        s->weight[bucket_of(m, items->x[i])] += w;
        total += w;
    }
    return total;
}

pl__items pl__keep_k(pl__select *s, pl__items items, float top, int k)
{
    if (k >= items.n)
        return items;
    measure m = {NULL, top, PL__BUCKETS / 32.0f};
    fill_buckets(s, &items, &m);
    return keep_first(s, items, &m, (uint64_t)k);
}

pl__items pl__keep_share(pl__select *s, pl__items items, float top, float t, double share)
{
    s->math->exp(s->p, items.x, (size_t)items.n, top, t);
    float scale = PL__BUCKETS / 30.0f / t; /* e^-30 weighs 0 */
    measure m = {s->p, top, scale < 1e30f ? scale : 1e30f};
    uint64_t total = fill_buckets(s, &items, &m);
    double part = ceil(share * (double)total);
    uint64_t need = part < (double)total ? (uint64_t)part : total;
    return keep_first(s, items, &m, need > 0 ? need : 1);
}

pl__items pl__keep_near(pl__select *s, pl__items items, float top, float t, double least)
{
    double from = (double)top + (double)t * pl_log(least);
    int n = 0;
    for (int i = 0; i < items.n; i++) {
        float x = items.x[i];
        if ((double)x < from)
            continue;
        int32_t id = pl__item_id(&items, i);
        s->x[n] = x;
        s->id[n++] = id;
    }
    return (pl__items){s->x, s->id, n};
}
