#define PEAK_FN           pl__peak_fma_avx512
#define PEAK_READ_FN      pl__peak_read_avx512
#define PEAK_LANES        16
#define PEAK_FMA(a, b, c) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(b), "v"(c))
#include "kernels/cpu/peak_body.h"
