/* The reply's bytes, as they come, split into reasoning and answer.
 *
 * Feed the tokens; pieces of visible text come out through a callback. Any way of cutting the input gives the same
 * concatenated output. The splitter
 *   - ends the reasoning at `</think>`, and drops the newlines at its start, those before `</think>` and those at the
 *     start of the answer;
 *   - drops any further `</think>`;
 *   - matches stop strings on the answer's bytes, across tokens and characters, and ends there;
 *   - holds back an incomplete UTF-8 tail (at most 3 bytes) and writes U+FFFD once for each maximal invalid prefix.
 * What is held back is never more than a possible prefix of something that would not be shown. Memory is fixed at
 * creation. One thread at a time. After a failed call only pl_splitter_free may follow. */
#ifndef PL_TEXT_SPLITTER_H
#define PL_TEXT_SPLITTER_H

#include "base/status.h"

struct pl_tokenizer;

typedef enum pl_split_kind { PL_SPLIT_REASONING, PL_SPLIT_CONTENT } pl_split_kind;

/* Receives len > 0 bytes, whole UTF-8 characters. Anything but PL_OK ends the call that led here with that status. */
typedef pl_status (*pl_split_sink)(void *ctx, pl_split_kind kind, const char *bytes, size_t len, pl_error *err);

enum { PL_SPLIT_STOPS_MAX = 16, PL_SPLIT_STOP_BYTES_MAX = 1024 };

typedef struct pl_stop {
    const char *bytes; /* len of them; an empty stop string is never found */
    size_t len;
} pl_stop;

typedef struct pl_splitter_options {
    bool in_reasoning; /* the prompt ends inside a thinking block (pl_chat_render tells) */
    bool continues;    /* the reply goes on with text of the request: newlines at its start stay */
    bool raw;          /* a completion without chat encoding: all is answer, no thinking, no newline rules */
    bool keep_stop;    /* the stop string that was found is part of the answer */
    const pl_stop *stops;
    size_t n_stops;
} pl_splitter_options;

typedef struct pl_splitter pl_splitter;

/* The stop strings are copied; sink and ctx must outlive the splitter. PL_EINVAL with param "stop" for more than
 * PL_SPLIT_STOPS_MAX stop strings or one longer than PL_SPLIT_STOP_BYTES_MAX; PL_ENOMEM. *out is NULL on failure. */
pl_status pl_splitter_new(const pl_splitter_options *options, pl_split_sink sink, void *ctx, pl_splitter **out,
                          pl_error *err);
void pl_splitter_free(pl_splitter *splitter);

/* Feed bytes of the reply. Once a stop string was found input is ignored. PL_EINVAL after pl_splitter_finish. */
pl_status pl_splitter_feed(pl_splitter *splitter, const char *bytes, size_t len, pl_error *err);

/* Feed one token of the reply. Added tokens are not text and are left out, but for `</think>` and the DSML mark; of a
 * raw completion only those marked special are. PL_EINVAL for an id without a token. */
pl_status pl_splitter_feed_token(pl_splitter *splitter, const struct pl_tokenizer *tokenizer, int32_t id,
                                 pl_error *err);

/* The reply is over: write out what is held back. */
pl_status pl_splitter_finish(pl_splitter *splitter, pl_error *err);

/* Whether a stop string ended the answer; *index (may be NULL) is its place in the options' list. */
bool pl_splitter_stopped(const pl_splitter *splitter, size_t *index);

/* Whether the text still stands inside the thinking block. */
bool pl_splitter_in_reasoning(const pl_splitter *splitter);

#endif
