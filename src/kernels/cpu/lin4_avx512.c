/* FP4 products for a machine with AVX-512 F, BW, VL, DQ. */
#define D8_TABLE pl__d8_avx512
#define D8_TARGET
#define D8_PAIRS(t, a, b) _mm512_add_epi32(t, _mm512_madd_epi16(a, b))
/* sums of two stay below 2 * 7 * 12, far from the saturation of maddubs */
#define D8_QUADS(t, u, s) _mm512_add_epi32(t, _mm512_madd_epi16(_mm512_maddubs_epi16(u, s), _mm512_set1_epi16(1)))
#include "kernels/cpu/lin4_avx512_body.h"
