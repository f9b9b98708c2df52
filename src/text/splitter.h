/* The reply's bytes, as they come, split into reasoning and answer.
 *
 * Feed the bytes of each token; pieces of visible text come out through a callback. Any way of cutting the input gives
 * the same concatenated output. The splitter
 *   - drops newlines at the start of the reasoning, before `</think>` and at the start of the answer;
 *   - drops a second `</think>`;
 *   - matches stop strings on the answer's bytes, across tokens, and ends there;
 *   - holds back an incomplete UTF-8 tail (at most 3 bytes) and writes U+FFFD once for each maximal invalid prefix.
 * `</think>` is matched as the control token (pl_splitter_think_end) or as text: models write both. Special tokens are
 * the caller's to leave out: it feeds no bytes for them. */
#ifndef PL_TEXT_SPLITTER_H
#define PL_TEXT_SPLITTER_H

#include "base/buf.h"

typedef enum pl_split_kind { PL_SPLIT_REASONING, PL_SPLIT_CONTENT } pl_split_kind;

/* Receives len > 0 bytes of complete UTF-8. Not PL_OK: the feed stops and returns it. */
typedef pl_status (*pl_split_sink)(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err);

enum { PL_SPLIT_MAX_STOPS = 16, PL_SPLIT_MAX_STOP_BYTES = 1024 };

typedef struct pl_splitter_options {
    bool in_reasoning; /* the prompt ends inside a thinking block */
    bool continues;    /* the reply continues text of the request: leading newlines stay */
    bool raw;       /* a completion without chat encoding: no thinking, no newline rules; stop strings and UTF-8 only */
    bool keep_stop; /* the stop string itself is part of the output */
    const char *const *stops; /* n_stops strings of stop_lens bytes; empty ones are ignored; copied */
    const size_t *stop_lens;
    size_t n_stops; /* at most PL_SPLIT_MAX_STOPS, each at most PL_SPLIT_MAX_STOP_BYTES: else PL_EINVAL */
} pl_splitter_options;

typedef struct pl_splitter pl_splitter;

/* sink and ctx must outlive the splitter. PL_EINVAL (param "stop"), PL_ENOMEM. */
pl_status pl_splitter_new(const pl_splitter_options *options, pl_split_sink sink, void *ctx, pl_splitter **out,
                          pl_error *err);
void pl_splitter_free(pl_splitter *splitter);

/* Feed the bytes of one token (or of any piece). After a stop string was found, input is ignored. */
pl_status pl_splitter_feed(pl_splitter *splitter, const char *bytes, size_t len, pl_error *err);
/* The reply is over: write out what is held back. Feeding afterwards is PL_EINVAL. */
pl_status pl_splitter_finish(pl_splitter *splitter, pl_error *err);

/* Whether a stop string ended the answer; *index (may be NULL) is its place in the options' list. */
bool pl_splitter_stopped(const pl_splitter *splitter, size_t *index);
/* Whether the text is still inside the thinking block. */
bool pl_splitter_in_reasoning(const pl_splitter *splitter);

#endif
