/* One reply to be made, as a request describes it: the prompt as ids, and everything that shapes the answer. Made by
 * the server's request readers, the command line and the C API alike. No model is needed to make one. */
#ifndef PL_API_SPEC_H
#define PL_API_SPEC_H

#include "model/sampling.h"
#include "text/chat.h"
#include "text/splitter.h"
#include "text/tokenizer.h"

/* Zeroed by pl_spec_init, filled by its maker, freed by pl_spec_free. */
typedef struct pl_spec {
    pl_ids prompt;             /* owned */
    pl_sampling_part sampling; /* what the request itself says; its bias list is owned */
    int64_t max_tokens;        /* 0: the default; more than the context leaves is cut to what it leaves */
    bool ignore_eos;
    bool draft;       /* true unless the request says no */
    bool background;  /* gives way to others */
    int top_logprobs; /* -1: none */

    pl_stop stop[PL_SPLIT_STOPS_MAX]; /* the bytes are owned */
    size_t stops;
    bool keep_stop; /* the stop string is part of the text */

    bool thinking;     /* the reply may think: decides the default of max_tokens */
    bool raw;          /* no chat encoding: the text is the tokens' text */
    bool in_reasoning; /* the prompt ends inside a thinking block */
    bool continues;    /* the reply continues a message that the request began */
} pl_spec;

enum { PL_PROMPT_TEXT_MAX = 64 << 20 /* bytes of a rendered prompt */ };

void pl_spec_init(pl_spec *spec);
void pl_spec_free(pl_spec *spec);

/* Append a stop string; an empty one is dropped. PL_EINVAL (param "stop") past the splitter's bounds, PL_ENOMEM. */
pl_status pl_spec_add_stop(pl_spec *spec, const char *bytes, size_t len, pl_error *err);

/* Append one logit bias. PL_EINVAL (param "logit_bias") past PL_MAX_BIASES, PL_ENOMEM. */
pl_status pl_spec_add_bias(pl_spec *spec, int32_t token, float add, pl_error *err);

/* The prompt, in one of three ways; each also sets raw, in_reasoning, continues and thinking. The errors of the chat
 * encoding and the tokenizer.
 * chat: text in it never becomes a control token. */
pl_status pl_spec_chat(pl_spec *spec, const pl_tokenizer *tokenizer, const pl_chat *chat, pl_error *err);
/* raw text: spellings of control tokens are matched. bos: this id first; -1: none. */
pl_status pl_spec_text(pl_spec *spec, const pl_tokenizer *tokenizer, const char *text, size_t len, int32_t bos,
                       pl_error *err);
/* ids as they are. PL_EINVAL (param "prompt") for one outside 0 .. vocab - 1. */
pl_status pl_spec_ids(pl_spec *spec, const int32_t *ids, size_t count, int vocab, pl_error *err);

#endif
