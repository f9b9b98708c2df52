/* A prompt as a list of pieces: control tokens by their spelling, and plain text between them.
 *
 * Control pieces come from the server's own code only. Text pieces are tokenised with added-token matching off, so
 * nothing that a user, a tool or a file wrote can become a control id. Neighbouring text is one piece, because the
 * official encoder tokenises everything between two control tokens as one string. */
#ifndef PL_TEXT_SEGMENTS_H
#define PL_TEXT_SEGMENTS_H

#include "base/buf.h"

struct pl_tokenizer;
struct pl_ids;

typedef struct pl_segment {
    bool control;  /* the spelling of one added token; else plain text */
    size_t offset; /* in pl_segments.text */
    size_t len;
} pl_segment;

typedef struct pl_segments {
    pl_buf text;       /* every piece's bytes, in order: the prompt as the official encoder would print it */
    pl_segment *items; /* count of them */
    size_t count;
    size_t room; /* private */
} pl_segments;

/* An empty list whose text may grow to cap bytes. */
void pl_segments_init(pl_segments *segments, size_t cap);
void pl_segments_free(pl_segments *segments);

/* Append one control token by its spelling (NUL-terminated). PL_ELIMIT, PL_ENOMEM. */
pl_status pl_segments_control(pl_segments *segments, const char *spelling, pl_error *err);
/* Append len bytes of text; empty text adds nothing, text after text extends the last piece. Same errors. */
pl_status pl_segments_text(pl_segments *segments, const char *bytes, size_t len, pl_error *err);

/* Append the ids of every piece to ids. PL_ENOTFOUND naming the spelling when the tokenizer has no such added token,
 * the tokenizer's errors else. */
pl_status pl_segments_encode(const struct pl_tokenizer *tokenizer, const pl_segments *segments, struct pl_ids *ids,
                             pl_error *err);

#endif
