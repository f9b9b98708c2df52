/* The bucket sizes of the Engram tables (model spec 3.6). */
#ifndef PL_CHECKPOINT_PRIMES_H
#define PL_CHECKPOINT_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Exact for every 32-bit number. */
bool pl_is_prime(uint32_t n);

/* The smallest prime >= n. n is at most 2^31, so that there is one. */
uint32_t pl_next_prime(uint32_t n);

#endif
