/* Loops over rows of float32 with our own functions (mathfn.h), in the widest instruction set of the machine. The
 * results are the same bits in all of them: element operations are, and sums keep one order. Any thread; no state. */
#ifndef PL_BASE_ROWMATH_H
#define PL_BASE_ROWMATH_H

#include <stdbool.h>
#include <stddef.h>

typedef enum pl_rowfn {
    PL_ROW_EXP,
    PL_ROW_SIGMOID,
    PL_ROW_SILU,
    PL_ROW_SOFTPLUS,
    PL_ROW_LOG,
    PL_ROW_SIN,
    PL_ROW_COS,
    PL_ROW_FUNCTIONS
} pl_rowfn;

typedef struct pl_rowmath {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */

    /* y[i] = fn(x[i]); y may be x. */
    void (*map)(pl_rowfn fn, float *y, const float *x, size_t n);
    /* The largest of x[n] that is not NaN (+0 rather than -0), -inf when there is none. *odd: some x is NaN or +inf. */
    float (*max)(const float *x, size_t n, bool *odd);
    /* p[i] = pl_expf((x[i] - top) / t). */
    void (*exp)(float *p, const float *x, size_t n, float top, float t);
    /* The sum of pl_expf(x[i] - top) in double: 16 accumulators, element i to accumulator i mod 16, then the tree
     * 8-4-2-1. */
    double (*exp_sum)(const float *x, size_t n, float top);
} pl_rowmath;

/* The loops for "scalar", "avx2", "avx512" or "neon"; "auto" or NULL: the widest here. NULL when this build or this CPU
 * lacks what was asked for. Static storage. */
const pl_rowmath *pl_rowmath_for(const char *isa);

#endif
