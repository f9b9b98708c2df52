/* Asking for weights before they are read.
 *
 * A row of x is multiplied with several neighbouring outputs at a time, so their weights are read as that many
 * streams in turn. Asked for in this order they come at half the machine's rate, or less where rows are short. So
 * while one group of outputs is used, the next group is asked for in the order of addresses, into the second cache;
 * and each stream shortly before its use, into the first. What was tried: docs/ledger.md, "CPU kernels". */
#ifndef PL_KERNELS_CPU_LIN_AHEAD_H
#define PL_KERNELS_CPU_LIN_AHEAD_H

#include <stddef.h>
#include <stdint.h>

enum { PL__LINE = 64, PL__NEAR = 256 };

/* While line `line` of each of `outs` streams is used: ask for as many lines of what begins at `next`. */
static inline __attribute__((always_inline)) void pl__ahead(const unsigned char *next, int line, int outs)
{
    uintptr_t at = (uintptr_t)next + (size_t)line * (size_t)outs * PL__LINE;
#pragma GCC unroll 8
    for (int j = 0; j < outs; j++)
        __builtin_prefetch((const void *)(at + (size_t)j * PL__LINE), 0, 2);
}

/* A stream is about to be read at p. (Arithmetic on numbers: the address may lie outside what p points into.) */
static inline __attribute__((always_inline)) void pl__near(const unsigned char *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + PL__NEAR), 0, 3);
}

/* Ask for the whole lines of `bytes` bytes at p, into the second cache. */
static inline void pl__ahead_bytes(const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += PL__LINE)
        __builtin_prefetch((const void *)((uintptr_t)p + i), 0, 2);
}

#endif
