/* The chat encoding of DeepSeek-V4.1: messages in, the prompt's pieces out.
 *
 *   request JSON --pl_json_parse--> values --pl_chat_from_json--> pl_chat --pl_chat_render--> pl_segments --> ids
 *
 * The rules and the exact wire text are in docs/internals/text-chat.md. */
#ifndef PL_TEXT_CHAT_H
#define PL_TEXT_CHAT_H

#include "text/json_text.h"
#include "text/segments.h"

/* What to do with an image part: this engine has no vision part. */
typedef enum pl_chat_images {
    PL_CHAT_IMAGES_REFUSE, /* PL_EINVAL naming the part */
    PL_CHAT_IMAGES_NAME    /* the text `[image]` stands in its place */
} pl_chat_images;

typedef struct pl_chat_options {
    bool thinking;         /* the prompt ends in <think>, else in </think> */
    int effort;            /* 1..100, written at the start of a thinking prompt */
    bool keep_reasoning;   /* keep the reasoning of earlier turns; always so when tools are present */
    pl_chat_images images; /* see above */
} pl_chat_options;

enum { PL_CHAT_EFFORT_LOW = 50, PL_CHAT_EFFORT_HIGH = 75, PL_CHAT_EFFORT_MAX = 100 };

/* Thinking on, effort 75, old reasoning dropped, images refused. */
extern const pl_chat_options pl_chat_default_options;

/* Read the fields of a chat request that choose the mode into *options, which holds the defaults on entry:
 * `thinking` (true/false or {type, effort}), `enable_thinking`, `think`, `reasoning_effort`, `reasoning.effort`,
 * `chat_template_kwargs` {thinking, enable_thinking, thinking_mode, reasoning_effort, drop_thinking}.
 * Effort: an integer 1..100 or minimal/low (50), medium/high/xhigh (75), max/ultra (100), none (thinking off). A field
 * at the top level beats its twin in chat_template_kwargs; an explicit "off" beats an effort and an "on" beside it; an
 * effort alone does not switch thinking on. PL_EINVAL with the field's name for any other value. */
pl_status pl_chat_options_from_request(const pl_json *request, pl_chat_options *options, pl_error *err);

/* A checked conversation. It points into the JSON values it was made from: free it before their document. */
typedef struct pl_chat pl_chat;

/* Check and take over an OpenAI conversation. messages: the request's array. tools, response_format: the request's
 * values or NULL; a response_format of type text adds nothing. On PL_OK the caller owns *out.
 * PL_EINVAL with param set to the path at fault ("messages[3].content[1].type"), PL_ENOMEM; *out is NULL then.
 * Roles: system, developer (= system), user, assistant, tool, latest_reminder. */
pl_status pl_chat_from_json(const pl_json *messages, const pl_json *tools, const pl_json *response_format,
                            const pl_chat_options *options, pl_chat **out, pl_error *err);

/* The same from plain text: one user message, after a system message unless system is NULL. The texts are copied. */
pl_status pl_chat_from_text(const char *system, const char *user, size_t user_len, const pl_chat_options *options,
                            pl_chat **out, pl_error *err);
void pl_chat_free(pl_chat *chat);

/* Whether the conversation declares tools (its replies may hold calls). */
bool pl_chat_has_tools(const pl_chat *chat);

/* Append the prompt to out. *in_reasoning (may be NULL): whether the reply starts inside a thinking block, and
 * *continues (may be NULL): whether it continues a message that the request began (`prefix: true`): the two start
 * states of the completion splitter. PL_ELIMIT when the text passes the cap of out, PL_ENOMEM. */
pl_status pl_chat_render(const pl_chat *chat, pl_segments *out, bool *in_reasoning, bool *continues, pl_error *err);

#endif
