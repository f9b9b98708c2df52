#define PL__V16_AVX512
#define PL__VEC_NAME pl__vec_avx512
#include "kernels/cpu/ops_body.h"
