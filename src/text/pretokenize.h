/* The pre-tokenizer: cuts plain text into the pieces inside which the BPE merges. Exactly the reference's three
 * regular expressions, each applied in turn to the pieces of the one before, what matches nothing kept as a piece:
 *
 *   1  \p{N}{1,3}
 *   2  [U+4E00-U+9FA5 U+3040-U+309F U+30A0-U+30FF]+
 *   3  [!-/:-@\[-`{-~][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
 *      | ?[\p{P}\p{S}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * written out as a walk over character classes, so that no backtracking can cost more than linear time. */
#ifndef PL_TEXT_PRETOKENIZE_H
#define PL_TEXT_PRETOKENIZE_H

#include "base/status.h"

/* The exact texts of the three expressions, as a tokenizer.json must spell them (UTF-8, no NUL inside). */
extern const char *const pl__split_regex[3];

/* A walk over one text. The text is valid UTF-8 and outlives the walk. */
typedef struct pl_splitter {
    const char *text;
    size_t len;
    size_t at; /* start of the next piece */
} pl_splitter;

void pl_splitter_init(pl_splitter *split, const char *text, size_t len);

/* The next piece, text[*start, *end); false at the end of the text. The pieces are never empty, follow each other
 * without a gap and cover the text. */
bool pl_splitter_next(pl_splitter *split, size_t *start, size_t *end);

#endif
