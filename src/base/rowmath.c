#include "base/rowmath_isa.h"

#include <string.h>

#define PL_ROWMATH      pl__rowmath_scalar
#define PL_ROWMATH_NAME "scalar"
#define PLM_EXTRA       "base/rowmath_body.h"
#include "base/mathfn.h"

typedef struct choice {
    const pl_rowmath *table;
    bool here; /* this CPU has the instructions */
} choice;

const pl_rowmath *pl_rowmath_for(const char *isa)
{
    const choice choices[] = {
#if defined(__x86_64__)
        {&pl__rowmath_avx512, __builtin_cpu_supports("avx512f") != 0},
        {&pl__rowmath_avx2, __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0},
#elif defined(__aarch64__)
        {&pl__rowmath_neon, true},
#endif
        {&pl__rowmath_scalar, true},
    };
    bool any = !isa || strcmp(isa, "auto") == 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (choices[i].here && (any || strcmp(isa, choices[i].table->name) == 0))
            return choices[i].table;
    return NULL;
}
