#include "model/take.h"

#include "base/num.h"

pl_status pl__take(pl__taker *t, bool host, void **out, size_t count, size_t size, const char *what, pl_error *err)
{
    *out = NULL;
    size_t bytes;
    uint64_t *sum = host ? &t->host_bytes : &t->bytes;
    if (!pl_mul_size(count, size, &bytes) || pl_arena_need(bytes) == SIZE_MAX ||
        __builtin_add_overflow(*sum, (uint64_t)pl_arena_need(bytes), sum) || *sum > (uint64_t)1 << 50)
        return pl_fail(err, PL_ELIMIT, "memory plan: %s: %zu times %zu bytes is more than any machine has", what, count,
                       size);
    if (!bytes)
        return PL_OK;
    if (!host)
        return t->kernels ? t->kernels->reserve(t->kernels, bytes, what, out, err) : PL_OK;
    if (t->host && !(*out = pl_arena_take(t->host, bytes)))
        return pl_fail(err, PL_EFAULT, "memory plan: %s: %zu bytes were not planned for", what, bytes);
    return PL_OK;
}
