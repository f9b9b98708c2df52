#include "base/rowmath_isa.h"

#include "base/mathfn.h"

#define PL_ROWMATH      pl__rowmath_avx512
#define PL_ROWMATH_NAME "avx512"
#define PLM_EXTRA       "base/rowmath_body.h"
#include "base/mathfn_avx512.h"
