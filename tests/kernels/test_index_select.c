/* The indexer against the reference's unit vectors and a plain sort. */
#include "kernels/cpu/select.h"
#include "ops_fixture.h"

enum { HEADS = 8, DIM = 32, VHEADS = 8, QUERIES = 5, KEYS = 40 };

/* Keys of slot 0 in pages, from bfloat16 values that are FP4 already */
typedef struct store {
    unsigned char *page[4096];
    pl_entries entries;
    int count;
} store;

static void store_open(pl_kernels *k, store *s, const pl_bf16 *key, int count, int dim, int ratio, int slots)
{
    const int per = 16;
    *s = (store){.count = count};
    int pages = (count + per - 1) / per;
    s->entries = (pl_entries){.page = s->page, .pages = pages, .per_page = per, .ratio = ratio};
    for (int i = 0; i < pages; i++)
        s->page[i] = exact(per * pl_key_bytes(dim));
    float zero[64] = {0};
    pl_rope still = {.dims = dim, .freq = zero};
    for (int32_t i = 0, slot = 0; i < count; i++)
        k->key_put(k, &s->entries, key + (size_t)i * (size_t)dim, dim, &still,
                   &(pl_groups){.count = 1, .ratio = ratio, .slot = &slot, .index = &i});
    for (int j = 1; j < slots; j++) /* every slot reads the same pages */
        memcpy(s->page + j * pages, s->page, sizeof *s->page * (size_t)pages);
}
static void store_close(store *s)
{
    for (int i = 0; i < s->entries.pages; i++)
        free(s->page[i]);
}

static void vectors_match(pl_kernels *k)
{
    enum { TOP = 12, BLOCK = 4, KEEP = 3 };
    pl_bf16 *q = unit_bf16("index.q.bf16", QUERIES * VHEADS * DIM), *key = unit_bf16("index.k.bf16", KEYS * DIM);
    pl_bf16 *w = unit_bf16("index.w.bf16", QUERIES * VHEADS);
    int32_t *want = unit_i32("index.top12.i32", QUERIES * TOP), *len = unit_i32("cand.len.i32", QUERIES);
    unsigned char *cand = unit_u8("cand.mask.u8", QUERIES * KEYS);
    store s;
    store_open(k, &s, key, KEYS, DIM, 1, QUERIES);
    int32_t list[QUERIES * TOP], count[QUERIES];
    pl_lists lists = {.list = list, .count = count, .stride = TOP};
    ops_launch l;
    launch_start(&l);
    for (int i = 0; i < QUERIES; i++)
        launch_span(&l, i, KEYS - 1, 1);
    k->index_select(k, &lists, TOP, q, w, 1.0f, &s.entries, VHEADS, DIM, NULL, NULL, &l.launch);
    for (int r = 0; r < QUERIES; r++)
        assert_int_equal(count[r], TOP);
    assert_memory_equal(list, want, sizeof list);
    uint64_t mask[QUERIES];
    pl_candidates c = {.mask = mask, .words = 1, .block = BLOCK, .keep = KEEP};
    launch_start(&l);
    for (int i = 0; i < QUERIES; i++)
        launch_span(&l, i, len[i] - 1, 1);
    k->index_select(k, &lists, TOP, q, w, 1.0f, &s.entries, VHEADS, DIM, &c, NULL, &l.launch);
    for (int r = 0; r < QUERIES; r++)
        for (int i = 0; i < KEYS; i++)
            assert_int_equal(mask[r] >> i / BLOCK & 1, cand[r * KEYS + i]);
    store_close(&s);
    free(q), free(key), free(w), free(want), free(len), free(cand);
}

/* The scores themselves, which the table does not hand out: bfloat16 for bfloat16 */
static void scores_match(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    pl_bf16 *q = unit_bf16("index.q.bf16", QUERIES * VHEADS * DIM), *key = unit_bf16("index.k.bf16", KEYS * DIM);
    pl_bf16 *w = unit_bf16("index.w.bf16", QUERIES * VHEADS), *want = unit_bf16("index.score.bf16", QUERIES * KEYS);
    for (int r = 0; r < QUERIES; r++)
        for (int at = 0; at + 16 <= KEYS; at += 16) {
            unsigned char packed[16][DIM / 2 + 1], code[DIM * 16];
            float scale[16], qs[VHEADS], qw[VHEADS];
            int8_t quads[VHEADS * DIM];
            int32_t bias[VHEADS];
            const unsigned char *keys[16];
            for (int i = 0; i < 16; i++) {
                vec->round_q4e8(NULL, packed[i], packed[i] + DIM / 2, key + (at + i) * DIM, DIM);
                keys[i] = packed[i];
            }
            vec->key_tile(code, scale, keys, 1);
            for (int h = 0; h < VHEADS; h++) {
                unsigned char byte, unused[DIM / 2];
                const pl_bf16 *x = q + (r * VHEADS + h) * DIM;
                vec->round_q4e8(NULL, unused, &byte, x, DIM);
                qs[h] = 0.25f * ldexpf(1, byte - 127);
                qw[h] = pl_bf16_to_f32(w[r * VHEADS + h]);
                bias[h] = 0;
                for (int i = 0; i < DIM; i++) {
                    int8_t v = (int8_t)(2 * ldexpf(pl_bf16_to_f32(x[i]), 127 - byte));
                    quads[h * DIM + i / 8 * 8 + (i & 1) * 4 + i % 8 / 2] = v;
                    bias[h] += 12 * v;
                }
            }
            pl__index_query iq = {.code = quads, .bias = bias, .scale = qs, .weight = qw, .heads = VHEADS, .blocks = 1};
            pl_bf16 got[16];
            vec->index_tile(got, &iq, &(pl__key_tile){.code = code, .scale = scale});
            for (int i = 0; i < 16; i++)
                assert_true(pl_bf16_to_f32(got[i]) == pl_bf16_to_f32(want[r * KEYS + at + i]));
        }
    free(q), free(key), free(w), free(want);
}

/* ---- against a sort --------------------------------------------------------------------------------------------- */

static float plain_score(const pl_bf16 *q, const pl_bf16 *w, float w_scale, const pl_bf16 *key, int heads, int dim)
{
    float sum = 0;
    for (int h = 0; h < heads; h++) {
        double dot = 0; /* the tests' scales lie close together: exact, so the order cannot matter */
        for (int i = 0; i < dim; i++)
            dot += (double)pl_bf16_to_f32(q[h * dim + i]) * (double)pl_bf16_to_f32(key[i]);
        float d = pl_bf16_to_f32(pl_bf16_from_f32((float)dot));
        float wh = pl_bf16_to_f32(pl_bf16_from_f32(pl_bf16_to_f32(w[h]) * w_scale));
        sum += pl_bf16_to_f32(pl_bf16_from_f32((d > 0 ? d : 0) * wh));
    }
    return pl_bf16_to_f32(pl_bf16_from_f32(sum));
}

/* ids of the `keep` greatest of v[0..n), -inf ones never, ties to the lower id, ascending; by repeated search */
static int plain_best(int32_t *out, const float *v, int n, int keep)
{
    static unsigned char taken[8192];
    memset(taken, 0, sizeof taken);
    int count = 0;
    for (; count < keep; count++) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!taken[i] && v[i] != -INFINITY && (best < 0 || v[i] > v[best]))
                best = i;
        if (best < 0)
            break;
        taken[best] = 1;
    }
    for (int i = 0, at = 0; i < n; i++)
        if (taken[i])
            out[at++] = i;
    return count;
}

enum { ROWS = 12, MOST = 900 };

static void check_row(const float *score, int n, int topk, const pl_candidates *c, int row, const pl_lists *all,
                      const pl_lists *inside)
{
    static int32_t want[MOST];
    static float block[MOST], masked[MOST];
    int count = plain_best(want, score, n, topk);
    assert_int_equal(all->count[row], count);
    assert_memory_equal(all->list + row * all->stride, want, sizeof *want * (size_t)count);
    int blocks = (n + c->block - 1) / c->block;
    for (int b = 0; b < blocks; b++) {
        block[b] = -INFINITY;
        for (int i = b * c->block; i < n && i < (b + 1) * c->block; i++)
            block[b] = score[i] > block[b] ? score[i] : block[b];
    }
    if (blocks)
        block[blocks - 1] = INFINITY;
    int kept = plain_best(want, block, blocks, c->keep);
    for (int i = 0; i < n; i++)
        masked[i] = -INFINITY;
    for (int b = 0, at = 0; b < c->words * 64; b++) {
        bool in = at < kept && want[at] == b;
        at += in;
        assert_int_equal(c->mask[row * c->words + b / 64] >> b % 64 & 1, in);
        for (int i = b * c->block; in && i < n && i < (b + 1) * c->block; i++)
            masked[i] = score[i];
    }
    count = plain_best(want, masked, n, topk);
    assert_int_equal(inside->count[row], count);
    assert_memory_equal(inside->list + row * inside->stride, want, sizeof *want * (size_t)count);
}

static void sorts_agree(pl_kernels *k)
{
    static pl_bf16 key[MOST * 128], q[ROWS * HEADS * 128], w[ROWS * HEADS];
    static int32_t list[2][ROWS * 128], count[2][ROWS];
    static uint64_t mask[ROWS * 16];
    for (int round = 0; round < 12; round++) {
        int dim = 32 << rng_to(3), heads = 1 + rng_to(HEADS), keys = 1 + rng_to(round < 6 ? 60 : MOST);
        int ratio = 1 + rng_to(2), topk = rng_to(100), step = 1 + rng_to(3);
        /* few distinct values: ties at every cut */
        for (int i = 0; i < keys * dim; i++)
            key[i] = pl_bf16_from_f32((float)(rng_to(5) - 2));
        for (int i = 0; i < ROWS * heads * dim; i++)
            q[i] = pl_bf16_from_f32(round & 1 ? (float)(rng_to(3) - 1) : rng_gauss());
        for (int i = 0; i < ROWS * heads; i++)
            w[i] = pl_bf16_from_f32(rng_gauss());
        k->quant4(k, q, q, ROWS * heads, dim);
        store s;
        store_open(k, &s, key, keys, dim, ratio, 3);
        k->quant4(k, key, key, keys, dim);
        pl_candidates c = {.mask = mask, .words = 16, .block = step, .keep = 1 + rng_to(20)};
        pl_lists all = {list[0], count[0], 128}, inside = {list[1], count[1], 128};
        ops_launch l;
        launch_start(&l);
        int most = keys * ratio - 1, first = most > 5 ? most - 5 : 0;
        launch_span(&l, 1, first, most - first + 1);
        launch_span(&l, 0, 0, 3 < most ? 3 : 1); /* the first rows of a slot see little or nothing */
        launch_span(&l, 2, most / 2, 1);
        k->index_select(k, &all, topk, q, w, 0.25f, &s.entries, heads, dim, &c, NULL, &l.launch);
        k->index_select(k, &inside, topk, q, w, 0.25f, &s.entries, heads, dim, NULL, &c, &l.launch);
        for (int r = 0; r < l.launch.rows; r++) {
            static float score[MOST];
            int n = (l.pos[r] + 1) / ratio;
            for (int i = 0; i < n; i++)
                score[i] = plain_score(q + r * heads * dim, w + r * heads, 0.25f, key + i * dim, heads, dim);
            check_row(score, n, topk, &c, r, &all, &inside);
        }
        store_close(&s);
    }
}

/* A context so long that the scores of few rows fill the scratch: rows come in batches, and nothing shows it. */
static void batches_do_not_show(void **state)
{
    (void)state;
    enum { N = 700, D = 32, H = 2, R = 11, TOP = 20 };
    static pl_bf16 key[N * D], q[R * H * D], w[R * H];
    int32_t list[2][R * TOP], count[2][R];
    uint64_t mask[2][R * 4];
    for (int i = 0; i < N * D; i++)
        key[i] = pl_bf16_from_f32(rng_gauss());
    for (int i = 0; i < R * H * D; i++)
        q[i] = pl_bf16_from_f32(rng_gauss());
    for (int i = 0; i < R * H; i++)
        w[i] = pl_bf16_from_f32(rng_gauss());
    ops_launch l;
    launch_start(&l);
    launch_span(&l, 0, N - 7, 7);
    launch_span(&l, 1, 300, R - 7);
    for (int longer = 0; longer < 2; longer++) {
        pl_kernel_limits limits = ops_limits();
        limits.context = longer ? 9000000 : 1000; /* three rows a batch */
        kit t;
        assert_true(kit_open(&t, "auto", 2, &limits));
        store s;
        store_open(&t.k, &s, key, N, D, 1, 2);
        pl_lists lists = {list[longer], count[longer], TOP};
        pl_candidates c = {.mask = mask[longer], .words = 4, .block = 4, .keep = 30};
        t.k.index_select(&t.k, &lists, TOP, q, w, 1.0f, &s.entries, H, D, &c, NULL, &l.launch);
        t.k.index_select(&t.k, &lists, TOP, q, w, 1.0f, &s.entries, H, D, NULL, &c, &l.launch);
        store_close(&s);
        kit_close(&t);
    }
    assert_memory_equal(count[0], count[1], sizeof count[0]);
    assert_memory_equal(list[0], list[1], sizeof list[0]);
    assert_memory_equal(mask[0], mask[1], sizeof mask[0]);
    assert_int_equal(count[0][0], TOP);
}

static void select_is_a_sort(void **state)
{
    (void)state;
    static uint16_t key[3000];
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + (size_t)rng_to(3000), keep = 1 + (size_t)rng_to((int)n), above = 0, equal = 0;
        unsigned mask = (unsigned[]){0xffff, 0xff00, 0x00ff, 3}[round & 3];
        for (size_t i = 0; i < n; i++)
            key[i] = (uint16_t)(rng() & mask);
        pl__cut cut = pl__select(key, n, keep);
        for (size_t i = 0; i < n; i++)
            above += key[i] > cut.cut, equal += key[i] == cut.cut;
        assert_true(cut.ties >= 1 && cut.ties <= equal && above + cut.ties == keep);
    }
    float before = -INFINITY;
    for (unsigned u = 0; u < 65536; u++) { /* the order of keys is the order of values */
        float v = pl_bf16_to_f32((pl_bf16)u);
        uint16_t o = pl__ordered((pl_bf16)u);
        if (v != v)
            assert_int_equal(o, 0);
        else if (u < 0x8000 && u)
            assert_true(o > pl__ordered((pl_bf16)(u - 1)) && v > before);
        else if (u > 0x8000)
            assert_true(o < pl__ordered((pl_bf16)(u - 1)));
        before = v;
    }
    assert_int_equal(pl__ordered(0x8000), pl__ordered(0));
    assert_int_equal(pl__ordered(0xff80), PL__ORDERED_LOWEST);
    assert_true(pl__ordered(0x7f80) < PL__ORDERED_PIN);
}

static void test_vectors(void **state)
{
    (void)state;
    on_every_isa(vectors_match);
    on_every_isa(scores_match);
}
static void test_sorts(void **state)
{
    (void)state;
    on_every_isa(sorts_agree);
}

int main(void)
{
    rng_start("index_select");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_sorts),
                                       cmocka_unit_test(batches_do_not_show), cmocka_unit_test(select_is_a_sort)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
