/* The exactness check: one path, one set of bits. */
#ifndef PL_TESTS_MODEL_EXACT_H
#define PL_TESTS_MODEL_EXACT_H

#include "model/support.h"

/* Run tokens[0..count) of the checkpoint in `dir` whole, in random pieces, token by token, in windows whose later rows
 * are thrown away, beside other slots, on 1, 2 and 3 threads, on every instruction set of this machine, and compare all
 * logits as bytes with the whole prefill; drafts too, where the checkpoint has a drafter. Randomness from *seed. */
void check_exact(const char *dir, const int32_t *tokens, int count, uint64_t *seed);

#endif
