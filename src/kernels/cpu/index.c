/* The two-level indexer (model spec 3.5): scores of all index keys that a row sees, candidate blocks, the best entries.
 *
 * Rows go in batches, so that the scores of a batch fit a bounded scratch. Keys are taken sixteen at a time, transposed
 * once and scored for every row of the batch that shares them: all rows of a span when every key is reachable, one row
 * when each has its own candidates. Scores are kept as ordered 16-bit keys in the order of the reachable entries. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/select.h"

#include <string.h>

enum {
    KEYS_A_TASK = 512,             /* a multiple of PL__KEY_LANES */
    SCORE_BYTES = 64 * 1024 * 1024 /* of a batch, unless one row alone wants more */
};

typedef struct index_job {
    pl__cpu *c;
    const pl_lists *lists;
    int topk;
    const pl_bf16 *q, *w;
    float w_scale;
    const pl_entries *entries;
    int heads, dim, blocks; /* blocks of 32 a key */
    const pl_candidates *publish, *within;
    const pl_launch *launch;
    int first, rows;      /* the batch in work */
    size_t room;          /* scores a row */
    int key_tasks;        /* tasks that a group's keys are cut into */
    uint16_t *score;      /* [batch][room] */
    unsigned char *query; /* [batch] of query_bytes */
} index_job;

static size_t query_bytes(size_t heads, size_t dim)
{
    size_t block = pl__times(heads, pl__plus(dim / 32, 1)); /* scales and biases: 4 bytes a block; weights a head */
    return pl__lines(pl__plus(pl__times(heads, dim), pl__times(12, block)));
}

static size_t score_room(const pl_kernel_limits *l)
{
    return pl__lines((size_t)l->context) + PL__KEY_LANES;
}

static size_t batch_rows(const pl_kernel_limits *l)
{
    size_t fit = SCORE_BYTES / (2 * score_room(l));
    size_t rows = l->rows < 1 ? 1 : (size_t)l->rows;
    return fit < 1 ? 1 : fit < rows ? fit : rows;
}

/* A thread's tile: codes, scales, and a packed query */
static size_t tile_bytes(size_t dim)
{
    return pl__lines(pl__times(16, dim)) + pl__lines(pl__times(64, dim / 32)) + pl__lines(dim);
}

void pl__index_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    (void)threads;
    size_t heads = (size_t)l->index_heads, dim = (size_t)l->index_dim;
    size_t row = pl__plus(pl__times(2, score_room(l)), query_bytes(heads, dim));
    pl__need_raise(need, pl__times(batch_rows(l), row), tile_bytes(dim));
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

static pl__index_query query_at(const index_job *j, size_t place)
{
    size_t heads = (size_t)j->heads, blocks = (size_t)j->blocks;
    unsigned char *p = j->query + place * query_bytes(heads, (size_t)j->dim);
    pl__index_query q = {.heads = j->heads, .blocks = j->blocks, .code = (int8_t *)p};
    float *scale = (float *)(void *)(p + heads * (size_t)j->dim);
    q.scale = scale;
    q.weight = scale + heads * blocks;
    q.bias = (int32_t *)(void *)(scale + heads * (blocks + 1));
    return q;
}

/* One block of 32: packed E2M1 pairs to quads of integers (vecops.h); returns their sum. */
static int32_t spread(int8_t *quad, const unsigned char *packed)
{
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) {
        int8_t even = twice[packed[i] & 15], odd = twice[packed[i] >> 4];
        quad[i / 4 * 8 + i % 4] = even;
        quad[i / 4 * 8 + 4 + i % 4] = odd;
        sum += even + odd;
    }
    return sum;
}

static void query_row(void *arg, size_t place, int thread)
{
    const index_job *j = arg;
    pl__index_query q = query_at(j, place);
    size_t heads = (size_t)j->heads, dim = (size_t)j->dim, blocks = (size_t)j->blocks;
    size_t row = (size_t)j->first + place;
    unsigned char *packed = j->c->mine[thread] + pl__lines(16 * dim) + pl__lines(64 * blocks),
                  *bytes = packed + dim / 2;
    for (size_t h = 0; h < heads; h++) {
        j->c->vec->round_q4e8(NULL, packed, bytes, j->q + (row * heads + h) * dim, dim);
        for (size_t b = 0; b < blocks; b++) {
            int32_t sum = spread((int8_t *)q.code + (h * blocks + b) * 32, packed + b * 16);
            ((int32_t *)q.bias)[h * blocks + b] = 12 * sum;
            uint32_t byte = bytes[b];
            ((float *)q.scale)[h * blocks + b] = 0.25f * pl_f32_from_bits(byte ? byte << 23 : 0x400000);
        }
        float w = pl_bf16_to_f32(j->w[row * heads + h]) * j->w_scale;
        ((float *)q.weight)[h] = pl_bf16_to_f32(pl_bf16_from_f32(w));
    }
}

/* ---- which keys a row can reach --------------------------------------------------------------------------------- */

static int visible(const index_job *j, int row)
{
    return (j->launch->pos[row] + 1) / j->entries->ratio;
}

/* Walks the reachable entries of a row in ascending order. */
typedef struct walk {
    const pl_candidates *within; /* NULL: all of 0..n-1 */
    const uint64_t *mask;
    int n, next;
} walk;

static int mask_bit(const walk *w, int block)
{
    return w->mask[block / 64] >> (block % 64) & 1;
}

static int walk_next(walk *w)
{
    if (w->within && w->next % w->within->block == 0) {
        int block = w->next / w->within->block;
        while ((size_t)block * (size_t)w->within->block < (size_t)w->n && !mask_bit(w, block)) {
            uint64_t rest = w->mask[block / 64] >> (block % 64);
            block += rest ? __builtin_ctzll(rest) : 64 - block % 64;
        }
        size_t next = (size_t)block * (size_t)w->within->block;
        w->next = next < (size_t)w->n ? (int)next : w->n;
    }
    return w->next < w->n ? w->next++ : -1;
}

/* A walk of the row whose first step gives reachable entry number `skip`; false when there are not so many. */
static bool walk_from(walk *w, const index_job *j, int row, size_t skip)
{
    *w = (walk){.within = j->within, .n = visible(j, row)};
    if (!j->within) {
        w->next = skip < (size_t)w->n ? (int)skip : w->n;
        return skip < (size_t)w->n;
    }
    w->mask = j->within->mask + (size_t)row * (size_t)j->within->words;
    size_t blocks = ((size_t)w->n + (size_t)j->within->block - 1) / (size_t)j->within->block;
    size_t want = skip / (size_t)j->within->block, word = 0; /* only the last block can be short */
    while (word < (blocks + 63) / 64 && (size_t)__builtin_popcountll(w->mask[word]) <= want)
        want -= (size_t)__builtin_popcountll(w->mask[word++]);
    if (word >= (blocks + 63) / 64)
        return false;
    uint64_t bits = w->mask[word];
    for (; want; want--)
        bits &= bits - 1;
    size_t block = word * 64 + (size_t)__builtin_ctzll(bits);
    size_t next = block * (size_t)j->within->block + skip % (size_t)j->within->block;
    w->next = next < (size_t)w->n ? (int)next : w->n;
    return block < blocks && next < (size_t)w->n;
}

static size_t reachable(const index_job *j, int row)
{
    int n = visible(j, row);
    if (!j->within)
        return (size_t)n;
    int block = j->within->block, blocks = (n + block - 1) / block;
    walk w = {.mask = j->within->mask + (size_t)row * (size_t)j->within->words};
    size_t count = 0;
    for (int b = 0; b < blocks; b++)
        if (mask_bit(&w, b))
            count += (size_t)(n - b * block < block ? n - b * block : block);
    return count;
}

/* ---- scores ----------------------------------------------------------------------------------------------------- */

/* Rows first .. first + rows - 1 of the launch that share their keys: of one span, or one row with candidates. */
typedef struct key_group {
    int first, rows;
} key_group;

static key_group group_of(const index_job *j, int row)
{
    key_group g = {.first = row, .rows = 1};
    int end = j->first + j->rows;
    if (!j->within)
        while (g.first + g.rows < end && j->launch->slot[g.first + g.rows] == j->launch->slot[row])
            g.rows++;
    return g;
}

static void score_tile(const index_job *j, const key_group *g, const pl__key_tile *tile, size_t at)
{
    for (int r = g->first; r < g->first + g->rows; r++) {
        if (!j->within && (size_t)visible(j, r) <= at)
            continue; /* the keys lie after this row */
        size_t place = (size_t)(r - j->first);
        pl__index_query q = query_at(j, place);
        pl_bf16 score[PL__KEY_LANES];
        j->c->vec->index_tile(score, &q, tile);
        uint16_t *to = j->score + place * j->room + at;
        for (int l = 0; l < PL__KEY_LANES; l++)
            to[l] = pl__ordered(score[l]);
    }
}

static void score_keys(void *arg, size_t task, int thread)
{
    const index_job *j = arg;
    /* the task's group: groups are told by their first rows, the other rows' tasks have nothing to do */
    int row = j->first + (int)(task / (size_t)j->key_tasks);
    if (!j->within && row > j->first && j->launch->slot[row] == j->launch->slot[row - 1])
        return;
    key_group g = group_of(j, row);
    size_t at = task % (size_t)j->key_tasks * KEYS_A_TASK, end = at + KEYS_A_TASK;
    int last = g.first + g.rows - 1; /* sees most */
    walk w;
    if (!walk_from(&w, j, last, at))
        return;
    unsigned char *code = j->c->mine[thread];
    float *scale = (float *)(void *)(code + pl__lines(16 * (size_t)j->dim));
    size_t bytes = pl_key_bytes(j->dim);
    for (; at < end; at += PL__KEY_LANES) {
        const unsigned char *key[PL__KEY_LANES];
        int count = 0;
        for (int e; count < PL__KEY_LANES && (e = walk_next(&w)) >= 0; count++)
            key[count] = pl__key_at(j->entries, j->launch->slot[last], e, bytes);
        if (!count)
            return;
        for (int l = count; l < PL__KEY_LANES; l++)
            key[l] = key[0]; /* scored, never read */
        j->c->vec->key_tile(code, scale, key, j->blocks);
        score_tile(j, &g, &(pl__key_tile){.code = code, .scale = scale}, at);
    }
}

/* ---- choice ----------------------------------------------------------------------------------------------------- */

static void choose_entries(const index_job *j, int row, const uint16_t *score, size_t m)
{
    int32_t *list = j->lists->list + (size_t)row * (size_t)j->lists->stride;
    size_t keep = j->topk < 0 ? 0 : (size_t)j->topk, count = 0;
    pl__cut cut = {.cut = 0, .ties = m}; /* all */
    if (keep < m)
        cut = pl__select(score, m, keep);
    walk w;
    walk_from(&w, j, row, 0);
    for (size_t i = 0; i < m; i++) {
        int e = walk_next(&w);
        if (score[i] < cut.cut || (score[i] == cut.cut && !cut.ties))
            continue;
        if (score[i] == cut.cut)
            cut.ties--;
        list[count++] = e;
    }
    j->lists->count[row] = (int32_t)count;
}

/* The block's best score takes the place of its number in `score`, which is no longer wanted. */
static void choose_blocks(const index_job *j, int row, uint16_t *score, size_t n)
{
    const pl_candidates *p = j->publish;
    uint64_t *mask = p->mask + (size_t)row * (size_t)p->words;
    size_t block = (size_t)p->block, blocks = (n + block - 1) / block, keep = (size_t)p->keep;
    memset(mask, 0, (size_t)p->words * sizeof *mask);
    if (!blocks)
        return;
    for (size_t b = 0; b < blocks; b++) {
        uint16_t best = 0;
        for (size_t i = b * block; i < (b + 1) * block && i < n; i++)
            best = score[i] > best ? score[i] : best;
        score[b] = best;
    }
    score[blocks - 1] = PL__ORDERED_PIN;
    pl__cut cut = {.cut = 0, .ties = blocks};
    if (keep < blocks)
        cut = pl__select(score, blocks, keep);
    for (size_t b = 0; b < blocks; b++) {
        if (score[b] < cut.cut || score[b] <= PL__ORDERED_LOWEST || (score[b] == cut.cut && !cut.ties))
            continue;
        if (score[b] == cut.cut)
            cut.ties--;
        mask[b / 64] |= (uint64_t)1 << (b % 64);
    }
}

static void choose_row(void *arg, size_t place, int thread)
{
    (void)thread;
    const index_job *j = arg;
    int row = j->first + (int)place;
    uint16_t *score = j->score + place * j->room;
    choose_entries(j, row, score, reachable(j, row));
    if (j->publish)
        choose_blocks(j, row, score, (size_t)visible(j, row));
}

void pl__cpu_index_select(pl_kernels *k, const pl_lists *lists, int topk, const pl_bf16 *q, const pl_bf16 *w,
                          float w_scale, const pl_entries *entries, int heads, int dim, const pl_candidates *publish,
                          const pl_candidates *within, const pl_launch *launch)
{
    pl__cpu *c = pl__cpu_of(k);
    size_t batch = batch_rows(&c->limits);
    index_job j = {.c = c,
                   .lists = lists,
                   .topk = topk,
                   .q = q,
                   .w = w,
                   .w_scale = w_scale,
                   .entries = entries,
                   .heads = heads,
                   .dim = dim,
                   .blocks = dim / 32,
                   .publish = publish,
                   .launch = launch,
                   .within = within && within->mask ? within : NULL,
                   .room = score_room(&c->limits)};
    if (publish && !publish->mask)
        j.publish = NULL;
    j.score = (uint16_t *)(void *)c->shared;
    j.query = c->shared + batch * j.room * sizeof *j.score;
    for (j.first = 0; j.first < launch->rows; j.first += (int)batch) {
        j.rows = launch->rows - j.first < (int)batch ? launch->rows - j.first : (int)batch;
        size_t most = 0, rows = (size_t)j.rows;
        for (int r = j.first; r < j.first + j.rows; r++)
            most = (size_t)visible(&j, r) > most ? (size_t)visible(&j, r) : most;
        j.key_tasks = (int)((most + KEYS_A_TASK - 1) / KEYS_A_TASK);
        pl__each(c, rows, rows * (size_t)heads * (size_t)dim, query_row, &j);
        pl__each(c, rows * (size_t)j.key_tasks, most * rows * (size_t)heads * (size_t)j.blocks, score_keys, &j);
        pl__each(c, rows, rows * most, choose_row, &j);
    }
}
