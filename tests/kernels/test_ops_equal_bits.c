/* Every operation gives the same bits on every instruction set, for every number of threads, and for rows alone or in
 * company. A case draws shapes and inputs from a seed and appends all it computes to an output; those are compared. */
#include "ops_fixture.h"

typedef struct output {
    unsigned char *data;
    size_t size, room;
} output;

static void emit(output *o, const void *data, size_t bytes)
{
    if (o->size + bytes > o->room) {
        o->room = 2 * (o->size + bytes);
        o->data = realloc(o->data, o->room);
        assert_non_null(o->data);
    }
    memcpy(o->data + o->size, data, bytes);
    o->size += bytes;
}

/* Runs with `alone` make one launch a row (or a span, where rows see one another); the output must not tell. */
typedef void case_fn(pl_kernels *k, bool alone, output *out);

static pl_bf16 *random_bf16(size_t n, float size)
{
    pl_bf16 *x = exact(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = pl_bf16_from_f32(rng_gauss() * size);
    return x;
}
static float *random_f32(size_t n, float size)
{
    float *x = exact(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = rng_gauss() * size;
    return x;
}

static void norms(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(40), dim = 1 + rng_to(700), step = alone ? 1 : rows;
    pl_bf16 *x = random_bf16((size_t)(rows * dim), 3), *g = random_bf16((size_t)dim, 1),
            *y = exact((size_t)(rows * dim) * 2);
    for (int r = 0; r < rows; r += step)
        k->rmsnorm(k, y + r * dim, x + r * dim, g, step, dim, 1e-20f);
    emit(out, y, (size_t)(rows * dim) * 2);
    free(x), free(g), free(y);
}

static void roundings(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(40), dim = 32 * (1 + rng_to(20)), step = alone ? 1 : rows;
    size_t bytes = (size_t)(rows * dim) * 2;
    pl_bf16 *x = random_bf16((size_t)(rows * dim), 1), *y = exact(bytes);
    for (int i = 0; i < rows * dim; i++)
        if (rng_to(50) == 0) /* bits of every kind: denormal, huge, infinite, zero */
            x[i] = (pl_bf16)(rng() & (rng_to(2) ? 0xffff : 0x80ff));
    for (int i = 0; i < rows * dim; i++)
        if ((x[i] & 0x7f80) == 0x7f80)
            x[i] = 0x7f7f;
    for (int r = 0; r < rows; r += step)
        k->quant8(k, y + r * dim, x + r * dim, step, dim);
    emit(out, y, bytes);
    for (int r = 0; r < rows; r += step)
        k->quant4(k, y + r * dim, x + r * dim, step, dim);
    emit(out, y, bytes);
    free(x), free(y);
}

static void rotations(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(20), heads = 1 + rng_to(9), rope_dims = 2 * (1 + rng_to(32)),
        dim = rope_dims + 2 * rng_to(32);
    size_t n = (size_t)(rows * heads * dim);
    pl_bf16 *x = random_bf16(n, 1);
    float *freq = random_f32((size_t)rope_dims / 2, 0.5f);
    int32_t pos[20];
    for (int r = 0; r < rows; r++)
        pos[r] = rng_to(1 << 20);
    pl_rope rope = {.dims = rope_dims, .freq = freq};
    bool inverse = rng_to(2);
    int step = alone ? 1 : rows;
    for (int r = 0; r < rows; r += step)
        k->rope(k, x + r * heads * dim, pos + r, step, heads, dim, &rope, inverse);
    emit(out, x, n * 2);
    free(x), free(freq);
}

static void streams(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(30), s = 1 + rng_to(5), dim = 1 + rng_to(300), coefs = (2 + s) * s, step = alone ? 1 : rows;
    size_t n = (size_t)(rows * s * dim);
    pl_bf16 *h = random_bf16(n, 2), *y = random_bf16((size_t)(rows * dim), 2), *flat = exact((size_t)(rows * dim) * 2);
    float *fn = random_f32((size_t)(coefs * s * dim), 0.1f), *base = random_f32((size_t)coefs, 1);
    float *coef = exact((size_t)(rows * coefs) * 4), scale[3] = {0.7f, 1.1f, 0.4f};
    pl_mat m = {.format = PL_FMT_F32, .out = coefs, .in = s * dim, .data = (unsigned char *)fn};
    for (int r = 0; r < rows; r += step) {
        k->hc_coef(k, coef + r * coefs, h + r * s * dim, &m, scale, base, step, s, dim, 20, 1e-6f, 1e-20f);
        k->collapse(k, flat + r * dim, h + r * s * dim, coef + r * coefs, coefs, step, s, dim);
    }
    emit(out, coef, (size_t)(rows * coefs) * 4);
    emit(out, flat, (size_t)(rows * dim) * 2);
    for (int r = 0; r < rows; r += step) {
        k->expand(k, h + r * s * dim, y + r * dim, coef + r * coefs, step, s, dim);
        k->stream_mean(k, flat + r * dim, (size_t)dim, h + r * s * dim, step, s, dim);
    }
    emit(out, h, n * 2);
    emit(out, flat, (size_t)(rows * dim) * 2);
    free(h), free(y), free(flat), free(fn), free(base), free(coef);
}

static void engram(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(20), s = 1 + rng_to(4), dim = 1 + rng_to(300), step = alone ? 1 : rows;
    size_t n = (size_t)(rows * s * dim);
    pl_bf16 *h = random_bf16(n, 1), *kv = random_bf16((size_t)(rows * (s + 1) * dim), 1);
    pl_bf16 *qw = random_bf16((size_t)(s * dim), 1), *kw = random_bf16((size_t)(s * dim), 1);
    for (int r = 0; r < rows; r += step)
        k->engram_gate(k, h + r * s * dim, kv + r * (s + 1) * dim, qw, kw, NULL, step, s, dim, 1e-20f);
    emit(out, h, n * 2);
    free(h), free(kv), free(qw), free(kw);
}

static void routes(pl_kernels *k, bool alone, output *out)
{
    int rows = 1 + rng_to(30), experts = 8 + rng_to(390), p = 1 + rng_to(8), step = alone ? 1 : rows;
    float *logits = random_f32((size_t)(rows * experts), 4), *bias = random_f32((size_t)experts, 0.1f);
    float *weight = exact((size_t)(rows * p) * 4);
    int32_t *id = exact((size_t)(rows * p) * 4);
    for (int r = 0; r < rows; r += step)
        k->route(k, id + r * p, weight + r * p, logits + r * experts, bias, step, experts, p, true, 1.3f, 1.5f);
    emit(out, id, (size_t)(rows * p) * 4);
    emit(out, weight, (size_t)(rows * p) * 4);
    for (int r = 0; r < rows; r += step)
        k->argmax(k, id + r, logits + r * experts, step, experts);
    emit(out, id, (size_t)rows * 4);
    k->add(k, logits, logits, logits, (size_t)(rows * experts));
    emit(out, logits, (size_t)(rows * experts) * 4);
    free(logits), free(bias), free(weight), free(id);
}

/* ---- sequences: caches written, then read --------------------------------------------------- */

enum { SLOTS = 3, PAGES = 24, PER_PAGE = 8 };

typedef struct sequence {
    int dim, key_dim, ratio, window;
    pl_ring ring, pairs;
    pl_entries entries;
    unsigned char *page[SLOTS * PAGES];
    size_t page_bytes;
    pl_rope rope, key_rope;
    float freq[64];
} sequence;

static void *zeroed(size_t bytes)
{
    return memset(exact(bytes), 0, bytes);
}

static void sequence_open(sequence *q)
{
    *q = (sequence){.dim = 32 * (1 + rng_to(4)), .key_dim = 32 * (1 + rng_to(4)), .ratio = 2, .window = 1 + rng_to(60)};
    q->ring = (pl_ring){.length = q->window + 40, .row_bytes = pl_window_row_bytes(q->dim)};
    q->pairs = (pl_ring){.length = 40, .row_bytes = 8 * (size_t)q->dim};
    q->ring.data = zeroed(SLOTS * (size_t)q->ring.length * q->ring.row_bytes);
    q->pairs.data = zeroed(SLOTS * (size_t)q->pairs.length * q->pairs.row_bytes);
    q->entries = (pl_entries){.page = q->page,
                              .pages = PAGES,
                              .per_page = PER_PAGE,
                              .ratio = q->ratio,
                              .key_offset = PER_PAGE * pl_entry_bytes(q->dim)};
    q->page_bytes = PER_PAGE * (pl_entry_bytes(q->dim) + pl_key_bytes(q->key_dim));
    for (int i = 0; i < SLOTS * PAGES; i++)
        q->page[i] = zeroed(q->page_bytes);
    for (int i = 0; i < 64; i++)
        q->freq[i] = 1.0f / (float)(1 + i);
    q->rope = (pl_rope){.dims = q->dim / 2, .freq = q->freq};
    q->key_rope = (pl_rope){.dims = q->key_dim, .freq = q->freq};
}

static void sequence_close(sequence *q, output *out)
{
    emit(out, q->ring.data, SLOTS * (size_t)q->ring.length * q->ring.row_bytes);
    emit(out, q->pairs.data, SLOTS * (size_t)q->pairs.length * q->pairs.row_bytes);
    for (int i = 0; i < SLOTS * PAGES; i++) {
        emit(out, q->page[i], q->page_bytes);
        free(q->page[i]);
    }
    free(q->ring.data), free(q->pairs.data);
}

/* Everything that a launch stores; its span has an even position and an even number of rows */
static void put_span(pl_kernels *k, sequence *q, const pl_span *span, bool alone)
{
    int dim = q->dim, rows = span->rows, step = alone ? 2 : rows;
    pl_bf16 *kv = random_bf16((size_t)(rows * dim), 1), *lat = exact((size_t)(rows / 2 * dim) * 2);
    pl_bf16 *key = random_bf16((size_t)(rows / 2 * q->key_dim), 1);
    float *value = random_f32((size_t)(rows * dim), 1), *gate = random_f32((size_t)(rows * dim), 2);
    for (int r = 0; r < rows; r += step) {
        ops_launch l;
        int32_t slot[OPS_ROWS], index[OPS_ROWS];
        launch_start(&l);
        launch_span(&l, span->slot, span->pos + r, step);
        for (int g = 0; g < step / 2; g++)
            slot[g] = span->slot, index[g] = (span->pos + r) / 2 + g;
        pl_groups groups = {.count = step / 2, .ratio = 2, .slot = slot, .index = index};
        k->window_put(k, &q->ring, kv + r * dim, dim, &l.launch);
        k->pair_put(k, &q->pairs, value + r * dim, gate + r * dim, dim, &l.launch);
        k->pair_latent(k, lat + r / 2 * dim, &q->pairs, dim, &groups);
        k->entry_put(k, &q->entries, lat + r / 2 * dim, dim, &q->rope, &groups);
        k->key_put(k, &q->entries, key + r / 2 * q->key_dim, q->key_dim, &q->key_rope, &groups);
    }
    free(kv), free(lat), free(key), free(value), free(gate);
}

/* Every slot from its start to an even length below PAGES * PER_PAGE * 2 tokens */
static void fill(pl_kernels *k, sequence *q, int *len, bool alone)
{
    for (int s = 0; s < SLOTS; s++) {
        int want = 2 * (10 + rng_to(PAGES * PER_PAGE - 10));
        for (len[s] = 0; len[s] < want;) {
            int rows = 2 * (1 + rng_to(18));
            pl_span span = {s, len[s], want - len[s] < rows ? want - len[s] : rows};
            put_span(k, q, &span, alone);
            len[s] += span.rows;
        }
    }
}

static void attend(pl_kernels *k, const sequence *q, ops_launch *l, const pl_lists *lists, bool alone, output *out)
{
    int heads = 1 + rng_to(16), rows = l->launch.rows;
    size_t row = (size_t)(heads * q->dim);
    pl_bf16 *x = random_bf16((size_t)rows * row, 1), *o = exact((size_t)rows * row * 2);
    float *sink = random_f32((size_t)heads, 1);
    for (int r = 0; r < rows && alone; r++) {
        ops_launch one;
        launch_start(&one);
        launch_span(&one, l->slot[r], l->pos[r], 1);
        pl_lists list = {lists->list + r * lists->stride, lists->count + r, lists->stride};
        k->attention(k, o + (size_t)r * row, x + (size_t)r * row, &q->ring, q->window, &q->entries, &list, sink, heads,
                     q->dim, 0.2f, &one.launch);
    }
    if (!alone)
        k->attention(k, o, x, &q->ring, q->window, &q->entries, lists, sink, heads, q->dim, 0.2f, &l->launch);
    emit(out, o, (size_t)rows * row * 2);
    free(x), free(o), free(sink);
}

typedef struct asking {
    int heads, topk;
    pl_bf16 *x, *w;
    pl_candidates publish;
} asking;

/* Selection of rows from..from+n-1, all entries first, then inside the candidates just published */
static void choose(pl_kernels *k, const sequence *q, const asking *a, const pl_lists *all, const pl_lists *inside,
                   int from, const pl_launch *l)
{
    pl_candidates c = a->publish;
    c.mask += from * c.words;
    pl_lists one = {all->list + from * all->stride, all->count + from, all->stride};
    pl_lists two = {inside->list + from * inside->stride, inside->count + from, inside->stride};
    const pl_bf16 *x = a->x + from * a->heads * q->key_dim, *w = a->w + from * a->heads;
    k->index_select(k, &one, a->topk, x, w, 0.25f, &q->entries, a->heads, q->key_dim, &c, NULL, l);
    k->index_select(k, &two, a->topk, x, w, 0.25f, &q->entries, a->heads, q->key_dim, NULL, &c, l);
}

static void sequences(pl_kernels *k, bool alone, output *out)
{
    enum { STRIDE = 128, WORDS = 3 };
    static int32_t list[2][OPS_ROWS * STRIDE], count[2][OPS_ROWS];
    static uint64_t mask[OPS_ROWS * WORDS];
    sequence q;
    ops_launch l;
    int len[SLOTS];
    sequence_open(&q);
    fill(k, &q, len, alone);
    launch_start(&l);
    for (int s = SLOTS - 1; s >= 0; s--) {
        int rows = 1 + rng_to(rng_to(2) ? 20 : 6);
        rows = rows > len[s] ? len[s] : rows;
        launch_span(&l, s, len[s] - rows, rows);
    }
    int rows = l.launch.rows;
    asking a = {.heads = 1 + rng_to(8), .topk = 1 + rng_to(STRIDE)};
    a.x = random_bf16((size_t)(rows * a.heads * q.key_dim), 1), a.w = random_bf16((size_t)(rows * a.heads), 1);
    a.publish = (pl_candidates){.mask = mask, .words = WORDS, .block = 1 + rng_to(6), .keep = 1 + rng_to(30)};
    k->quant4(k, a.x, a.x, rows * a.heads, q.key_dim);
    pl_lists all = {list[0], count[0], STRIDE}, inside = {list[1], count[1], STRIDE};
    memset(list, 0, sizeof list), memset(count, 0, sizeof count), memset(mask, 0, sizeof mask);
    if (!alone)
        choose(k, &q, &a, &all, &inside, 0, &l.launch);
    for (int r = 0; r < rows && alone; r++) {
        ops_launch one;
        launch_start(&one);
        launch_span(&one, l.slot[r], l.pos[r], 1);
        choose(k, &q, &a, &all, &inside, r, &one.launch);
    }
    for (int i = 0; i < 2; i++) {
        emit(out, count[i], sizeof *count[i] * (size_t)rows);
        for (int r = 0; r < rows; r++)
            emit(out, list[i] + r * STRIDE, sizeof **list * (size_t)count[i][r]);
    }
    emit(out, mask, sizeof *mask * (size_t)(rows * WORDS));
    attend(k, &q, &l, &all, alone, out);
    attend(k, &q, &l, &inside, alone, out);
    free(a.x), free(a.w);
    sequence_close(&q, out);
}

static void blocks(pl_kernels *k, bool alone, output *out)
{
    sequence q;
    int len[SLOTS], heads = 1 + rng_to(16), n = 1 + rng_to(8);
    sequence_open(&q);
    fill(k, &q, len, alone);
    size_t row = (size_t)(heads * q.dim), rows = (size_t)(SLOTS * n);
    pl_bf16 *x = random_bf16(rows * row, 1), *o = exact(rows * row * 2), *kv = random_bf16(rows * (size_t)q.dim, 1);
    float *sink = random_f32((size_t)heads, 1);
    k->quant8(k, kv, kv, (int)rows, q.dim);
    ops_launch l;
    launch_start(&l);
    for (int s = 0; s < SLOTS; s++) {
        size_t at = alone ? (size_t)(s * n) : 0;
        if (alone)
            launch_start(&l);
        launch_span(&l, s, len[s], n);
        if (alone || s == SLOTS - 1)
            k->block_attention(k, o + at * row, x + at * row, &q.ring, q.window, kv + at * (size_t)q.dim, sink, heads,
                               q.dim, 0.2f, &l.launch);
    }
    emit(out, o, rows * row * 2);
    free(x), free(o), free(kv), free(sink);
    sequence_close(&q, out);
}

static void hold(const char *name, case_fn *fn, int rounds)
{
    pl_kernel_limits limits = ops_limits();
    uint64_t start = rng_state;
    output want = {0}, got = {0};
    kit base;
    assert_true(kit_open(&base, "scalar", 1, &limits));
    for (int round = 0; round < rounds; round++)
        fn(&base.k, false, &want);
    kit_close(&base);
    for (int i = 0; i < KIT_ISAS; i++)
        for (int threads = 1; threads <= 9; threads += threads < 3 ? 1 : 6) /* 9: few rows come in two batches */
            for (int alone = 0; alone < 2; alone++) {
                kit t;
                if (!kit_open(&t, kit_isas[i], threads, &limits))
                    continue;
                rng_state = start;
                got.size = 0;
                for (int round = 0; round < rounds; round++)
                    fn(&t.k, alone, &got);
                kit_close(&t);
                if (got.size != want.size || memcmp(got.data, want.data, got.size) != 0)
                    fail_msg("%s: %s, %d threads, rows %s: other bits", name, kit_isas[i], threads,
                             alone ? "alone" : "together");
            }
    uint64_t sum = 0xcbf29ce484222325u; /* so that machines can be compared by eye, given a seed */
    for (size_t i = 0; i < want.size; i++)
        sum = (sum ^ want.data[i]) * 0x100000001b3u;
    print_message("%s: %zu bytes are the same everywhere, %016llx\n", name, want.size, (unsigned long long)sum);
    free(want.data), free(got.data);
}

#define HOLD(fn, rounds)                                                                                               \
    static void test_##fn(void **state)                                                                                \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        hold(#fn, fn, rounds);                                                                                         \
    }
HOLD(norms, 6)
HOLD(roundings, 6)
HOLD(rotations, 6)
HOLD(streams, 6)
HOLD(engram, 6)
HOLD(routes, 6)
HOLD(sequences, 4)
HOLD(blocks, 3)

int main(void)
{
    rng_start("ops_equal_bits");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norms),     cmocka_unit_test(test_roundings),
                                       cmocka_unit_test(test_rotations), cmocka_unit_test(test_streams),
                                       cmocka_unit_test(test_engram),    cmocka_unit_test(test_routes),
                                       cmocka_unit_test(test_sequences), cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
