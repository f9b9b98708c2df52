#include "model/engram.h"

#include "checkpoint/primes.h"

/* numpy's SeedSequence (a 32-bit hash that spreads one integer over a pool of four words) and PCG64 (128-bit linear
 * congruential state, XSL-RR output), as documented by numpy; the release's multipliers come from them. */
enum { POOL = 4 };
typedef unsigned __int128 u128;

typedef struct pcg64 {
    u128 state, inc;
} pcg64;

static uint32_t hash_mix(uint32_t value, uint32_t *constant, uint32_t multiplier)
{
    value ^= *constant;
    *constant *= multiplier;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y)
{
    uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
    return r ^ r >> 16;
}

static void seed_words(uint32_t seed, uint32_t out[2 * POOL])
{
    uint32_t pool[POOL], constant = 0x43b0d7e5u;
    for (int i = 0; i < POOL; i++)
        pool[i] = hash_mix(i == 0 ? seed : 0, &constant, 0x931e8875u);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] = mix(pool[to], hash_mix(pool[from], &constant, 0x931e8875u));
    constant = 0x8b51f9ddu;
    for (int i = 0; i < 2 * POOL; i++)
        out[i] = hash_mix(pool[i % POOL], &constant, 0x58f38dedu);
}

static void pcg_step(pcg64 *g)
{
    const u128 multiplier = (u128)2549297995355413924u << 64 | 4865540595714422341u;
    g->state = g->state * multiplier + g->inc;
}

static void pcg_seed(pcg64 *g, uint32_t seed)
{
    uint32_t w[2 * POOL];
    seed_words(seed, w);
    uint64_t q[POOL];
    for (int i = 0; i < POOL; i++)
        q[i] = (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
    *g = (pcg64){.inc = ((u128)q[2] << 64 | q[3]) << 1 | 1};
    pcg_step(g);
    g->state += (u128)q[0] << 64 | q[1];
    pcg_step(g);
}

static uint64_t pcg_next(pcg64 *g)
{
    pcg_step(g);
    uint64_t x = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
    unsigned r = (unsigned)(g->state >> 122);
    return x >> r | x << (-r & 63);
}

/* Uniform in 0..bound-1 by multiplication, rejecting the few low products that would skew it. */
static uint64_t pcg_below(pcg64 *g, uint64_t bound)
{
    u128 m = (u128)pcg_next(g) * bound;
    if ((uint64_t)m < bound) {
        uint64_t threshold = (UINT64_MAX - (bound - 1)) % bound;
        while ((uint64_t)m < threshold)
            m = (u128)pcg_next(g) * bound;
    }
    return (uint64_t)(m >> 64);
}

void pl__engram_multipliers(int layer, int classes, int count, int64_t *out)
{
    pcg64 g;
    pcg_seed(&g, 10007u * (uint32_t)layer);
    uint64_t bound = (uint64_t)(INT64_MAX / classes / 2);
    for (int i = 0; i < count; i++)
        out[i] = (int64_t)(2 * pcg_below(&g, bound) + 1);
}

static pl_status load_map(pl__engrams *e, pl__taker *t, const pl_config *c, const uint32_t *token_map, pl_error *err)
{
    PL_TAKE_HOST(t, e->class_of, c->vocab_size, "token map", err);
    if (!e->class_of)
        return PL_OK;
    if (!token_map)
        return pl_fail_param(err, PL_EINVAL, "token_map", "token map: the model has Engram layers and needs one");
    for (int i = 0; i < c->vocab_size; i++) {
        if (token_map[i] >= (uint32_t)c->engram_classes)
            return pl_fail_param(err, PL_EINVAL, "token_map",
                                 "token map: class below %d expected for token %d, found %u", c->engram_classes, i,
                                 token_map[i]);
        e->class_of[i] = token_map[i];
    }
    return PL_OK;
}

pl_status pl__engrams_load(pl__engrams *e, pl__taker *t, const pl_config *c, const uint32_t *token_map, pl_error *err)
{
    *e = (pl__engrams){.cols = (c->engram_ngram - 1) * c->engram_heads};
    if (!c->engrams)
        return PL_OK;
    PL_TRY(load_map(e, t, c, token_map, err));
    uint32_t next = (uint32_t)c->engram_vocab;
    for (int l = 0; l < c->engrams; l++) {
        pl__engram *g = &e->engram[l];
        PL_TAKE_HOST(t, g->prime, e->cols, "engram primes", err);
        PL_TAKE_HOST(t, g->offset, e->cols, "engram offsets", err);
        pl__engram_multipliers(c->engram_layer[l], c->engram_classes, c->engram_ngram, g->multiplier);
        if (!g->prime)
            continue;
        int64_t sum = 0;
        for (int i = 0; i < e->cols; i++) {
            uint32_t p = pl_next_prime(next);
            next = p + 1;
            g->prime[i] = p;
            g->offset[i] = sum;
            sum += p;
        }
        if (sum != c->engram_rows[l])
            return pl_fail_param(err, PL_EFORMAT, "engram_num_embeddings",
                                 "engram_num_embeddings[%d]: %lld expected from engram_vocab_size, found %lld", l,
                                 (long long)sum, (long long)c->engram_rows[l]);
    }
    return PL_OK;
}

void pl__engram_rows(const pl__engrams *e, const pl_config *c, int which, const int32_t *tokens, int pos, int64_t *id)
{
    const pl__engram *g = &e->engram[which];
    int64_t pad = e->class_of[c->engram_pad], x = 0;
    bool blocked = false; /* sticky: behind the start or an image, everything is pad */
    for (int s = 0; s < c->engram_ngram; s++) {
        blocked = blocked || s > pos || tokens[pos - s] == c->image_token;
        x ^= (blocked ? pad : (int64_t)e->class_of[tokens[pos - s]]) * g->multiplier[s];
        if (s == 0)
            continue;
        for (int h = 0; h < c->engram_heads; h++) {
            int col = (s - 1) * c->engram_heads + h;
            id[col] = x % g->prime[col] + g->offset[col];
        }
    }
}
