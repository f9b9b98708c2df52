/* A checked conversation, as the renderer walks it. */
#ifndef PL_TEXT_CHAT_INT_H
#define PL_TEXT_CHAT_INT_H

#include "text/chat.h"

/* Control tokens of the encoding, by spelling. */
#define PL__BOS       "<｜begin▁of▁sentence｜>"
#define PL__EOS       "<｜end▁of▁sentence｜>"
#define PL__SYSTEM    "<｜System｜>"
#define PL__USER      "<｜User｜>"
#define PL__ASSISTANT "<｜Assistant｜>"
#define PL__REMINDER  "<｜latest_reminder｜>"
#define PL__THINK     "<think>"
#define PL__END_THINK "</think>"
#define PL__DSML      "｜DSML｜"

enum {
    PL__TOOLS_MAX = 1024, /* tools of a conversation */
    PL__CALLS_MAX = 1024  /* calls of one assistant message */
};

typedef enum pl__role { PL__ROLE_SYSTEM, PL__ROLE_USER, PL__ROLE_ASSISTANT, PL__ROLE_REMINDER } pl__role;

/* One part of a user turn. */
typedef struct pl__part {
    const pl_json *content; /* text: a string or a content item; result: a message's content, may be NULL */
    const pl_json *call_id; /* of a result; may be NULL */
    bool result;            /* stands in <tool_result> */
    size_t rank;            /* of a result: the place of its call among the calls of the last assistant */
} pl__part;

typedef struct pl__turn {
    pl__role role;
    const pl_json *message; /* NULL for the system message that was made to carry tools or a format */
    const pl_json *tools;   /* system: a non-empty array, or NULL */
    const pl_json *format;  /* system: the response format, or NULL */
    size_t part, n_parts;   /* user: parts[part .. part + n_parts) */
} pl__turn;

struct pl_chat {
    pl_chat_options options;
    pl_json_doc *own; /* the document of pl_chat_from_text, else NULL */
    pl__turn *turns;
    size_t n_turns;
    pl__part *parts;
    size_t n_parts;
    bool has_tools;
    bool continues; /* the last turn is an assistant's that the reply goes on with */
};

/* The text of a content item: a string itself, or a part by its type; an image's is `[image]`. *len in bytes. */
const char *pl__item_text(const pl_json *item, size_t *len);

/* What an outside value looks like in a message: a short string or number itself, else its type. Returns out. */
const char *pl__shown(const pl_json *value, char out[64]);

/* A function's name with its namespace (spec: `namespace::name`). ns_len 0: none. */
typedef struct pl__name {
    const char *ns, *name;
    size_t ns_len, name_len;
} pl__name;

/* The name of a tool or of a call: function.name, with the namespace of owner or function or of a qualified name.
 * NULL, or what is wrong with it ("must ..."). */
const char *pl__function_name(const pl_json *owner, pl__name *out);

/* Append text of the encoding itself: the spellings of <think>, </think> and the DSML mark in it are control tokens. */
pl_status pl__put_own(pl_segments *out, const char *text, pl_error *err);

/* Append the "## Tools" block for a non-empty array of checked tools. */
pl_status pl__put_tools(pl_segments *out, const pl_json *tools, pl_error *err);
/* Append the block of an assistant's calls, from the blank line before it to its closing tag. */
pl_status pl__put_calls(pl_segments *out, const pl_json *calls, pl_error *err);
/* Append value as JSON text. */
pl_status pl__put_json(pl_segments *out, const pl_json *value, pl_error *err);

#endif
