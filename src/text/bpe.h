/* Byte-pair merging inside one piece: while any pair of neighbours has a merge, the one of lowest rank (leftmost among
 * equals) becomes one symbol. */
#ifndef PL_TEXT_BPE_H
#define PL_TEXT_BPE_H

#include "text/ids.h"

typedef struct pl__merge {
    int32_t left, right; /* the pair */
    uint32_t rank;       /* UINT32_MAX: an empty slot */
    int32_t id;          /* what it becomes */
} pl__merge;

/* Read only once it is built. */
typedef struct pl__bpe {
    int32_t byte_id[256]; /* the token of each byte */
    pl__merge *slots;     /* open addressing, at most half full; slots is a power of two */
    uint32_t mask;        /* slots - 1 */
    int32_t *merged;      /* [ranks] what the merge of each rank becomes */
    uint32_t ranks;
} pl__bpe;

/* Room for `ranks` merges. PL_ENOMEM. */
pl_status pl__bpe_init(pl__bpe *bpe, uint32_t ranks, pl_error *err);
void pl__bpe_free(pl__bpe *bpe);
/* Bytes of memory that it holds once all its merges are added, the struct itself left out. */
size_t pl__bpe_bytes(const pl__bpe *bpe);

/* Add the next merge (rank = number of merges so far); false when the pair has one already. */
bool pl__bpe_add(pl__bpe *bpe, int32_t left, int32_t right, int32_t id);

/* What one call needs for its work: lists for long pieces, and the words seen lately. Not shared between threads. */
typedef struct pl__bpe_work pl__bpe_work;

/* text_len is the size of the whole text, by which the work is sized. NULL without memory. */
pl__bpe_work *pl__bpe_work_open(size_t text_len);
void pl__bpe_work_close(pl__bpe_work *work);

/* Append the ids of one piece (len bytes, len > 0). Time: n log n in its length. PL_ELIMIT (cap of out), PL_ENOMEM. */
pl_status pl__bpe_encode(const pl__bpe *bpe, pl__bpe_work *work, const char *piece, size_t len, pl_ids *out,
                         pl_error *err);

#endif
