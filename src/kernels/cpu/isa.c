/* Which instruction sets this machine, its operating system and this build have. */
#include "kernels/cpu/cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct cpu_bits {
    bool avx2, avx512;
    unsigned extra;
} cpu_bits;

/* The state components that the operating system saves (XCR0); wide registers are unusable without. */
static unsigned xcr0(void)
{
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

static cpu_bits look(void)
{
    cpu_bits r = {0};
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return r;
    unsigned os = xcr0();
    bool fma = (c & bit_FMA) && (c & bit_F16C) && (c & bit_AVX);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return r;
    r.avx2 = fma && (b & bit_AVX2) && (os & 0x6) == 0x6;
    unsigned want = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    r.avx512 = r.avx2 && (b & want) == want && (os & 0xe6) == 0xe6;
    if (r.avx512) {
        r.extra |= c & bit_AVX512VNNI ? PL__EXTRA_VNNI : 0;
        r.extra |= c & bit_AVX512VBMI ? PL__EXTRA_VBMI : 0;
        if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
            r.extra |= a & (1u << 5) ? PL__EXTRA_BF16 : 0;
    }
    return r;
}
#endif

bool pl__isa_has(pl__isa isa)
{
#if defined(__x86_64__)
    if (isa == PL__ISA_AVX2)
        return look().avx2;
    if (isa == PL__ISA_AVX512)
        return look().avx512;
#elif defined(__aarch64__)
    if (isa == PL__ISA_NEON)
        return true;
#endif
    return isa == PL__ISA_SCALAR;
}

unsigned pl__isa_extra(void)
{
#if defined(__x86_64__)
    return look().extra;
#else
    return 0;
#endif
}

const char *pl__isa_name(pl__isa isa)
{
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    return names[isa];
}

pl_status pl__isa_pick(const char *name, pl__isa *isa, pl_error *err)
{
    static const pl__isa best_first[] = {PL__ISA_AVX512, PL__ISA_AVX2, PL__ISA_NEON, PL__ISA_SCALAR};
    bool any = strcmp(name, "auto") == 0, known = any;
    for (int i = 0; i < 4; i++) {
        bool this_one = strcmp(name, pl__isa_name(best_first[i])) == 0;
        known |= this_one;
        if ((any || this_one) && pl__isa_has(best_first[i])) {
            *isa = best_first[i];
            return PL_OK;
        }
    }
    if (known)
        return pl_fail_param(err, PL_EINVAL, "isa", "isa: this machine or build has no %s", name);
    return pl_fail_param(err, PL_EINVAL, "isa", "isa: auto, scalar, avx2, avx512 or neon expected, found \"%.32s\"",
                         name);
}
