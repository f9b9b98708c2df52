/* Attention: the reference's plain softmax, then lists, windows and blocks against a plain loop. */
#include "base/mathfn.h"
#include "ops_fixture.h"

/* One block or four of list slots; -1 = none. The vectors' keys are no packed rows, so the row's inner functions are
 * asked. */
static void vectors_match(pl_kernels *k, const char *name, int rows, int entries, int slots)
{
    enum { H = 8, D = 128 };
    const pl__vec *vec = pl__cpu_of(k)->vec;
    char path[64];
#define NAMED(what) (snprintf(path, sizeof path, "%s." what, name), path)
    pl_bf16 *q = unit_bf16(NAMED("q.bf16"), rows * H * D), *kv = unit_bf16(NAMED("kv.bf16"), entries * D);
    pl_bf16 *want = unit_bf16(NAMED("o_twopass.bf16"), rows * H * D);
    float *sink = unit_f32(NAMED("sink.f32"), H);
    int32_t *idx = unit_i32(NAMED("idx.i32"), rows * slots);
    float *list = exact(sizeof *list * (size_t)slots * D), *s = exact(sizeof *s * (size_t)slots * H), den[H], qf[H * D];
    pl_bf16 *got = exact(sizeof *got * (size_t)rows * H * D);
    for (int r = 0; r < rows; r++) {
        int n = 0;
        for (int i = 0; i < slots; i++)
            if (idx[r * slots + i] >= 0)
                vec->widen(list + (size_t)n++ * D, kv + (size_t)idx[r * slots + i] * D, D);
        vec->widen(qf, q + r * H * D, H * D);
        vec->scores(s, (size_t)slots, qf, H, list, n, D, 0.08838834764831845f);
        vec->softmax(s, (size_t)slots, H, n, sink, den);
        vec->values(got + r * H * D, s, (size_t)slots, den, H, list, n, D);
    }
    bf_diff d = bf_compare(got, want, rows * H * D);
    print_message("%s: %s: %d of %d differ, by %d at most\n", k->name, name, d.differ, rows * H * D, d.worst);
    assert_int_equal(d.differ, 0);
    free(q), free(kv), free(want), free(sink), free(idx), free(list), free(s), free(got);
}

static void both_match(pl_kernels *k)
{
    vectors_match(k, "attn1", 5, 64, 40);
    vectors_match(k, "attn2", 4, 300, 200);
}

/* ---- a plain loop over the list, written from the contract ------------------------------------------------------ */

static float dot16(const pl_bf16 *a, const float *b, int n)
{
    float acc[16] = {0};
    for (int i = 0; i < n; i++)
        acc[i % 16] = fmaf(pl_bf16_to_f32(a[i]), b[i], acc[i % 16]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            acc[i] += acc[i + half];
    return acc[0];
}

static void plain_head(pl_bf16 *o, const pl_bf16 *q, const float *list, int n, int dim, float scale, float sink)
{
    float s[512], top = -1e30f, den = 0;
    for (int j = 0; j < n; j++) {
        s[j] = dot16(q, list + j * dim, dim) * scale;
        top = s[j] > top ? s[j] : top;
    }
    for (int j = 0; j < n; j++) {
        s[j] = pl_expf(s[j] - top);
        den += s[j];
        s[j] = pl_bf16_to_f32(pl_bf16_from_f32(s[j]));
    }
    den += pl_expf(sink - top);
    for (int c = 0; c < dim; c++) {
        float num = 0;
        for (int j = 0; j < n; j++)
            num = fmaf(s[j], list[j * dim + c], num);
        o[c] = pl_bf16_from_f32(num / den);
    }
}

/* ---- a random state: rings of window rows, pages of entries, in known values ------------------------------------ */

enum { HEADS = 6, DIM = 64, WINDOW = 20, RING = 36, SLOTS = 3, TOKENS = 90, PER_PAGE = 7, TOPK = 40, BLOCK = 5 };

typedef struct world {
    float window[SLOTS][TOKENS][DIM], entry[SLOTS][TOKENS][DIM];
    pl_bf16 kv[SLOTS][TOKENS][DIM];
    pl_ring ring;
    pl_entries entries;
    unsigned char *page[SLOTS * 16];
    float sink[HEADS];
} world;

static void random_row(pl_bf16 *x, int n)
{
    float size = expf(rng_gauss());
    for (int i = 0; i < n; i++)
        x[i] = pl_bf16_from_f32(rng_gauss() * size);
}

static void world_open(pl_kernels *k, world *w)
{
    pl_error err;
    memset(w, 0, sizeof *w);
    w->ring = (pl_ring){.length = RING, .row_bytes = pl_window_row_bytes(DIM)};
    void *p;
    assert_int_equal(k->reserve(k, SLOTS * RING * w->ring.row_bytes, "ring", &p, &err), PL_OK);
    w->ring.data = p;
    w->entries = (pl_entries){.page = w->page, .pages = 16, .per_page = PER_PAGE, .ratio = 1, .entry_offset = 5};
    for (int i = 0; i < SLOTS * 16; i++) {
        assert_int_equal(k->reserve(k, 5 + PER_PAGE * pl_entry_bytes(DIM), "page", &p, &err), PL_OK);
        w->page[i] = p;
    }
    float zero[DIM / 2] = {0};
    pl_rope still = {.dims = DIM, .freq = zero};
    for (int s = 0; s < SLOTS; s++)
        for (int t = 0; t < TOKENS; t++) {
            pl_bf16 x[DIM], y[DIM];
            int32_t slot = s, index = t;
            random_row(w->kv[s][t], DIM);
            k->quant8(k, y, w->kv[s][t], 1, DIM);
            for (int c = 0; c < DIM; c++)
                w->window[s][t][c] = pl_bf16_to_f32(y[c]);
            random_row(x, DIM);
            pl_groups g = {.count = 1, .ratio = 1, .slot = &slot, .index = &index};
            k->entry_put(k, &w->entries, x, DIM, &still, &g);
            pl__cpu_of(k)->vec->round_q4e4(y, NULL, NULL, x, DIM);
            for (int c = 0; c < DIM; c++)
                w->entry[s][t][c] = pl_bf16_to_f32(y[c]);
        }
    for (int h = 0; h < HEADS; h++)
        w->sink[h] = rng_gauss();
}

/* Store the positions below `to` of a slot into the ring, as prefill would */
static void fill_ring(pl_kernels *k, world *w, int slot, int to)
{
    ops_launch l;
    for (int at = 0; at < to; at += OPS_ROWS) {
        launch_start(&l);
        launch_span(&l, slot, at, to - at < OPS_ROWS ? to - at : OPS_ROWS);
        k->window_put(k, &w->ring, w->kv[slot][at], DIM, &l.launch);
    }
}

static void check_row(const world *w, const pl_bf16 *got, const pl_bf16 *q, int slot, int pos, const int32_t *list,
                      int count)
{
    static float values[512 * DIM];
    int n = 0;
    for (int p = pos - WINDOW + 1 > 0 ? pos - WINDOW + 1 : 0; p <= pos; p++)
        memcpy(values + DIM * n++, w->window[slot][p], sizeof w->window[0][0]);
    for (int i = 0; i < count; i++)
        memcpy(values + DIM * n++, w->entry[slot][list[i]], sizeof w->entry[0][0]);
    for (int h = 0; h < HEADS; h++) {
        pl_bf16 want[DIM];
        plain_head(want, q + h * DIM, values, n, DIM, 0.125f, w->sink[h]);
        assert_memory_equal(got + h * DIM, want, sizeof want);
    }
}

static void lists_agree(pl_kernels *k)
{
    static world w;
    static pl_bf16 q[OPS_ROWS * HEADS * DIM], o[OPS_ROWS * HEADS * DIM];
    static int32_t list[OPS_ROWS * TOPK], count[OPS_ROWS];
    world_open(k, &w);
    pl_lists lists = {.list = list, .count = count, .stride = TOPK};
    for (int round = 0; round < 6; round++) {
        ops_launch l;
        launch_start(&l);
        for (int s = 0; s < SLOTS; s++) {
            int rows = 1 + rng_to(round % 2 ? 16 : 2), pos = rng_to(TOKENS - 16);
            if (round == 2)
                pos = 0, rows = 1;
            fill_ring(k, &w, s, pos + rows);
            launch_span(&l, s, pos, rows);
        }
        random_row(q, l.launch.rows * HEADS * DIM);
        for (int r = 0; r < l.launch.rows; r++) {
            count[r] = 0;
            for (int e = 0; e <= l.pos[r] && count[r] < TOPK; e++)
                if (rng_to(3) == 0)
                    list[r * TOPK + count[r]++] = e;
        }
        k->attention(k, o, q, &w.ring, WINDOW, &w.entries, &lists, w.sink, HEADS, DIM, 0.125f, &l.launch);
        for (int r = 0; r < l.launch.rows; r++)
            check_row(&w, o + r * HEADS * DIM, q + r * HEADS * DIM, l.slot[r], l.pos[r], list + r * TOPK, count[r]);
        k->attention(k, o, q, &w.ring, WINDOW, NULL, NULL, w.sink, HEADS, DIM, 0.125f, &l.launch);
        for (int r = 0; r < l.launch.rows; r++)
            check_row(&w, o + r * HEADS * DIM, q + r * HEADS * DIM, l.slot[r], l.pos[r], NULL, 0);
    }
}

/* The drafter's rows see the window before their span and all of their own span, later rows too. */
static void blocks_agree(pl_kernels *k)
{
    static world w;
    static float values[512 * DIM];
    pl_bf16 q[2 * BLOCK * HEADS * DIM], o[2 * BLOCK * HEADS * DIM], kv[2 * BLOCK * DIM];
    world_open(k, &w);
    for (int start = 0; start < 60; start = start * 2 + 1) {
        ops_launch l;
        launch_start(&l);
        launch_span(&l, 2, start, BLOCK);
        launch_span(&l, 0, 50, BLOCK);
        fill_ring(k, &w, 2, start);
        fill_ring(k, &w, 0, 50);
        random_row(q, 2 * BLOCK * HEADS * DIM);
        random_row(kv, 2 * BLOCK * DIM);
        k->quant8(k, kv, kv, 2 * BLOCK, DIM);
        k->block_attention(k, o, q, &w.ring, WINDOW, kv, w.sink, HEADS, DIM, 0.125f, &l.launch);
        for (int r = 0; r < 2 * BLOCK; r++) {
            int slot = r < BLOCK ? 2 : 0, first = r < BLOCK ? start : 50, n = 0;
            for (int p = first - WINDOW > 0 ? first - WINDOW : 0; p < first; p++)
                memcpy(values + DIM * n++, w.window[slot][p], sizeof w.window[0][0]);
            for (int i = 0; i < BLOCK; i++, n++)
                for (int c = 0; c < DIM; c++)
                    values[n * DIM + c] = pl_bf16_to_f32(kv[(r / BLOCK * BLOCK + i) * DIM + c]);
            for (int h = 0; h < HEADS; h++) {
                pl_bf16 want[DIM];
                plain_head(want, q + (r * HEADS + h) * DIM, values, n, DIM, 0.125f, w.sink[h]);
                assert_memory_equal(o + (r * HEADS + h) * DIM, want, sizeof want);
            }
        }
    }
}

static void test_vectors(void **state)
{
    (void)state;
    on_every_isa(both_match);
}
static void test_lists(void **state)
{
    (void)state;
    on_every_isa(lists_agree);
}
static void test_blocks(void **state)
{
    (void)state;
    on_every_isa(blocks_agree);
}

int main(void)
{
    rng_start("attention");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors), cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
