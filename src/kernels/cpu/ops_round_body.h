/* Roundings to FP8 and FP4, packing, unpacking, rotation. Included once an instruction set by ops_body.h.
 *
 * Values are rounded by adding and subtracting a power of two whose last place is the wanted step: the adder rounds to
 * nearest even, and ties to an even multiple of the step are ties to an even code. Loops are over the group, without
 * branches, so that the compiler can take several elements at once; every line is exact or one IEEE rounding. */

/* Largest magnitude of a group, as bits: the order of non-negative floats is the order of their bits. */
PL__IN uint32_t group_max(const pl_bf16 *x, int n)
{
    uint32_t top = 0;
    for (int i = 0; i < n; i++) {
        uint32_t u = x[i] & 0x7fffu;
        top = u > top ? u : top;
    }
    return top << 16;
}

/* Exponent byte of the smallest power of two at or above positive normal t */
PL__IN uint32_t ceil_log2_byte(float t)
{
    uint32_t u = pl_f32_bits(t);
    return (u >> 23) + ((u & 0x7fffff) != 0);
}

PL__IN float power_of_two(uint32_t byte)
{
    return pl_f32_from_bits(byte ? byte << 23 : 0x400000); /* byte 0 is 2^-127 */
}

/* v to the nearest multiple of 2^(e - bits), e its exponent but at least `low`, |v| clamped to `top` first. Bits of
 * magnitudes are taken as int32, because AVX2 has no unsigned compare and the loop would leave the vectors. */
PL__IN float near_step(float v, int32_t low, int32_t top, int bits)
{
    int32_t mag = (int32_t)(pl_f32_bits(v) & 0x7fffffff);
    mag = mag > top ? top : mag;
    int32_t e = mag & 0x7f800000;
    e = e < low ? low : e;
    float step = pl_f32_from_bits((uint32_t)e + ((uint32_t)(23 - bits) << 23)); /* its last place is 2^(e - bits) */
    float near = (pl_f32_from_bits((uint32_t)mag) + step) - step;
    return pl_f32_from_bits(pl_f32_bits(near) | (pl_f32_bits(v) & 0x80000000));
}

/* a where the mask is all ones, b where it is zero */
PL__IN uint32_t pick(uint32_t mask, uint32_t a, uint32_t b)
{
    return (a & mask) | (b & ~mask);
}

/* E4M3: 3 bits below the leading one, steps of 2^-9 below 2^-6, at most 448 */
PL__IN float near_e4m3(float v)
{
    return near_step(v, 121 << 23, 0x43e00000, 3);
}

/* Code of an E4M3 value */
PL__IN unsigned char code_e4m3(float v)
{
    uint32_t u = pl_f32_bits(v), mag = u & 0x7fffffff;
    uint32_t normal = (mag >> 20) - (120u << 3);
    uint32_t small = pl_f32_bits(pl_f32_from_bits(mag) + 16384.0f) & 7; /* the last place of 2^14 is 2^-9 */
    return (unsigned char)(pick(-(uint32_t)(mag < 121u << 23), small, normal) | (u >> 24 & 0x80));
}

/* E2M1: 0, .5, 1, 1.5, 2, 3, 4, 6 */
PL__IN float near_e2m1(float v)
{
    return near_step(v, 127 << 23, 0x40c00000, 1);
}

PL__IN unsigned code_e2m1(float v)
{
    uint32_t u = pl_f32_bits(v), mag = u & 0x7fffffff;
    uint32_t normal = (mag >> 22) - (126u << 1);
    uint32_t small = mag != 0; /* 0.5 */
    return pick(-(uint32_t)(mag < 127u << 23), small, normal) | (u >> 28 & 8);
}

static float decode_e4m3(unsigned char c)
{
    uint32_t mag = c & 0x7fu;
    float v = mag < 8 ? (float)mag * 0x1p-9f : pl_f32_from_bits((mag << 20) + (120u << 23));
    return c & 0x80 ? -v : v;
}

PL__IN void group_q8(float *y, unsigned char *scale, const pl_bf16 *x)
{
    float a = pl_f32_from_bits(group_max(x, 32));
    a = a > 1e-4f ? a : 1e-4f;
    uint32_t byte = ceil_log2_byte(a * (1.0f / 448.0f));
    float inverse = power_of_two(254 - byte);
    for (int i = 0; i < 32; i++)
        y[i] = near_e4m3(pl_bf16_to_f32(x[i]) * inverse);
    *scale = (unsigned char)byte;
}

static void op_round_q8(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n)
{
    for (size_t g = 0; g < n; g += 32) {
        float v[32];
        unsigned char byte;
        group_q8(v, &byte, x + g);
        if (code) {
            for (int i = 0; i < 32; i++)
                code[g + (size_t)i] = code_e4m3(v[i]);
            scale[g / 32] = byte;
        }
        if (y) {
            float s = power_of_two(byte);
            for (int i = 0; i < 32; i++)
                y[g + (size_t)i] = (pl_bf16)(pl_f32_bits(v[i] * s) >> 16); /* exact */
        }
    }
}

/* `n` values of one group with their scale: codes two a byte, low nibble first, and values */
PL__IN void put_e2m1(pl_bf16 *y, unsigned char *code, const float *v, float s, int n)
{
    if (code)
        for (int i = 0; i < n / 2; i++)
            code[i] = (unsigned char)(code_e2m1(v[2 * i]) | code_e2m1(v[2 * i + 1]) << 4);
    if (y)
        for (int i = 0; i < n; i++)
            y[i] = (pl_bf16)(pl_f32_bits(v[i] * s) >> 16); /* exact */
}

static void op_round_q4e8(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n)
{
    for (size_t g = 0; g < n; g += 32) {
        float v[32], a = pl_f32_from_bits(group_max(x + g, 32));
        a = a > 6 * 0x1p-126f ? a : 6 * 0x1p-126f;
        uint32_t byte = ceil_log2_byte(a * (1.0f / 6.0f));
        float inverse = power_of_two(254 - byte);
        for (int i = 0; i < 32; i++)
            v[i] = near_e2m1(pl_bf16_to_f32(x[g + (size_t)i]) * inverse);
        if (code)
            scale[g / 32] = (unsigned char)byte;
        put_e2m1(y ? y + g : NULL, code ? code + g / 2 : NULL, v, power_of_two(byte), 32);
    }
}

static void op_round_q4e4(pl_bf16 *y, unsigned char *code, unsigned char *scale, const pl_bf16 *x, size_t n)
{
    for (size_t g = 0; g < n; g += 16) {
        float v[16], a = pl_f32_from_bits(group_max(x + g, 16));
        a = a > 6 * 0x1p-9f ? a : 6 * 0x1p-9f;
        float s = near_e4m3(a / 6.0f);
        for (int i = 0; i < 16; i++)
            v[i] = near_e2m1(pl_bf16_to_f32(x[g + (size_t)i]) / s);
        if (code)
            scale[g / 16] = code_e4m3(s);
        put_e2m1(y ? y + g : NULL, code ? code + g / 2 : NULL, v, s, 16);
    }
}

/* y = e4m3 * 2^(scale - 127); subnormal codes by (1 + m/8) 2^-6 - 2^-6, as denormal arithmetic is slow on some cores */
PL__IN void fp8_group(float *y, const unsigned char *code, float s)
{
    for (int i = 0; i < 32; i++) {
        uint32_t mag = code[i] & 0x7fu, sign = (code[i] & 0x80u) << 24;
        float normal = pl_f32_from_bits((mag << 20) + (120u << 23));
        float small = pl_f32_from_bits((mag << 20) + (121u << 23)) - 0x1p-6f;
        uint32_t v = pick(-(uint32_t)(mag < 8), pl_f32_bits(small), pl_f32_bits(normal));
        y[i] = pl_f32_from_bits(v | sign) * s;
    }
}

static void op_unpack_window(float *y, const unsigned char *row, size_t dim)
{
    for (size_t g = 0; g < dim; g += 32)
        fp8_group(y + g, row + g, power_of_two(row[dim + g / 32]));
}

static void op_fp8_row(pl_bf16 *y, const unsigned char *code, const unsigned char *scale, size_t n)
{
    for (size_t g = 0; g < n; g += 32) {
        float v[32];
        fp8_group(v, code + g, power_of_two(scale[g / 32]));
        for (int i = 0; i < 32; i++)
            y[g + (size_t)i] = pl_bf16_from_f32(v[i]);
    }
}

static void op_unpack_entry(float *y, const unsigned char *row, size_t dim)
{
    for (size_t g = 0; g < dim; g += 16) {
        float half = 0.5f * decode_e4m3(row[dim / 2 + g / 16]);
        v16_store(y + g, v16_mul(v16_twice_e2m1(row + g / 2), v16_set1(half)));
    }
}

static void op_rotate(pl_bf16 *x, const float *cosine, const float *sine, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        float a = pl_bf16_to_f32(x[2 * i]), b = pl_bf16_to_f32(x[2 * i + 1]);
        float ac = a * cosine[i], bs = b * sine[i], as = a * sine[i], bc = b * cosine[i];
        x[2 * i] = pl_bf16_from_f32(ac - bs);
        x[2 * i + 1] = pl_bf16_from_f32(as + bc);
    }
}
