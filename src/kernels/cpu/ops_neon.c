#define PL__V16_NEON
#define PL__VEC_NAME pl__vec_neon
#include "kernels/cpu/ops_body.h"
