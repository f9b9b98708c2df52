/* Values that keep the forward finite and lively: norm gains near 1, weights near 1 / sqrt(inputs), logits a few units
 * wide. Only IEEE operations make them (+ - x / and sqrt), so that every machine writes the same bytes. */
#include "checkpoint/synth_values.h"

#include "base/bf16.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30; /* splitmix64 */
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static uint64_t word(const pl__values *v, uint64_t number)
{
    return mix(v->key + number * 0x9e3779b97f4a7c15);
}

static uint64_t make_key(const char *name, uint64_t seed)
{
    uint64_t h = mix(seed + 0x9e3779b97f4a7c15);
    for (; *name; name++)
        h = mix(h ^ (unsigned char)*name);
    return h;
}

/* The value of an E4M3 code below 127. */
static float e4m3_value(int code)
{
    int e = code >> 3, m = code & 7;
    return e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
}

/* The nearest E4M3 code, the lower one on ties; |x| <= 448. */
static unsigned char e4m3_code(float x)
{
    int best = 0;
    for (int code = 1; code < 127; code++)
        if (fabsf(e4m3_value(code) - fabsf(x)) < fabsf(e4m3_value(best) - fabsf(x)))
            best = code;
    return (unsigned char)(best | (x < 0 ? 0x80 : 0));
}

/* Standard deviation of the FP8 codes below, and of FP4 codes when all 16 are equally likely. */
static const double fp8_sigma = 240 * 0.408248, fp4_sigma = 2.926174;

/* Codes at the 256 quantiles of a triangular distribution on [-240, 240]. */
static void fp8_codes(unsigned char table[256])
{
    for (int i = 0; i < 256; i++) {
        float u = (2 * (float)i + 1) / 256 - 1; /* -1..1 */
        float x = 240 * (1 - sqrtf(1 - fabsf(u)));
        table[i] = e4m3_code(u < 0 ? -x : x);
    }
    table[127] = 0x80; /* the two smallest: both zeros occur in real checkpoints */
    table[128] = 0x00;
}

/* Scale bytes b with 2^(b - 127) x code_sigma near target: mostly one, some one lower or higher. */
static void scale_bytes(unsigned char table[256], double target, double code_sigma)
{
    int b = 20;
    while (b < 240 && ldexp(code_sigma, b - 127) * 1.41421356 < target)
        b++;
    for (int i = 0; i < 256; i++)
        table[i] = (unsigned char)(i < 40 ? b - 1 : i < 216 ? b : b + 1);
}

/* Standard deviation wanted of a tensor's values (of the weights, for scales). */
static double sigma_of(const pl_item *item)
{
    double in = item->in > 0 ? item->in : 1;
    switch (item->role) {
    case PL_ROLE_TABLE:
    case PL_ROLE_TABLE_SCALE: return 0.5;
    case PL_ROLE_EMBEDDING: return 1;
    case PL_ROLE_GAIN: return 0.1;
    case PL_ROLE_BIAS: return 0.08;
    default: break;
    }
    bool router = item->dtype == PL_BF16 && strstr(item->name, ".ffn.gate.weight") != NULL;
    double lift = item->part == PL_PART_HEAD ? 3 : router ? 1.5 : 1;
    return lift / sqrt(in);
}

static void init_f32(pl__values *v, const pl_config *config, const pl_item *item, double sigma)
{
    v->mean = item->role == PL_ROLE_HC_SCALE ? 0.7f : 0;
    v->spread = (float)(sigma / 0.408248);
    if (item->role == PL_ROLE_SINK || item->role == PL_ROLE_HC_BASE)
        v->spread = 1;
    if (item->role == PL_ROLE_HC_SCALE)
        v->spread = 0.3f;
    v->streams = item->role == PL_ROLE_HC_BASE ? config->hc_mult : 0;
}

void pl__values_init(pl__values *v, const pl_config *config, const pl_item *item, uint64_t seed)
{
    double sigma = sigma_of(item);
    *v = (pl__values){.key = make_key(item->name, seed), .dtype = item->dtype};
    switch (item->dtype) {
    case PL_F32: init_f32(v, config, item, sigma); return;
    case PL_BF16:
        for (int d = -255; d <= 255; d++) /* the difference of two uniform bytes has a deviation of 104.51 */
            v->bf16[d + 255] =
                pl_bf16_from_f32((item->role == PL_ROLE_GAIN ? 1.0f : 0.0f) + (float)d / 104.51f * (float)sigma);
        return;
    case PL_F8_E4M3: fp8_codes(v->byte); return;
    case PL_F8_E8M0: scale_bytes(v->byte, sigma, item->role == PL_ROLE_SCALE_ROW ? fp4_sigma : fp8_sigma); return;
    case PL_I8:
        for (int i = 0; i < 256; i++) /* two E2M1 codes, all 16 equally likely */
            v->byte[i] = (unsigned char)i;
    }
}

/* The words' bytes, in memory order (little-endian, as the format demands and every machine we run on is). */
static uint64_t word_bytes(const pl__values *v, uint64_t x)
{
    uint64_t out = 0;
    for (int i = 0; i < 8; i++)
        out |= (uint64_t)v->byte[x >> (8 * i) & 255] << (8 * i);
    return out;
}

static uint64_t word_bf16(const pl__values *v, uint64_t x)
{
    uint64_t out = 0;
    for (int i = 0; i < 4; i++) {
        int a = (int)(x >> (16 * i) & 255), b = (int)(x >> (16 * i + 8) & 255);
        out |= (uint64_t)v->bf16[a - b + 255] << (16 * i);
    }
    return out;
}

static uint64_t word_f32(const pl__values *v, uint64_t x, uint64_t number)
{
    uint64_t out = 0;
    for (int i = 0; i < 2; i++) {
        int a = (int)(x >> (32 * i) & 65535), b = (int)(x >> (32 * i + 16) & 65535);
        float value = v->mean + v->spread * ((float)(a - b) / 65536);
        uint64_t at = 2 * number + (uint64_t)i, s = (uint64_t)v->streams;
        if (s && at >= 2 * s && (at - 2 * s) % (s + 1) == 0)
            value += 1.5f;
        out |= (uint64_t)pl_f32_bits(value) << (32 * i);
    }
    return out;
}

void pl__values_fill(const pl__values *v, uint64_t at, unsigned char *out, size_t n)
{
    for (uint64_t number = at / 8; n; number++) {
        uint64_t x = word(v, number);
        x = v->dtype == PL_BF16 ? word_bf16(v, x) : v->dtype == PL_F32 ? word_f32(v, x, number) : word_bytes(v, x);
        size_t part = n < 8 ? n : 8;
        memcpy(out, &x, part);
        out += part;
        n -= part;
    }
}
