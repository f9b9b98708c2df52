/* The mixture of experts equals its definition, model spec 3.7, made of single products: bit for bit, in every
 * instruction set, with any number of threads, and whatever rows share the launch. */
#include "mat_fixture.h"

#include "base/mathfn.h"

enum { ROWS = 70, DIM = 160, INTER = 96, EXPERTS = 9, PER = 3 };

static const pl_kernel_limits limits = {.rows = ROWS,
                                        .slots = 1,
                                        .hidden = DIM,
                                        .streams = 4,
                                        .heads = 1,
                                        .head_dim = 32,
                                        .rope_dim = 32,
                                        .max_in = DIM,
                                        .max_out = DIM,
                                        .per_token = PER,
                                        .experts = EXPERTS,
                                        .inter = INTER,
                                        .window = 16,
                                        .topk = 16,
                                        .index_heads = 4,
                                        .index_dim = 32,
                                        .context = 64,
                                        .block = 5};

typedef struct mixture {
    pl_mat w1[EXPERTS], w2[EXPERTS], w3[EXPERTS];
    pl_experts e;
    pl_bf16 *x;
    int32_t id[ROWS * PER];
    float weight[ROWS * PER];
} mixture;

static void mixture_make(mixture *m, pl_format format)
{
    for (int i = 0; i < EXPERTS; i++) {
        m->w1[i] = mat_make(format, INTER, DIM, 121, 124, false);
        m->w3[i] = mat_make(format, INTER, DIM, 121, 124, false);
        m->w2[i] = mat_make(format, DIM, INTER, 118, 122, false);
    }
    m->e = (pl_experts){.experts = EXPERTS, .per_token = PER, .inter = INTER, .w1 = m->w1, .w2 = m->w2, .w3 = m->w3};
    m->e.shared_w1 = mat_make(PL_FMT_FP8, INTER, DIM, 112, 114, false);
    m->e.shared_w3 = mat_make(PL_FMT_FP8, INTER, DIM, 112, 114, false);
    m->e.shared_w2 = mat_make(PL_FMT_FP8, DIM, INTER, 112, 114, false);
    m->e.limit = 10;
    m->x = exact(ROWS * DIM * sizeof *m->x);
    for (int i = 0; i < ROWS * DIM; i++)
        m->x[i] = pl_bf16_from_f32(rng_gauss());
    for (int r = 0; r < ROWS; r++) {
        q8_row(m->x + r * DIM, DIM);
        for (int i = 0; i < PER; i++) {
            bool again;
            do {
                /* expert 0 takes every other row, so that it gets more than a block of rows can hold in one launch */
                m->id[r * PER + i] = i == 0 && r % 2 ? 0 : rng_to(EXPERTS);
                again = false;
                for (int j = 0; j < i; j++)
                    again |= m->id[r * PER + i] == m->id[r * PER + j];
            } while (again);
            m->weight[r * PER + i] = (float)rng_to(1000) / 900;
        }
    }
}

static void mixture_free(mixture *m)
{
    for (int i = 0; i < EXPERTS; i++) {
        mat_free(&m->w1[i]);
        mat_free(&m->w2[i]);
        mat_free(&m->w3[i]);
    }
    mat_free(&m->e.shared_w1);
    mat_free(&m->e.shared_w2);
    mat_free(&m->e.shared_w3);
    free(m->x);
}

/* One expert on one row, from single products of the scalar table (test_lin holds those to the written order). */
static void expert_row(pl_kernels *k, float *sum, const pl_bf16 *x, const pl_mat *w1, const pl_mat *w2,
                       const pl_mat *w3, const float *weight, float limit)
{
    pl_bf16 a[INTER], b[INTER], t[INTER], y[DIM];
    k->lin(k, a, INTER, PL_OUT_BF16, x, DIM, w1, 1);
    k->lin(k, b, INTER, PL_OUT_BF16, x, DIM, w3, 1);
    for (int i = 0; i < INTER; i++) {
        float g = fminf(pl_bf16_to_f32(a[i]), limit), u = fmaxf(fminf(pl_bf16_to_f32(b[i]), limit), -limit);
        float v = pl_siluf(g) * u;
        t[i] = pl_bf16_from_f32(weight ? *weight * v : v);
    }
    q8_row(t, INTER);
    k->lin(k, y, DIM, PL_OUT_BF16, t, INTER, w2, 1);
    for (int i = 0; i < DIM; i++)
        sum[i] += pl_bf16_to_f32(y[i]);
}

static void definition(pl_kernels *k, pl_bf16 *y, const mixture *m, int rows)
{
    for (int r = 0; r < rows; r++) {
        float sum[DIM] = {0};
        const pl_bf16 *x = m->x + r * DIM;
        for (int id = 0; id < EXPERTS; id++)
            for (int i = 0; i < PER; i++)
                if (m->id[r * PER + i] == id)
                    expert_row(k, sum, x, &m->w1[id], &m->w2[id], &m->w3[id], &m->weight[r * PER + i], m->e.limit);
        expert_row(k, sum, x, &m->e.shared_w1, &m->e.shared_w2, &m->e.shared_w3, NULL, m->e.limit);
        for (int i = 0; i < DIM; i++)
            y[r * DIM + i] = pl_bf16_from_f32(sum[i]);
    }
}

static void check_format(pl_format format)
{
    static mixture m;
    static pl_bf16 want[ROWS * DIM], got[ROWS * DIM];
    static const int launches[] = {1, 2, 7, 64, ROWS};
    kit scalar;
    mixture_make(&m, format);
    assert_true(kit_open(&scalar, "scalar", 1, &limits));
    definition(&scalar.k, want, &m, ROWS);
    kit_close(&scalar);
    int big = 0;
    for (int i = 0; i < ROWS * DIM; i++)
        big += (want[i] & 0x7fff) > 0x3f00;
    assert_true(big > ROWS * DIM / 4); /* the experts are not all rounded away */
    for (int i = 0; i < KIT_ISAS; i++)
        for (int threads = 1; threads <= 3; threads++) {
            kit t;
            if (!kit_open(&t, kit_isas[i], threads, &limits))
                continue;
            for (size_t l = 0; l < sizeof launches / sizeof *launches; l++) {
                memset(got, 0x55, sizeof got);
                t.k.moe(&t.k, got, m.x, m.id, m.weight, &m.e, launches[l], DIM);
                assert_memory_equal(got, want, (size_t)launches[l] * DIM * sizeof *got);
            }
            kit_close(&t);
        }
    mixture_free(&m);
}

static void fp4_experts(void **state)
{
    (void)state;
    check_format(PL_FMT_FP4);
}

static void fp8_experts(void **state)
{
    (void)state;
    check_format(PL_FMT_FP8);
}

/* The gated unit against the reference: one "expert" whose w1 and w3 copy its input and whose w2 is the identity would
 * round on the way, so the unit's own formula is held to the vectors here, and to the kernel above. */
static void reference_unit(void **state)
{
    (void)state;
    enum { N = 5, W = 64 };
    pl_bf16 *gate = vector_file("swiglu.gate.bf16", N * W * 2), *up = vector_file("swiglu.up.bf16", N * W * 2);
    pl_bf16 *y = vector_file("swiglu.y.bf16", N * W * 2);
    float *weight = vector_file("swiglu.w.f32", N * 4);
    int differ = 0, clamped = 0;
    for (int i = 0; i < N * W; i++) {
        float g = fminf(pl_bf16_to_f32(gate[i]), 10), u = fmaxf(fminf(pl_bf16_to_f32(up[i]), 10), -10);
        clamped += g == 10 || fabsf(u) == 10;
        differ += pl_bf16_from_f32(weight[i / W] * (pl_siluf(g) * u)) != y[i];
    }
    printf("swiglu: %d of %d differ, %d clamped\n", differ, N * W, clamped);
    assert_int_equal(differ, 0);
    assert_true(clamped > 0);
    free(gate);
    free(up);
    free(y);
    free(weight);
}

static int seed(void **state)
{
    (void)state;
    rng_start("test_moe");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fp4_experts), cmocka_unit_test(fp8_experts),
                                       cmocka_unit_test(reference_unit)};
    return cmocka_run_group_tests(tests, seed, NULL);
}
