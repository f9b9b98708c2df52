/* Products equal, bit for bit, a plain loop of the order that docs/internals/kernels-cpu-matrix.md writes down: for
 * every format, instruction set, number of threads and of rows, whatever rows share the launch. */
#include "mat_fixture.h"

static const pl_kernel_limits limits = {.rows = 70,
                                        .slots = 1,
                                        .hidden = 256,
                                        .streams = 4,
                                        .heads = 4,
                                        .head_dim = 128,
                                        .rope_dim = 32,
                                        .max_in = 1536,
                                        .max_out = 512,
                                        .per_token = 2,
                                        .experts = 8,
                                        .inter = 64,
                                        .window = 16,
                                        .topk = 16,
                                        .index_heads = 4,
                                        .index_dim = 32,
                                        .context = 64,
                                        .block = 5};

/* ---- the order, written out ------------------------------------------------------------------------------------- */

static float weight(const pl_mat *w, int o, int k, float *scale)
{
    static const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    size_t at = (size_t)o * (size_t)w->in + (size_t)k;
    *scale = 1;
    if (w->format == PL_FMT_F32)
        return ((const float *)(const void *)w->data)[at];
    if (w->format == PL_FMT_BF16)
        return pl_bf16_to_f32(((const pl_bf16 *)(const void *)w->data)[at]);
    if (w->format == PL_FMT_FP8) {
        int c = w->data[at], e = c >> 3 & 15;
        *scale = ldexpf(1, w->scale[o / 32 * ((w->in + 31) / 32) + k / 32] - 127);
        float v = e ? ldexpf(1 + (float)(c & 7) / 8, e - 7) : ldexpf((float)(c & 7), -9);
        return c & 128 ? -v : v;
    }
    int c = w->data[at / 2] >> (k % 2 * 4) & 15;
    *scale = ldexpf(1, w->scale[(size_t)o * (size_t)(w->in / 32) + (size_t)k / 32] - 127);
    return c & 8 ? -e2m1[c & 7] : e2m1[c & 7];
}

static float oracle(const pl_mat *w, int o, const pl_bf16 *x)
{
    float a[16] = {0}, s;
    if (w->format == PL_FMT_FP4) {
        for (int j = 0; j < w->in / 8; j++) {
            double t = 0;
            for (int k = 8 * j; k < 8 * j + 8; k++)
                t += (double)pl_bf16_to_f32(x[k]) * (double)weight(w, o, k, &s);
            a[j % 16] = fmaf((float)t, s, a[j % 16]);
        }
    } else {
        for (int k = 0; k < (w->in + 15) / 16 * 16; k++) {
            float v = k < w->in ? weight(w, o, k, &s) : 0;
            a[k % 16] = fmaf(k < w->in ? pl_bf16_to_f32(x[k]) : 0, k < w->in ? v * s : 0, a[k % 16]);
        }
    }
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] += a[i + half];
    return a[0] == a[0] ? a[0] : pl_f32_from_bits(0x7fc00000);
}

/* ---- every instruction set and thread count against it ---------------------------------------------------------- */

static kit kits[KIT_ISAS][3];
static bool have[KIT_ISAS];

static int open_all(void **state)
{
    (void)state;
    rng_start("test_lin");
    for (int i = 0; i < KIT_ISAS; i++)
        for (int t = 0; t < 3; t++)
            have[i] = kit_open(&kits[i][t], kit_isas[i], t + 1, &limits);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < KIT_ISAS; i++)
        for (int t = 0; t < 3 && have[i]; t++)
            kit_close(&kits[i][t]);
    return 0;
}

static void compare(const float *want, const float *got, int rows, const pl_mat *w, const char *isa)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < w->out; o++) {
            float a = want[r * w->out + o], b = got[r * w->out + o];
            if (pl_f32_bits(a) != pl_f32_bits(b))
                fail_msg("%s, format %d, %d x %d, row %d of %d, output %d: %a expected, found %a", isa, w->format,
                         w->out, w->in, r, rows, o, (double)a, (double)b);
        }
}

/* All kits on one matrix and set of rows: float32 and bf16 outputs, padded strides. */
static void check(const pl_mat *w, const pl_bf16 *x, int rows)
{
    size_t n = (size_t)rows * (size_t)w->out;
    float *want = exact(n * sizeof *want), *got = exact(n * sizeof *got);
    pl_bf16 *small = exact((n + (size_t)rows) * sizeof *small);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < w->out; o++)
            want[r * w->out + o] = oracle(w, o, x + (size_t)r * (size_t)w->in);
    for (int i = 0; i < KIT_ISAS; i++)
        for (int t = 0; t < 3 && have[i]; t++) {
            pl_kernels *k = &kits[i][t].k;
            memset(got, 0x55, n * sizeof *got);
            k->lin(k, got, (size_t)w->out, PL_OUT_F32, x, (size_t)w->in, w, rows);
            compare(want, got, rows, w, kit_isas[i]);
            k->lin(k, small, (size_t)w->out + 1, PL_OUT_BF16, x, (size_t)w->in, w, rows);
            for (int r = 0; r < rows; r++)
                for (int o = 0; o < w->out; o++)
                    assert_int_equal(small[r * (w->out + 1) + o], pl_bf16_from_f32(want[r * w->out + o]));
        }
    free(want);
    free(got);
    free(small);
}

static int random_in(pl_format f)
{
    int in = 1 + rng_to(f == PL_FMT_FP4 ? 1500 : 1100);
    return f == PL_FMT_FP4 ? (in + 31) / 32 * 32 : in;
}

static void random_shapes(pl_format format)
{
    for (int round = 0; round < 14; round++) {
        int rows = round < 4 ? round + 1 : 1 + rng_to(70), out = 1 + rng_to(rows > 8 ? 40 : 130);
        pl_mat w = mat_make(format, out, random_in(format), 100, 128, false);
        pl_bf16 *x = rows_make(rows, w.in, format == PL_FMT_FP4 || rng_to(2));
        check(&w, x, rows);
        mat_free(&w);
        free(x);
    }
    /* many rows: several blocks of outputs, several panels of inputs, the last ones not full */
    int rows = 32 + rng_to(39), out = 65 + rng_to(90);
    pl_mat w =
        mat_make(format, out, 1408 + random_in(format) / 32 * 32 + (format == PL_FMT_FP4 ? 0 : 5), 100, 128, false);
    pl_bf16 *x = rows_make(rows, w.in, true);
    check(&w, x, rows);
    mat_free(&w);
    free(x);
}

static void bf16_any_shape(void **state)
{
    (void)state;
    random_shapes(PL_FMT_BF16);
}

static void f32_any_shape(void **state)
{
    (void)state;
    random_shapes(PL_FMT_F32);
}

static void fp8_any_shape(void **state)
{
    (void)state;
    random_shapes(PL_FMT_FP8);
}

static void fp4_any_shape(void **state)
{
    (void)state;
    random_shapes(PL_FMT_FP4);
}

/* Scales to the ends of the exact range, and beyond it in matrices that say so. */
static void extreme_scales(void **state)
{
    (void)state;
    static const struct {
        pl_format format;
        int lo, hi;
        bool wide;
    } cases[] = {{PL_FMT_FP8, 18, 246, false},
                 {PL_FMT_FP8, 130, 140, false},
                 {PL_FMT_FP8, 0, 254, true},
                 {PL_FMT_FP4, 10, 252, false},
                 {PL_FMT_FP4, 0, 254, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int rows = 1; rows <= 40; rows += rows < 7 ? 3 : 33) {
            pl_mat w = mat_make(cases[i].format, 70, 320, cases[i].lo, cases[i].hi, cases[i].wide);
            pl_bf16 *x = rows_make(rows, w.in, true);
            check(&w, x, rows);
            mat_free(&w);
            free(x);
        }
}

/* Values that no sum of the release has: they must not crash, must not touch other rows, and are the same
 * everywhere. */
static void odd_activations(void **state)
{
    (void)state;
    static const pl_bf16 odd[] = {0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f7f, 0xff7f,
                                  0x0001, 0x8001, 0x0080, 0x3f81, 0x8000};
    for (int format = PL_FMT_BF16; format <= PL_FMT_FP4; format++)
        for (int rows = 1; rows <= 33; rows += rows < 13 ? 6 : 20) {
            pl_mat w = mat_make((pl_format)format, 37, 416, 90, 130, false);
            pl_bf16 *x = rows_make(rows, w.in, true);
            for (int r = 0; r < rows; r += 2)
                for (int i = 0; i < 1 + r; i++)
                    x[r * w.in + rng_to(w.in)] = odd[rng_to(sizeof odd / sizeof *odd)];
            check(&w, x, rows);
            mat_free(&w);
            free(x);
        }
}

/* The largest runs that E4M3 and E2M1 allow, with the smallest next to them: sums of 25 bits that round once. */
static void runs_at_the_limit(void **state)
{
    (void)state;
    enum { ROWS = 9, IN = 384, OUT = 33 };
    pl_mat w = mat_make(PL_FMT_FP4, OUT, IN, 110, 120, false);
    pl_bf16 *x = rows_make(ROWS, IN, true);
    for (size_t i = 0; i < (size_t)OUT * IN / 2; i++)
        if (rng_to(4))
            ((unsigned char *)(uintptr_t)w.data)[i] = rng_to(8) ? 0x77 : 0xf1;
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = pl_bf16_from_f32(rng_to(5) ? 448.0f : rng_to(2) ? 0x1p-9f : -0x1.8p-8f);
    check(&w, x, ROWS);
    mat_free(&w);
    free(x);
}

/* lin_groups is lin on each group's part, groups that begin inside a block of 32 outputs included. */
static void groups(void **state)
{
    (void)state;
    static const pl_format formats[] = {PL_FMT_FP8, PL_FMT_BF16, PL_FMT_FP4};
    static const int shapes[][2] = {{4, 96}, {8, 4}, {3, 40}, {2, 16}, {6, 5}};
    for (int f = 0; f < 3; f++)
        for (int s = 0; s < 5; s++)
            for (int rows = 1; rows <= 39; rows += rows < 9 ? 4 : 30) {
                enum { IN = 128 };
                int n = shapes[s][0], each = shapes[s][1], out = n * each;
                pl_mat w = mat_make(formats[f], out, IN, 110, 120, false);
                pl_bf16 *x = rows_make(rows, n * IN, true);
                pl_bf16 *y = exact((size_t)(rows * out) * sizeof *y);
                for (int i = 0; i < KIT_ISAS; i++)
                    for (int t = 0; t < 3 && have[i]; t++) {
                        pl_kernels *k = &kits[i][t].k;
                        k->lin_groups(k, y, x, &w, n, rows);
                        for (int at = 0; at < rows * out; at++)
                            assert_int_equal(y[at], pl_bf16_from_f32(oracle(
                                                        &w, at % out, x + (at / out * n + at % out / each) * IN)));
                    }
                mat_free(&w);
                free(x);
                free(y);
            }
}

/* More rows than the plan foresaw room for their packed form: cut, not overrun. */
static void rows_beyond_the_plan(void **state)
{
    (void)state;
    pl_mat w = mat_make(PL_FMT_BF16, 5, 4096, 0, 0, false);
    pl_bf16 *x = rows_make(200, w.in, false);
    check(&w, x, 200);
    mat_free(&w);
    free(x);
}

/* ---- the reference's own products ------------------------------------------------------------------------------- */

typedef struct tally {
    int equal, close, far; /* in steps of bf16: none, one, more */
} tally;

static tally against(const pl_bf16 *want, const pl_mat *w, const pl_bf16 *x, int rows)
{
    tally t = {0};
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < w->out; o++) {
            int d = abs((int)pl_bf16_from_f32(oracle(w, o, x + r * w->in)) - (int)want[r * w->out + o]);
            d == 0 ? t.equal++ : d == 1 ? t.close++ : t.far++;
        }
    return t;
}

/* The oracle's bits are everyone's (above), so it stands for all of them here. The reference sums blocks of 32 in
 * another order: a bf16 step now and then is honest, two are not, unless the sum nearly cancels. */
static void reference_vectors(void **state)
{
    (void)state;
    enum { ROWS = 7, IN = 256, OUT = 96, OUTB = 48 };
    pl_bf16 *x = vector_file("lin8.x.bf16", ROWS * IN * 2), *xq = exact(ROWS * IN * 2);
    memcpy(xq, x, ROWS * IN * 2);
    for (int r = 0; r < ROWS; r++)
        q8_row(xq + r * IN, IN);
    pl_mat w8 = {.format = PL_FMT_FP8, .out = OUT, .in = IN, .data = vector_file("lin8.w.u8", OUT * IN)};
    w8.scale = vector_file("lin8.s.u8", OUT / 32 * IN / 32);
    pl_mat w4 = {.format = PL_FMT_FP4, .out = OUT, .in = IN, .data = vector_file("lin4.w.u8", OUT * IN / 2)};
    w4.scale = vector_file("lin4.s.u8", OUT * IN / 32);
    pl_mat wb = {.format = PL_FMT_BF16, .out = OUTB, .in = IN, .data = vector_file("linb.w.bf16", OUTB * IN * 2)};
    pl_bf16 *y8 = vector_file("lin8.y.bf16", ROWS * OUT * 2), *y4 = vector_file("lin4.y.bf16", ROWS * OUT * 2);
    pl_bf16 *yb = vector_file("linb.y.bf16", ROWS * OUTB * 2);
    float *y32 = vector_file("lin32.y.f32", ROWS * OUTB * 4);
    tally t8 = against(y8, &w8, xq, ROWS), t4 = against(y4, &w4, xq, ROWS), tb = against(yb, &wb, x, ROWS);
    printf("lin8: %d equal, %d a step away, %d more; lin4: %d, %d, %d; linb: %d, %d, %d\n", t8.equal, t8.close, t8.far,
           t4.equal, t4.close, t4.far, tb.equal, tb.close, tb.far);
    assert_int_equal(t8.far + t4.far + tb.far, 0);
    assert_true(t8.close <= ROWS * OUT / 50 && t4.close <= ROWS * OUT / 50 && tb.close <= ROWS * OUTB / 50);
    double worst = 0;
    for (int i = 0; i < ROWS * OUTB; i++) {
        double size = 0, s;
        for (int k = 0; k < IN; k++)
            size += fabs((double)pl_bf16_to_f32(x[i / OUTB * IN + k]) * (double)weight(&wb, i % OUTB, k, &(float){0}));
        s = fabs((double)oracle(&wb, i % OUTB, x + i / OUTB * IN) - (double)y32[i]) / size;
        worst = s > worst ? s : worst;
    }
    printf("lin32: largest difference %.2g of the sum of absolute products\n", worst);
    assert_true(worst < 3e-7);
    check(&w8, xq, ROWS);
    check(&w4, xq, ROWS);
    check(&wb, x, ROWS);
    mat_free(&w8);
    mat_free(&w4);
    mat_free(&wb);
    free(x), free(xq), free(y8), free(y4), free(yb), free(y32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_any_shape),    cmocka_unit_test(f32_any_shape),  cmocka_unit_test(fp8_any_shape),
        cmocka_unit_test(fp4_any_shape),     cmocka_unit_test(extreme_scales), cmocka_unit_test(odd_activations),
        cmocka_unit_test(runs_at_the_limit), cmocka_unit_test(groups),         cmocka_unit_test(rows_beyond_the_plan),
        cmocka_unit_test(reference_vectors),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
