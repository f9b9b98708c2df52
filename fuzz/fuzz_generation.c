/* generation_config.json from arbitrary bytes: a clean refusal with a message, or values inside their ranges. */
#include "checkpoint/generation.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_generation g;
    pl_error err;
    pl_status status = pl_generation_parse(&g, (const char *)data, size, "fuzz", &err);
    if (status != PL_OK) {
        if (status != PL_EFORMAT || err.status != status || err.message[0] == '\0' || g.has != 0 || g.eos_count != 0)
            abort();
        return 0;
    }
    if ((g.has & PL_GEN_TEMPERATURE) && !(g.temperature >= 0 && g.temperature <= 2))
        abort();
    if ((g.has & PL_GEN_TOP_P) && !(g.top_p > 0 && g.top_p <= 1))
        abort();
    if ((g.has & PL_GEN_MIN_P) && !(g.min_p >= 0 && g.min_p <= 1))
        abort();
    if ((g.has & PL_GEN_REPETITION) && !(g.repetition_penalty > 0 && g.repetition_penalty <= 100))
        abort();
    if ((g.has & PL_GEN_TOP_K) && g.top_k < 0)
        abort();
    if (g.eos_count < 0 || g.eos_count > PL_GEN_EOS_MAX)
        abort();
    for (int i = 0; i < g.eos_count; i++)
        for (int j = 0; j <= i; j++)
            if (g.eos[i] < 0 || (j < i && g.eos[j] == g.eos[i]))
                abort();
    return 0;
}
