#define PEAK_FN           pl__peak_fma_avx2
#define PEAK_READ_FN      pl__peak_read_avx2
#define PEAK_LANES        8
#define PEAK_FMA(a, b, c) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(b), "x"(c))
#include "kernels/cpu/peak_body.h"
