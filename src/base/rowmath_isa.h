/* The tables of rowmath, one an instruction set; which of them a build has is CMake's choice. */
#ifndef PL_BASE_ROWMATH_ISA_H
#define PL_BASE_ROWMATH_ISA_H

#include "base/rowmath.h"

extern const pl_rowmath pl__rowmath_scalar;
extern const pl_rowmath pl__rowmath_avx2;
extern const pl_rowmath pl__rowmath_avx512;
extern const pl_rowmath pl__rowmath_neon;

#endif
