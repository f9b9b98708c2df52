/* The distribution of draws: chi-square over 200,000 of them against the softmax that the settings describe, across
 * positions and across seeds; independence of neighbours; the tails of the noise. Fixed keys: nothing is left to luck
 * and a failure is a fault. */
#include "model/sampler_kit.h"

enum { DRAWS = 200000, VOCAB = 300 };

/* The value that chi-square with df degrees of freedom passes with probability 1 - 1e-4 (Wilson and Hilferty). */
static double chi_square_limit(int df)
{
    double a = 2.0 / (9.0 * df), z = 3.719;
    double b = 1 - a + z * sqrt(a);
    return df * b * b * b;
}

/* Compare counts with expected probabilities; tokens that expect fewer than five share one cell. */
static void check_counts(const char *what, const int *count, const double *p, int n, int draws)
{
    double chi = 0, rest_p = 0;
    int cells = 0, rest = 0;
    for (int i = 0; i < n; i++) {
        double expect = p[i] * draws;
        if (p[i] == 0) {
            assert_int_equal(count[i], 0);
        } else if (expect < 5) {
            rest_p += expect;
            rest += count[i];
        } else {
            chi += (count[i] - expect) * (count[i] - expect) / expect;
            cells++;
        }
    }
    if (rest_p >= 5) {
        chi += (rest - rest_p) * (rest - rest_p) / rest_p;
        cells++;
    }
    print_message("%s: chi-square %.1f over %d cells, limit %.1f\n", what, chi, cells, chi_square_limit(cells - 1));
    assert_true(cells > 5);
    assert_true(chi < chi_square_limit(cells - 1));
}

/* Logits with a wide nucleus: no token above 3 %, hundreds that matter, a tail of rare ones. */
static void wide_row(float *x, int n)
{
    uint64_t h = 12345;
    for (int i = 0; i < n; i++) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)((double)(h >> 40) * 0x1p-24 * 5.0);
    }
    for (int i = 0; i < 40; i++)
        x[i * 7] -= 9;
}

static void softmax(double *p, const float *x, int n, const pl_sampling *set)
{
    static kit_item item[VOCAB];
    bool close;
    int kept = kit_filter(item, x, n, set, &close);
    double sum = 0;
    assert_false(close);
    for (int i = 0; i < n; i++)
        p[i] = 0;
    for (int i = 0; i < kept; i++)
        sum += p[item[i].id] = exp((item[i].x - item[0].x) / (double)set->temperature);
    for (int i = 0; i < n; i++)
        p[i] /= sum;
}

static void settings_give_their_distribution(void **state)
{
    (void)state;
    float x[VOCAB];
    double p[VOCAB];
    static int count[VOCAB];
    const struct {
        const char *name;
        pl_sampling set;
    } cases[] = {
        {"temperature 1", {.temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 1}},
        {"temperature 0.7", {.temperature = 0.7f, .top_p = 1, .repetition_penalty = 1, .seed = 2}},
        {"temperature 1.8", {.temperature = 1.8f, .top_p = 1, .repetition_penalty = 1, .seed = 3}},
        {"top-k 50", {.temperature = 1, .top_k = 50, .top_p = 1, .repetition_penalty = 1, .seed = 4}},
        {"top-p 0.9", {.temperature = 1, .top_p = 0.9f, .repetition_penalty = 1, .seed = 5}},
        {"min-p 0.1", {.temperature = 1, .top_p = 1, .min_p = 0.1f, .repetition_penalty = 1, .seed = 6}},
        {"all three, temperature 1.3",
         {.temperature = 1.3f, .top_k = 300, .top_p = 0.85f, .min_p = 0.05f, .repetition_penalty = 1, .seed = 7}},
    };
    wide_row(x, VOCAB);
    pl_sampler *s = kit_sampler(VOCAB, "auto");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        memset(count, 0, sizeof count);
        softmax(p, x, VOCAB, &cases[c].set);
        for (int64_t position = 0; position < DRAWS; position++) {
            pl_draw d = {.logits = x, .position = position, .sampling = &cases[c].set};
            count[pl_draw_token(s, &d)]++;
        }
        check_counts(cases[c].name, count, p, VOCAB, DRAWS);
    }
    pl_sampler_close(s);
}

static void seeds_give_it_as_positions_do(void **state)
{
    (void)state;
    float x[VOCAB];
    double p[VOCAB];
    static int count[VOCAB];
    pl_sampling set = kit_plain();
    wide_row(x, VOCAB);
    softmax(p, x, VOCAB, &set);
    memset(count, 0, sizeof count);
    pl_sampler *s = kit_sampler(VOCAB, "auto");
    for (uint64_t seed = 0; seed < DRAWS; seed++) { /* choice i of n draws with seed + i */
        set.seed = seed;
        pl_draw d = {.logits = x, .position = 77, .sampling = &set};
        count[pl_draw_token(s, &d)]++;
    }
    check_counts("consecutive seeds", count, p, VOCAB, DRAWS);
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < DRAWS; i++) { /* seed and position move against each other */
        set.seed = 1000000 - (uint64_t)i;
        pl_draw d = {.logits = x, .position = i, .sampling = &set};
        count[pl_draw_token(s, &d)]++;
    }
    check_counts("seed and position", count, p, VOCAB, DRAWS);
    pl_sampler_close(s);
}

/* Pairs of draws from twelve tokens: next position, next seed. */
static void neighbours_are_independent(void **state)
{
    (void)state;
    enum { N = 12 };
    float x[N];
    double p[N], pair_p[N * N];
    static int pairs[2][N * N];
    pl_sampling set = kit_plain(), beside = kit_plain();
    for (int i = 0; i < N; i++)
        x[i] = (float)i * 0.2f;
    softmax(p, x, N, &set);
    for (int i = 0; i < N * N; i++)
        pair_p[i] = p[i / N] * p[i % N];
    memset(pairs, 0, sizeof pairs);
    pl_sampler *s = kit_sampler(N, "auto");
    beside.seed = 1;
    int last = 0;
    for (int64_t position = 0; position <= DRAWS; position++) {
        pl_draw d = {.logits = x, .position = position, .sampling = &set};
        pl_draw e = {.logits = x, .position = position, .sampling = &beside};
        int token = pl_draw_token(s, &d);
        if (position > 0) {
            pairs[0][last * N + token]++;
            pairs[1][token * N + pl_draw_token(s, &e)]++;
        }
        last = token;
    }
    check_counts("next position", pairs[0], pair_p, N * N, DRAWS);
    check_counts("next seed", pairs[1], pair_p, N * N, DRAWS);
    pl_sampler_close(s);
}

/* A rare token against a sure one: the upper tail of the noise decides, and must have the right weight. */
static void rare_tokens_come_at_their_rate(void **state)
{
    (void)state;
    enum { N = 1025, TRIES = 100000 };
    static float x[N];
    pl_sampling set = kit_plain();
    for (int i = 1; i < N; i++)
        x[i] = -16.0f; /* together 1024 e^-16 = 1.15e-4 */
    pl_sampler *s = kit_sampler(N, "auto");
    int rare = 0;
    for (int64_t position = 0; position < TRIES; position++) {
        pl_draw d = {.logits = x, .position = position, .sampling = &set};
        rare += pl_draw_token(s, &d) != 0;
    }
    double expect = TRIES * 1024 * exp(-16);
    print_message("rare tokens: %d, expected %.2f\n", rare, expect);
    assert_true(rare >= 1 && rare <= 28); /* either side has a chance of 1e-5 */
    pl_sampler_close(s);

    /* the noise itself: P(G > g) = 1 - exp(-exp(-g)), counted where a vocabulary of 130,000 reaches */
    static const double at[] = {-2, -1, 0, 1, 2, 4, 6, 8, 10, 12};
    int above[10] = {0};
    double below_u[10];
    for (int i = 0; i < 10; i++)
        below_u[i] = -expm1(-exp(-at[i]));
    enum { SAMPLES = 1 << 22 };
    uint64_t key = pl_noise_key(99, 1234);
    for (int32_t token = 0; token < SAMPLES; token++) {
        uint64_t w = pl_noise_bits(key, token);
        double u = pl_noise_uniform(w);
        for (int i = 0; i < 10; i++)
            above[i] += u < below_u[i];
        if (token % 64 == 0) /* the value is the quantile of its uniform */
            assert_true(fabs(pl_noise_gumbel(w) + log(-log1p(-u))) < 1e-9);
    }
    for (int i = 0; i < 10; i++) {
        double p = below_u[i], sd = sqrt(SAMPLES * p * (1 - p));
        assert_true(fabs(above[i] - SAMPLES * p) < 4.5 * sd + 1);
    }
    double top = pl_noise_gumbel(0), bottom = pl_noise_gumbel(UINT64_MAX); /* both ends are finite */
    assert_true(top > 36 && top < 37.5 && bottom < -3.5 && bottom > -3.7);
}

static void runs_repeat(void **state)
{
    (void)state;
    float x[VOCAB];
    wide_row(x, VOCAB);
    pl_sampler *a = kit_sampler(VOCAB, "auto"), *b = kit_sampler(VOCAB, "scalar");
    pl_sampling set = kit_plain();
    set.top_p = 0.97f;
    set.seed = 42;
    uint64_t hash = 14695981039346656037u;
    int other = 0;
    for (int64_t position = 0; position < 2000; position++) { /* the order of calls does not matter */
        pl_draw forward = {.logits = x, .position = position, .sampling = &set};
        int token = pl_draw_token(a, &forward);
        assert_int_equal(pl_draw_token(b, &forward), token);
        hash = (hash ^ (uint64_t)token) * 1099511628211u;
        set.seed = 43;
        other += pl_draw_token(a, &forward) != token;
        set.seed = 42;
    }
    for (int64_t position = 1999; position >= 0; position -= 7) {
        pl_draw back = {.logits = x, .position = position, .sampling = &set};
        assert_int_equal(pl_draw_token(a, &back), pl_draw_token(b, &back));
    }
    assert_true(other > 1800); /* another seed, another reply */
    print_message("hash of 2000 draws %016llx\n", (unsigned long long)hash);
    /* the same on every machine: a change here changes the replies of every seed ever written down */
    assert_true(hash == 0xb9ec28158c01a239u);
    pl_sampler_close(a);
    pl_sampler_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_give_their_distribution),
        cmocka_unit_test(seeds_give_it_as_positions_do),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(rare_tokens_come_at_their_rate),
        cmocka_unit_test(runs_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
