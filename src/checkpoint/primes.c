#include "checkpoint/primes.h"

static uint32_t power_mod(uint32_t base, uint32_t exponent, uint32_t n)
{
    uint64_t result = 1, b = base % n;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = result * b % n;
        b = b * b % n;
    }
    return (uint32_t)result;
}

/* Does base show that the odd number n = d * 2^s + 1 is composite? (Miller-Rabin) */
static bool is_witness(uint32_t base, uint32_t d, int s, uint32_t n)
{
    uint64_t x = power_mod(base, d, n);
    if (x == 0 || x == 1 || x == n - 1)
        return false; /* x == 0: base is a multiple of n, which says nothing */
    for (int i = 1; i < s; i++) {
        x = x * x % n;
        if (x == n - 1)
            return false;
    }
    return true;
}

bool pl_is_prime(uint32_t n)
{
    if (n < 4)
        return n >= 2;
    if (n % 2 == 0)
        return false;
    uint32_t d = n - 1;
    int s = 0;
    for (; d % 2 == 0; d /= 2)
        s++;
    /* The bases 2, 7 and 61 decide every n below 4,759,123,141 (Jaeschke 1993). */
    return !is_witness(2, d, s, n) && !is_witness(7, d, s, n) && !is_witness(61, d, s, n);
}

uint32_t pl_next_prime(uint32_t n)
{
    while (!pl_is_prime(n))
        n++;
    return n;
}
