#define PL__V16_SCALAR
#define PL__VEC_NAME pl__vec_scalar
#include "kernels/cpu/ops_body.h"
