/* Our own transcendental functions: equal bits in every instruction set, errors inside the bounds that mathfn.h names.
 *
 * The sweeps walk the float32 bit patterns with a stride from a seeded start; PACELINE_TEST_SEED repeats a run and
 * PACELINE_TEST_FULL=1 walks all 2^32 patterns (about half an hour). */
#include "base/check.h"
#include "base/clock.h"
#include "base/mathfn.h"
#include "base/rowmath.h"

enum { BLOCK = 4096 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const uint32_t sweep_stride = 2039;
#else
static const uint32_t sweep_stride = 211; /* 20.3 million inputs a function */
#endif

static uint64_t seed;

static const char *const isas[] = {"avx2", "avx512", "neon"};
static const char *const names[PL_ROW_FUNCTIONS] = {"exp", "sigmoid", "silu", "softplus", "log", "sin", "cos"};

static uint32_t stride(uint32_t usual)
{
    const char *full = getenv("PACELINE_TEST_FULL");
    return full && strcmp(full, "1") == 0 ? 1 : usual;
}

static void fill(float *x, uint64_t first, uint32_t step)
{
    for (uint64_t i = 0; i < BLOCK; i++)
        x[i] = pl_f32_from_bits((uint32_t)(seed + (first + i) * step));
}

static void same_bits_in_every_instruction_set(void **state)
{
    (void)state;
    static float x[BLOCK], want[BLOCK], got[BLOCK];
    const pl_rowmath *scalar = pl_rowmath_for("scalar");
    uint32_t step = stride(sweep_stride);
    uint64_t blocks = ((UINT64_C(1) << 32) / step + BLOCK - 1) / BLOCK;
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++)
        print_message("%s: %s\n", isas[k], pl_rowmath_for(isas[k]) ? "compared with scalar" : "not on this machine");
    for (int fn = 0; fn < PL_ROW_FUNCTIONS; fn++) {
        for (uint64_t b = 0; b < blocks; b++) {
            fill(x, b * BLOCK, step);
            scalar->map((pl_rowfn)fn, want, x, BLOCK);
            for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
                const pl_rowmath *m = pl_rowmath_for(isas[k]);
                if (!m)
                    continue;
                m->map((pl_rowfn)fn, got, x, BLOCK);
                for (int i = 0; memcmp(got, want, sizeof got) != 0 && i < BLOCK; i++)
                    if (pl_f32_bits(got[i]) != pl_f32_bits(want[i]))
                        fail_msg("%s(%a): scalar %a, %s %a", names[fn], x[i], want[i], m->name, got[i]);
            }
        }
    }
    print_message("%llu inputs a function\n", (unsigned long long)(blocks * BLOCK));
}

static double reference(int fn, double x)
{
    switch (fn) {
    case PL_ROW_EXP: return exp(x);
    case PL_ROW_SIGMOID: return 1 / (1 + exp(-x));
    case PL_ROW_SILU: return x / (1 + exp(-x));
    case PL_ROW_SOFTPLUS: return x > 20 ? x : log1p(exp(x));
    case PL_ROW_LOG: return log(x);
    case PL_ROW_SIN: return sin(x);
    default: return cos(x);
    }
}

/* The distance in units in the last place of the float32 that want rounds to; denormals have the least unit. */
static double ulps(float got, double want)
{
    float w = (float)want;
    if ((isnan(got) && isnan(want)) || (isinf(got) && got == w))
        return 0;
    if (isnan(got) || isinf(got) || isnan(want))
        return HUGE_VAL;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static void errors_inside_the_bounds(void **state)
{
    (void)state;
    static float x[BLOCK], y[BLOCK];
    static const double bound[PL_ROW_FUNCTIONS] = {0.7, 0.7, 0.75, 0.5001, 0.5001, 0.5001, 0.5001};
    static const double bound_tiny[PL_ROW_FUNCTIONS] = {1, 1, 1.25, 0.5001, 0.5001, 0.5001, 0.5001};
    const pl_rowmath *m = pl_rowmath_for("auto");
    uint32_t step = stride(2003);
    uint64_t blocks = ((UINT64_C(1) << 32) / step + BLOCK - 1) / BLOCK;
    for (int fn = 0; fn < PL_ROW_FUNCTIONS; fn++) {
        double worst = 0;
        float at = 0;
        for (uint64_t b = 0; b < blocks; b++) {
            fill(x, b * BLOCK, step);
            m->map((pl_rowfn)fn, y, x, BLOCK);
            for (int i = 0; i < BLOCK; i++) {
                double want = reference(fn, (double)x[i]);
                if ((fn == PL_ROW_SIN || fn == PL_ROW_COS) && !(fabsf(x[i]) <= 0x1p32f))
                    want = (double)NAN;
                if (fn == PL_ROW_SILU && x[i] < -87) {
                    assert_true(isinf(x[i]) || fabs((double)y[i] - want) < 2e-43);
                    continue;
                }
                double u = ulps(y[i], want);
                if (u > (fabs(want) < 0x1p-100 ? bound_tiny[fn] : bound[fn]))
                    fail_msg("%s(%a) = %a, off by %.4f ulp", names[fn], x[i], y[i], u);
                if (u > worst && fabs(want) >= 0x1p-100) {
                    worst = u;
                    at = x[i];
                }
            }
        }
        print_message("%s: worst %.4f ulp, at %a\n", names[fn], worst, at);
    }
}

static void double_functions_within_one_ulp(void **state)
{
    (void)state;
    double worst_log = 0, worst_exp = 0;
    uint64_t h = seed;
    for (int i = 0; i < 400000; i++) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        /* every magnitude, then close to 1, where a draw's uniform lies */
        double x = pl_f64_from_bits(i & 1 ? h >> 1 : 0x3fe0000000000000 + (h >> 11));
        int e;
        if (x < HUGE_VAL && x > 0) {
            long double want = logl((long double)x);
            frexpl(want, &e);
            double u = (double)(fabsl((long double)pl_log(x) - want) / ldexpl(1, e - 53));
            worst_log = u > worst_log ? u : worst_log;
        }
        double y = (double)(h >> 11) * 0x1p-53 * 1400 - 700;
        long double want = expl((long double)y);
        frexpl(want, &e);
        double u = (double)(fabsl((long double)pl_exp(y) - want) / ldexpl(1, e - 53));
        worst_exp = u > worst_exp ? u : worst_exp;
    }
    print_message("double: log %.4f ulp, exp %.4f ulp\n", worst_log, worst_exp);
    assert_true(worst_log < 1);
    assert_true(worst_exp < 1);
    assert_true(pl_log(0) == -HUGE_VAL && pl_log(HUGE_VAL) == HUGE_VAL && isnan(pl_log(-1)) && pl_log(1) == 0);
    assert_true(pl_exp(-HUGE_VAL) == 0 && pl_exp(HUGE_VAL) == HUGE_VAL && isnan(pl_exp((double)NAN)) && pl_exp(0) == 1);
    assert_true((float)pl_pow(160000, 0.75) == 8000.0f && pl_pow(7, 0) == 1);
}

static void special_values(void **state)
{
    (void)state;
    const float inf = INFINITY;
    assert_true(pl_expf(0) == 1 && pl_expf(-inf) == 0 && pl_expf(inf) == inf && pl_expf(-200) == 0);
    assert_true(isfinite(pl_expf(88.72283f)) && pl_expf(88.73f) == inf && pl_expf(-103.0f) > 0);
    assert_true(pl_sigmoidf(0) == 0.5f && pl_sigmoidf(-inf) == 0 && pl_sigmoidf(inf) == 1);
    assert_true(pl_siluf(inf) == inf && pl_siluf(-inf) == 0 && signbit(pl_siluf(-inf)) &&
                pl_siluf(0x1p127f) == 0x1p127f);
    assert_true(pl_softplusf(inf) == inf && pl_softplusf(-inf) == 0 && pl_softplusf(20.5f) == 20.5f);
    assert_true(pl_softplusf(-80) == pl_expf(-80) && pl_softplusf(0) == 0.693147181f);
    assert_true(pl_logf(1) == 0 && pl_logf(0) == -inf && pl_logf(inf) == inf && isnan(pl_logf(-1)));
    assert_true(pl_sinf(0) == 0 && pl_cosf(0) == 1 && isnan(pl_sinf(inf)) && isnan(pl_cosf(0x1p33f)));
    for (int fn = 0; fn < PL_ROW_FUNCTIONS; fn++) { /* every NaN gives the one NaN */
        const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x7fffffff};
        for (size_t k = 0; k < sizeof nans / sizeof *nans; k++) {
            float x = pl_f32_from_bits(nans[k]), y;
            pl_rowmath_for("scalar")->map((pl_rowfn)fn, &y, &x, 1);
            assert_int_equal(pl_f32_bits(y), 0x7fc00000);
        }
    }
}

/* The reference's tables were made by a GPU, whose cosf and sinf are within 2 ulp, not correctly rounded. */
static void rope_tables_of_the_reference(void **state)
{
    (void)state;
    static const char *const tables[] = {"plain", "yarn"};
    for (int t = 0; t < 2; t++) {
        int32_t pos[15];
        float freq[32], table[2][15 * 32];
        const char *what[] = {"freq_gpu", "cos", "sin"};
        void *to[] = {freq, table[0], table[1]};
        size_t size[] = {sizeof freq, sizeof table[0], sizeof table[1]};
        FILE *f = fopen("tests/vectors/tiny-a/unit/rope.pos.i32", "rb");
        assert_non_null(f);
        assert_int_equal(fread(pos, 1, sizeof pos, f), sizeof pos);
        fclose(f);
        for (int k = 0; k < 3; k++) {
            char path[128];
            snprintf(path, sizeof path, "tests/vectors/tiny-a/unit/rope.%s.%s.f32", tables[t], what[k]);
            f = fopen(path, "rb");
            assert_non_null(f);
            assert_int_equal(fread(to[k], 1, size[k], f), size[k]);
            fclose(f);
        }
        double worst = 0;
        int equal = 0;
        for (int i = 0; i < 15 * 32; i++) {
            float angle = (float)pos[i / 32] * freq[i % 32];
            float mine[2] = {pl_cosf(angle), pl_sinf(angle)};
            for (int k = 0; k < 2; k++) {
                double u = ulps(mine[k], (double)table[k][i]);
                worst = u > worst ? u : worst;
                equal += u == 0;
            }
        }
        print_message("%s: %d of 960 equal, worst %.1f ulp\n", tables[t], equal, worst);
        assert_true(worst <= 2);
        assert_true(equal > 800);
    }
}

static void row_loops_agree_at_every_length(void **state)
{
    (void)state;
    static float x[300], want[300], got[300];
    uint64_t h = seed;
    for (size_t n = 0; n < 300; n++) {
        for (size_t i = 0; i < n; i++) {
            h = h * 6364136223846793005u + 1442695040888963407u;
            x[i] = (float)((double)(h >> 40) * 0x1p-20 - 8);
        }
        if (n > 3 && n % 3 == 0)
            x[h % n] = n % 2 ? NAN : n % 4 ? INFINITY : -INFINITY;
        double true_sum = 0;
        float top = -INFINITY;
        for (size_t i = 0; i < n; i++)
            top = x[i] > top ? x[i] : top;
        for (size_t i = 0; i < n; i++)
            true_sum += exp((double)(x[i] - top));
        bool odd, odd2;
        const pl_rowmath *s = pl_rowmath_for("scalar");
        assert_true(s->max(x, n, &odd) == top);
        assert_int_equal(odd, n > 3 && n % 3 == 0 && (n % 2 || n % 4));
        double sum = s->exp_sum(x, n, top);
        s->exp(want, x, n, top, 0.7f);
        if (!odd && n > 0)
            assert_true(fabs(sum / true_sum - 1) < 1e-7);
        for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
            const pl_rowmath *m = pl_rowmath_for(isas[k]);
            if (!m)
                continue;
            assert_int_equal(pl_f32_bits(m->max(x, n, &odd2)), pl_f32_bits(s->max(x, n, &odd)));
            assert_int_equal(odd, odd2);
            double sum2 = m->exp_sum(x, n, top);
            if (!isnan(sum))
                assert_true(pl_f64_bits(sum) == pl_f64_bits(sum2));
            m->exp(got, x, n, top, 0.7f);
            assert_memory_equal(got, want, n * sizeof *got);
        }
    }
    assert_null(pl_rowmath_for("sse9"));
}

int main(void)
{
    const char *given = getenv("PACELINE_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)pl_now_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_in_every_instruction_set), cmocka_unit_test(errors_inside_the_bounds),
        cmocka_unit_test(double_functions_within_one_ulp),    cmocka_unit_test(special_values),
        cmocka_unit_test(rope_tables_of_the_reference),       cmocka_unit_test(row_loops_agree_at_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
