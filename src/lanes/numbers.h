/* What was done for a stream, or for all of them: counted as it happens, read by people. */
#ifndef PL_LANES_NUMBERS_H
#define PL_LANES_NUMBERS_H

#include <stdint.h>

typedef struct pl_numbers {
    uint64_t rounds;       /* windows that were run */
    uint64_t plain_rounds; /* of them, of one row and without an ask */
    uint64_t rows;         /* of all windows */
    uint64_t asks;         /* proposals of the drafter */
    uint64_t drafted;      /* drafts verified, copied ones included */
    uint64_t accepted;     /* of them, kept */
    uint64_t copied;       /* drafts verified that came from the context */
    uint64_t copied_kept;
} pl_numbers;

static inline void pl_numbers_add(pl_numbers *to, const pl_numbers *n)
{
    to->rounds += n->rounds;
    to->plain_rounds += n->plain_rounds;
    to->rows += n->rows;
    to->asks += n->asks;
    to->drafted += n->drafted;
    to->accepted += n->accepted;
    to->copied += n->copied;
    to->copied_kept += n->copied_kept;
}

#endif
