/* Hyper-connections, embedding and stream mixing against the reference's unit vectors and plain loops. */
#include "ops_fixture.h"

enum { S = 4, COEFS = (2 + S) * S, ITERS = 20 };
static const float EPS = 1e-6f;

static void sinkhorn_matches(pl_kernels *k)
{
    enum { ROWS = 65 };
    float *mix = unit_f32("sinkhorn.mix.f32", ROWS * COEFS), *scale = unit_f32("sinkhorn.scale.f32", 3);
    float *base = unit_f32("sinkhorn.base.f32", COEFS), *pre = unit_f32("sinkhorn.pre.f32", ROWS * S);
    float *post = unit_f32("sinkhorn.post.f32", ROWS * S), *comb = unit_f32("sinkhorn.comb.f32", ROWS * S * S);
    float worst = 0;
    for (int r = 0; r < ROWS; r++) {
        float *m = mix + r * COEFS;
        pl__hc_finish(pl__cpu_of(k)->math, m, 1.0f, scale, base, S, ITERS, EPS);
        float e = fmaxf(f32_worst(m, pre + r * S, S), f32_worst(m + S, post + r * S, S));
        worst = fmaxf(worst, fmaxf(e, f32_worst(m + 2 * S, comb + r * S * S, S * S)));
    }
    print_message("%s: sinkhorn: largest difference %.3g\n", k->name, (double)worst);
    assert_true(worst <= 5e-7f); /* last places of exp and of sums of four */
    free(mix), free(scale), free(base), free(pre), free(post), free(comb);
}

static void coefficients_match(pl_kernels *k)
{
    enum { ROWS = 9, DIM = 96 };
    pl_bf16 *h = unit_bf16("hc.h.bf16", ROWS * S * DIM), *y = unit_bf16("hc.y.bf16", ROWS * DIM);
    pl_bf16 *flat = unit_bf16("hc.collapse.bf16", ROWS * DIM), *wide = unit_bf16("hc.expand.bf16", ROWS * S * DIM);
    float *fn = unit_f32("hc.fn.f32", COEFS * S * DIM), *want = unit_f32("hc.coef.f32", ROWS * COEFS);
    float *scale = unit_f32("sinkhorn.scale.f32", 3), *base = unit_f32("sinkhorn.base.f32", COEFS);
    float coef[ROWS * COEFS];
    pl_bf16 got[ROWS * DIM];
    pl_mat m = {.format = PL_FMT_F32, .out = COEFS, .in = S * DIM, .data = (unsigned char *)fn};
    k->hc_coef(k, coef, h, &m, scale, base, ROWS, S, DIM, ITERS, EPS, 1e-20f);
    float worst = f32_worst(coef, want, ROWS * COEFS);
    k->collapse(k, got, h, want, COEFS, ROWS, S, DIM);
    bf_diff c = bf_compare(got, flat, ROWS * DIM);
    k->expand(k, h, y, want, ROWS, S, DIM);
    bf_diff e = bf_compare(h, wide, ROWS * S * DIM);
    print_message("%s: coefficients: largest difference %.3g; collapse: %d of %d differ, expand: %d of %d\n", k->name,
                  (double)worst, c.differ, ROWS * DIM, e.differ, ROWS * S * DIM);
    assert_true(worst <= 2e-6f);
    assert_true(c.differ == 0 && e.differ == 0);
    free(h), free(y), free(flat), free(wide), free(fn), free(want), free(scale), free(base);
}

static void embedding_copies(pl_kernels *k)
{
    enum { VOCAB = 50, DIM = 24, ROWS = 5 };
    pl_mat e = mat_make(PL_FMT_BF16, VOCAB, DIM, 0, 0, false);
    const pl_bf16 *table = (const pl_bf16 *)(const void *)e.data;
    pl_bf16 h[ROWS * S * DIM], y[ROWS * DIM];
    float pre[ROWS * S];
    int32_t token[ROWS] = {49, 0, 7, 7, 31};
    k->embed(k, h, pre, &e, token, ROWS, S);
    k->gather(k, y, &e, token, ROWS);
    for (int r = 0; r < ROWS; r++) {
        assert_memory_equal(y + r * DIM, table + token[r] * DIM, DIM * sizeof *y);
        for (int j = 0; j < S; j++) {
            assert_memory_equal(h + (r * S + j) * DIM, table + token[r] * DIM, DIM * sizeof *h);
            assert_true(pre[r * S + j] == (j == 0 ? 1.0f : 0.0f));
        }
    }
    mat_free(&e);
}

/* Mean, sum, arg-max: against plain loops, ends of every length */
static void loops_agree(pl_kernels *k)
{
    for (int dim = 1; dim < 40; dim++) {
        pl_bf16 h[3 * 40 * 2], y[2 * 50];
        for (int i = 0; i < 2 * 3 * dim; i++)
            h[i] = pl_bf16_from_f32(rng_gauss());
        k->stream_mean(k, y, 50, h, 2, 3, dim);
        for (int r = 0; r < 2; r++)
            for (int d = 0; d < dim; d++) {
                float v[3];
                for (int j = 0; j < 3; j++)
                    v[j] = pl_bf16_to_f32(h[(r * 3 + j) * dim + d]);
                assert_int_equal(y[r * 50 + d], pl_bf16_from_f32((v[0] + v[1] + v[2]) / 3.0f));
            }
        float a[40], b[40], s[40];
        int best = 0;
        for (int i = 0; i < dim; i++) {
            a[i] = (float)rng_to(9), b[i] = rng_gauss();
            best = a[i] > a[best] ? i : best;
        }
        int32_t id;
        k->argmax(k, &id, a, 1, dim);
        assert_int_equal(id, best);
        k->add(k, s, a, b, (size_t)dim);
        for (int i = 0; i < dim; i++)
            assert_true(s[i] == a[i] + b[i]);
    }
}

/* Not a number is no maximum, a row without a number has arg-max 0, and -0 is not above +0 */
static void argmax_is_total(pl_kernels *k)
{
    float x[40];
    int32_t id;
    for (int at = 0; at < 40; at++) {
        for (int i = 0; i < 40; i++)
            x[i] = i == at ? -1e30f : NAN;
        k->argmax(k, &id, x, 1, 40);
        assert_int_equal(id, at);
    }
    for (int i = 0; i < 40; i++)
        x[i] = NAN;
    k->argmax(k, &id, x, 1, 40);
    assert_int_equal(id, 0);
    for (int i = 0; i < 40; i++)
        x[i] = i < 20 ? -0.0f : 0.0f;
    k->argmax(k, &id, x, 1, 40);
    assert_int_equal(id, 0);
    for (int i = 0; i < 40; i++)
        x[i] = -INFINITY;
    k->argmax(k, &id, x, 1, 40);
    assert_int_equal(id, 0);
}

static void test_sinkhorn(void **state)
{
    (void)state;
    on_every_isa(sinkhorn_matches);
}
static void test_coefficients(void **state)
{
    (void)state;
    on_every_isa(coefficients_match);
}
static void test_embedding(void **state)
{
    (void)state;
    on_every_isa(embedding_copies);
}
static void test_loops(void **state)
{
    (void)state;
    on_every_isa(loops_agree);
    on_every_isa(argmax_is_total);
}

int main(void)
{
    rng_start("streams");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sinkhorn), cmocka_unit_test(test_coefficients),
                                       cmocka_unit_test(test_embedding), cmocka_unit_test(test_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
