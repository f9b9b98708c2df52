/* Drafts from the stream's own context: what followed the last time its newest tokens stood there. Repeated code,
 * quoted text and lists land whole this way, and it costs no pass.
 *
 * An index of every run of four tokens: the newest place of each, chained to the ones before. */
#ifndef PL_LANES_COPY_H
#define PL_LANES_COPY_H

#include <stddef.h>
#include <stdint.h>

enum { PL_COPY_MATCH = 4 /* tokens that must be found again */ };

typedef struct pl__copy {
    int context; /* most tokens */
    int count;   /* tokens indexed */
    uint32_t mask;
    int32_t *newest; /* [mask + 1] place of the last token of a run, or -1 */
    int32_t *before; /* [context] the next older place with the same hash, or -1 */
} pl__copy;

/* Bytes for a context. */
size_t pl__copy_bytes(int context);
/* Use memory of pl__copy_bytes(context), owned by the caller; empty. */
void pl__copy_init(pl__copy *copy, int context, void *memory);
void pl__copy_reset(pl__copy *copy);
/* Index token[count..n): the same array each time, only grown. */
void pl__copy_extend(pl__copy *copy, const int32_t *token, int n);
/* The tokens that are likely behind token[0..n), all indexed: at most `most` into draft. Returns how many (0: nothing
 * was found), and in *match how many tokens before them were found again. */
int pl__copy_find(const pl__copy *copy, const int32_t *token, int n, int32_t *draft, int most, int *match);

#endif
