/* Planning and reserving with one and the same code: every array of the model is taken through this. */
#ifndef PL_MODEL_TAKE_H
#define PL_MODEL_TAKE_H

#include "base/arena.h"
#include "kernels/kernels.h"

/* Where arrays come from. All NULL: nothing is reserved, only counted (plan.c). */
typedef struct pl__taker {
    pl_kernels *kernels; /* backend memory; NULL: count only */
    pl_arena *host;      /* host memory; NULL: count only */
    uint64_t bytes;      /* backend bytes taken so far, whole lines */
    uint64_t host_bytes; /* host bytes taken so far, whole lines */
} pl__taker;

/* count * size zeroed bytes, 64-byte aligned; *out is NULL when counting. PL_ELIMIT on overflow, PL_ENOMEM. */
pl_status pl__take(pl__taker *t, bool host, void **out, size_t count, size_t size, const char *what, pl_error *err);

/* pointer = zeroed array of `count` of what it points to, in backend or in host memory; returns on failure. */
#define PL_TAKE(t, pointer, count, what, err)                                                                          \
    do {                                                                                                               \
        void *pl_take_;                                                                                                \
        PL_TRY(pl__take(t, false, &pl_take_, (size_t)(count), sizeof *(pointer), what, err));                          \
        (pointer) = pl_take_;                                                                                          \
    } while (0)
#define PL_TAKE_HOST(t, pointer, count, what, err)                                                                     \
    do {                                                                                                               \
        void *pl_take_;                                                                                                \
        PL_TRY(pl__take(t, true, &pl_take_, (size_t)(count), sizeof *(pointer), what, err));                           \
        (pointer) = pl_take_;                                                                                          \
    } while (0)

#endif
