#define PL__V16_AVX2
#define PL__VEC_NAME pl__vec_avx2
#include "kernels/cpu/ops_body.h"
