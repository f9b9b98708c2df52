/* Figures of streams whose times are known. */
#include "base/check.h"
#include "bench/figures.h"

#include <math.h>

/* A complete, verified reply of `tokens` in `pieces`, the first `from` ms after 0, one every `step` ms. */
static void make(pl_bench_reply *r, int64_t tokens, int pieces, int64_t from, int64_t step)
{
    pl_bench_reply_init(r);
    r->whole = r->done = r->ended = true;
    r->tokens = tokens;
    snprintf(r->finish_reason, sizeof r->finish_reason, "length");
    snprintf(r->token_sha, sizeof r->token_sha, "0123456789ab");
    r->piece = calloc((size_t)pieces + 1, sizeof *r->piece);
    r->pieces = (size_t)pieces;
    for (int i = 0; i < pieces; i++)
        r->piece[i] = (from + i * step) * 1000000;
}

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9 * fabs(b));
}

static void two_streams(void **state)
{
    (void)state;
    pl_bench_reply *r = calloc(2, sizeof *r);
    pl_bench_figures f;
    make(&r[0], 11, 11, 100, 100); /* 0.1 to 1.1 s: 10 a second */
    make(&r[1], 11, 11, 600, 50);  /* 0.6 to 1.1 s: 20 a second */
    pl_bench_figures_of(&f, r, 2);
    near(f.aggregate, 20 / 1.0);
    near(f.per_stream, 15);
    near(f.steady, 15 / 0.5); /* 0.6 to 1.1 s: 5 and 10 pieces, a token each */
    near(f.ttft_max, 0.6);
    near(f.ttft_mean, 0.35);
    assert_int_equal(f.failed + f.unmeasured + f.unverified, 0);
    for (int i = 0; i < 2; i++)
        pl_bench_reply_free(&r[i]);
    free(r);
}

static void a_stream_that_fails_leaves_no_total(void **state)
{
    (void)state;
    pl_bench_reply *r = calloc(4, sizeof *r);
    pl_bench_figures f;
    make(&r[0], 11, 11, 100, 100);
    make(&r[1], 11, 11, 100, 100);
    r[1].done = false;            /* incomplete */
    make(&r[2], 11, 3, 100, 100); /* too few pieces */
    make(&r[3], 11, 11, 100, 100);
    r[3].token_sha[0] = '\0'; /* no hash */
    pl_bench_figures_of(&f, r, 4);
    assert_true(isnan(f.aggregate));
    assert_true(isnan(f.steady));
    near(f.per_stream, 10);
    assert_int_equal(f.failed, 1);
    assert_int_equal(f.unmeasured, 1);
    assert_int_equal(f.unverified, 2);
    for (int i = 0; i < 4; i++)
        pl_bench_reply_free(&r[i]);
    free(r);
}

static void means(void **state)
{
    (void)state;
    double v[] = {3, NAN, 1, 8}, none[] = {NAN};
    near(pl_bench_mean(v, 4), 4);
    near(pl_bench_median(v, 4), 3);
    near(pl_bench_median((double[]){4, 1, 2, 3}, 4), 2.5);
    assert_true(isnan(pl_bench_mean(none, 1)));
    assert_true(isnan(pl_bench_median(none, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_streams),
        cmocka_unit_test(a_stream_that_fails_leaves_no_total),
        cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
