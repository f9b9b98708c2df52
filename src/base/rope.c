#include "base/rope.h"

#include "base/mathfn.h"

/* The release's tables were computed by a GPU, whose powf is not correctly rounded: at these two pairs of the 64-dim
 * table it came out one unit in the last place low (tests/vectors/tiny-a/unit/rope.plain.freq_gpu.f32). At position one
 * million that is worth up to 0.004 in a cosine, so the GPU's values are kept. They follow from no formula (the error
 * is that of the hardware's 2^x), hence a list. */
static const struct {
    int dims, pair;
    double theta;
} one_low[] = {{64, 11, 10000.0}, {64, 25, 10000.0}};

/* theta^(2i/dims): the exponent in float32, the power rounded to float32. */
static float power(double theta, int dims, int i)
{
    float p = (float)pl_pow(theta, (double)((float)(2 * i) / (float)dims));
    for (size_t k = 0; k < sizeof one_low / sizeof *one_low; k++)
        if (one_low[k].theta == theta && one_low[k].dims == dims && one_low[k].pair == i)
            p = pl_f32_from_bits(pl_f32_bits(p) - 1);
    return p;
}

/* The dimension whose wavelength makes `turns` turns within the original context. */
static double turning_point(const pl_rope_yarn *y, int dims, double theta, double turns)
{
    return dims * pl_log(y->original / (turns * 2 * 3.14159265358979323846)) / (2 * pl_log(theta));
}

void pl_rope_frequencies(float *freq, int dims, double theta, const pl_rope_yarn *yarn)
{
    float low = 0, slope = 0, factor = 1;
    if (yarn) {
        double lo = fmax(floor(turning_point(yarn, dims, theta, yarn->beta_fast)), 0);
        double hi = fmin(ceil(turning_point(yarn, dims, theta, yarn->beta_slow)), dims - 1);
        low = (float)lo;
        /* A GPU divides a tensor by a host number by multiplying with its float32 reciprocal; pair 24 of the release's
         * YaRN table is the one where that shows (by four units). */
        slope = 1.0f / (float)fmax(hi - lo, 0.001);
        factor = (float)yarn->factor;
    }
    for (int i = 0; i < dims / 2; i++) {
        float f = 1.0f / power(theta, dims, i);
        if (yarn) {
            float ramp = ((float)i - low) * slope;
            float smooth = 1.0f - fminf(fmaxf(ramp, 0.0f), 1.0f);
            f = f / factor * (1.0f - smooth) + f * smooth;
        }
        freq[i] = f;
    }
}
