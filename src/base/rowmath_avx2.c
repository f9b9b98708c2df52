#include "base/rowmath_isa.h"

#include "base/mathfn.h"

#define PL_ROWMATH      pl__rowmath_avx2
#define PL_ROWMATH_NAME "avx2"
#define PLM_EXTRA       "base/rowmath_body.h"
#include "base/mathfn_avx2.h"
