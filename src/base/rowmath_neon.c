#include "base/rowmath_isa.h"

#include "base/mathfn.h"

#define PL_ROWMATH      pl__rowmath_neon
#define PL_ROWMATH_NAME "neon"
#define PLM_EXTRA       "base/rowmath_body.h"
#include "base/mathfn_neon.h"
