/* The keyed noise of a draw: a pure function of (seed, absolute position, token id).
 *
 * The arg-max over tokens of (logit - largest) / temperature + G, with G independent standard Gumbel variables, is a
 * draw from the softmax (the Gumbel-max trick). Here G is a hash, not a generator's next output: the target and the
 * drafter, a row drawn early or late, alone or beside others, all see the same noise at the same position.
 *
 *   mix(z)   the finalizer of splitmix64 (Stafford's variant 13): a bijection of 64 bits with full avalanche
 *   key      mix(mix(seed + A) + B * (position + 1))
 *   w        mix(key + A * (token + 1)), A odd: distinct tokens never share a state
 *   u        ((w >> 12) + 1/2) * 2^-52, exact, in (0, 1), and so is 1 - u
 *   G        -log(-log(1 - u)), our own double logarithm (base/mathfn.h)
 *
 * A large G comes from a small u, where 1 - u is still exact: the upper tail follows the distribution down to
 * probabilities of 2^-52, past anything a vocabulary or a reply can ask of it. */
#ifndef PL_MODEL_NOISE_H
#define PL_MODEL_NOISE_H

#include "base/mathfn.h"

static inline uint64_t pl_noise_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t pl_noise_key(uint64_t seed, int64_t position)
{
    return pl_noise_mix(pl_noise_mix(seed + 0x9e3779b97f4a7c15u) + 0xd1342543de82ef95u * ((uint64_t)position + 1));
}

static inline uint64_t pl_noise_bits(uint64_t key, int32_t token)
{
    return pl_noise_mix(key + 0x9e3779b97f4a7c15u * ((uint64_t)(uint32_t)token + 1));
}

static inline double pl_noise_uniform(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

static inline double pl_noise_gumbel(uint64_t bits)
{
    return -pl_log(-pl_log(1.0 - pl_noise_uniform(bits)));
}

/* The noise added to a token's logit / temperature. */
static inline double pl_gumbel(uint64_t seed, int64_t position, int32_t token)
{
    return pl_noise_gumbel(pl_noise_bits(pl_noise_key(seed, position), token));
}

#endif
