/* The roundings to FP8 and FP4 against the reference, bit for bit: codes, scales and values. */
#include "ops_fixture.h"

enum { ROWS = 75, GROUP = 32, N = ROWS * GROUP };

static void low_nibbles_first(unsigned char *one_a_byte, const unsigned char *packed, int n)
{
    for (int i = 0; i < n; i++)
        one_a_byte[i] = packed[i / 2] >> 4 * (i & 1) & 15;
}

/* Two codes are the same value: the sign of a zero does not count */
static void same_fp4(const unsigned char *got, const unsigned char *want, int n)
{
    for (int i = 0; i < n; i++)
        if ((got[i] & 7) || (want[i] & 7))
            assert_int_equal(got[i], want[i]);
}

static void q8_matches(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    pl_bf16 *x = unit_bf16("quant.x.bf16", N), *want = unit_bf16("quant.fp8.y.bf16", N), y[N];
    unsigned char *codes = unit_u8("quant.fp8.codes.u8", N), *scales = unit_u8("quant.fp8.scale_byte.u8", ROWS);
    unsigned char code[N], scale[ROWS];
    vec->round_q8(y, code, scale, x, N);
    assert_memory_equal(scale, scales, sizeof scale);
    assert_memory_equal(code, codes, sizeof code);
    assert_memory_equal(y, want, sizeof y);
    k->quant8(k, x, x, ROWS, GROUP);
    assert_memory_equal(x, want, sizeof y);
    for (int r = 0; r < ROWS; r++) { /* what a window row says when read back */
        unsigned char row[GROUP + 1];
        float back[GROUP];
        memcpy(row, code + r * GROUP, GROUP);
        row[GROUP] = scale[r];
        vec->unpack_window(back, row, GROUP);
        for (int i = 0; i < GROUP; i++)
            assert_true(back[i] == pl_bf16_to_f32(want[r * GROUP + i]));
    }
    free(x), free(want), free(codes), free(scales);
}

static void q4e8_matches(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    pl_bf16 *x = unit_bf16("quant.x.bf16", N), *want = unit_bf16("quant.fp4_e8m0.y.bf16", N), y[N];
    unsigned char *codes = unit_u8("quant.fp4_e8m0.codes.u8", N);
    unsigned char *scales = unit_u8("quant.fp4_e8m0.scale_byte.u8", ROWS);
    unsigned char packed[N / 2], scale[ROWS], code[N];
    vec->round_q4e8(y, packed, scale, x, N);
    low_nibbles_first(code, packed, N);
    assert_memory_equal(scale, scales, sizeof scale);
    same_fp4(code, codes, N);
    for (int i = 0; i < N; i++)
        assert_true(pl_bf16_to_f32(y[i]) == pl_bf16_to_f32(want[i]));
    k->quant4(k, x, x, ROWS, GROUP);
    assert_memory_equal(x, y, sizeof y);
    k->quant4(k, x, x, ROWS, GROUP); /* index_select rounds again and must find the same values */
    assert_memory_equal(x, y, sizeof y);
    free(x), free(want), free(codes), free(scales);
}

static void q4e4_matches(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    pl_bf16 *x = unit_bf16("quant.x.bf16", N), *want = unit_bf16("quant.fp4_e4m3.y.bf16", N), y[N];
    unsigned char *codes = unit_u8("quant.fp4_e4m3.codes.u8", N);
    unsigned char *scales = unit_u8("quant.fp4_e4m3.scale_code.u8", 2 * ROWS);
    unsigned char packed[N / 2], scale[2 * ROWS], code[N];
    vec->round_q4e4(y, packed, scale, x, N);
    low_nibbles_first(code, packed, N);
    assert_memory_equal(scale, scales, sizeof scale);
    same_fp4(code, codes, N);
    for (int i = 0; i < N; i++)
        assert_true(pl_bf16_to_f32(y[i]) == pl_bf16_to_f32(want[i]));
    for (int r = 0; r < ROWS; r++) {
        unsigned char row[GROUP / 2 + 2];
        float back[GROUP];
        memcpy(row, packed + r * GROUP / 2, GROUP / 2);
        memcpy(row + GROUP / 2, scale + 2 * r, 2);
        vec->unpack_entry(back, row, GROUP);
        for (int i = 0; i < GROUP; i++)
            assert_true(back[i] == pl_bf16_to_f32(want[r * GROUP + i]));
    }
    free(x), free(want), free(codes), free(scales);
}

/* Every E4M3 code through the Engram row reader, at the smallest, a middle and the largest exact scale. */
static void e4m3_table_matches(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    float *value = unit_f32("table.e4m3.f32", 256);
    const unsigned char bytes[] = {18, 127, 246};
    for (int b = 0; b < 3; b++) {
        unsigned char code[256], scale[8];
        pl_bf16 y[256];
        for (int i = 0; i < 256; i++)
            code[i] = (unsigned char)i;
        memset(scale, bytes[b], sizeof scale);
        vec->fp8_row(y, code, scale, 256);
        for (int i = 0; i < 256; i++)
            if ((i & 127) != 127)
                assert_int_equal(y[i], pl_bf16_from_f32(ldexpf(value[i], bytes[b] - 127)));
    }
    free(value);
}

/* The reference's table of E4M3 roundings. Beside a 448 and with |x| <= 448 the scale of a group is 1, so its codes are
 * those of the values themselves; round.e4m3.x is float32, so only the values that are bfloat16 can be asked for. */
static void e4m3_rounding_matches(pl_kernels *k)
{
    const pl__vec *vec = pl__cpu_of(k)->vec;
    int count, asked = 0;
    float *x = unit("round.e4m3.x.f32", sizeof *x, &count);
    unsigned char *want = unit_u8("round.e4m3.code.u8", count);
    for (int i = 0; i < count; i++) {
        pl_bf16 group[GROUP] = {pl_bf16_from_f32(448.0f), pl_bf16_from_f32(x[i])};
        if (pl_bf16_to_f32(group[1]) != x[i] || fabsf(x[i]) > 448)
            continue;
        unsigned char code[GROUP], scale;
        vec->round_q8(NULL, code, &scale, group, GROUP);
        assert_int_equal(scale, 127);
        assert_int_equal(code[1], want[i]);
        asked++;
    }
    print_message("%s: %d of %d roundings to E4M3 asked for\n", k->name, asked, count);
    assert_true(asked > 100);
    free(x), free(want);
}

static void test_q8(void **state)
{
    (void)state;
    on_every_isa(q8_matches);
}
static void test_q4e8(void **state)
{
    (void)state;
    on_every_isa(q4e8_matches);
}
static void test_q4e4(void **state)
{
    (void)state;
    on_every_isa(q4e4_matches);
}
static void test_e4m3(void **state)
{
    (void)state;
    on_every_isa(e4m3_table_matches);
    on_every_isa(e4m3_rounding_matches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_q8), cmocka_unit_test(test_q4e8),
                                       cmocka_unit_test(test_q4e4), cmocka_unit_test(test_e4m3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
