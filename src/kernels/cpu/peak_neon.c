#define PEAK_FN           pl__peak_fma_neon
#define PEAK_READ_FN      pl__peak_read_neon
#define PEAK_LANES        4
#define PEAK_FMA(a, b, c) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(a) : "w"(b), "w"(c))
#include "kernels/cpu/peak_body.h"
