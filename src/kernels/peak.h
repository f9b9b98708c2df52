/* What this machine can do at best, for `paceline bench`: the ceilings against which the operations are held. */
#ifndef PL_KERNELS_PEAK_H
#define PL_KERNELS_PEAK_H

#include <stddef.h>
#include <stdint.h>

/* Loops that read memory. Which is fastest depends on the machine and on the threads: its read rate is the best of
 * all. */
enum { PL_PEAK_READS = 6 };
/* How loop `way` (0 .. PL_PEAK_READS - 1) reads: "1 stream, 4 KB ahead". */
const char *pl_peak_read_name(int way);
/* Read `bytes` (a multiple of 4096, data aligned to 64) once with loop `way` and the registers of an instruction set
 * (as below), and return something that depends on all of them. Any thread. */
uint64_t pl_peak_read(const char *isa, int way, const void *data, size_t bytes);

/* Independent fused multiply-adds in the registers of an instruction set ("scalar", "avx2", "avx512", "neon"; it
 * must be one that this machine has). Returns the floating-point operations done (2 a multiply-add), roughly 2^20 *
 * rounds. *sink receives their result. Any thread. */
double pl_peak_fma(const char *isa, int rounds, float *sink);

#endif
