/* FP4 products for a machine with AVX-512 VNNI as well: multiply and add are one instruction. */
#define D8_TABLE          pl__d8_vnni
#define D8_TARGET         __attribute__((target("avx512vnni")))
#define D8_PAIRS(t, a, b) _mm512_dpwssd_epi32(t, a, b)
#define D8_QUADS(t, u, s) _mm512_dpbusd_epi32(t, u, s)
#include "kernels/cpu/lin4_avx512_body.h"
