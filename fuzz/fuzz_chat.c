/* A chat request of any bytes through reader, checks, renderer and tokenizer: refused by a parameter, or a prompt whose
 * control tokens are the ones that the renderer put there, no more, and whose ids spell its text. */
#include "base/utf8.h"
#include "text/chat.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const pl_tokenizer *tokenizer(void)
{
    static pl_tokenizer *tok;
    pl_error err;
    if (!tok && pl_tokenizer_load(&tok, "models/nano/tokenizer.json", &err) != PL_OK) {
        fprintf(stderr, "run me in the root of the repository: %s\n", err.message);
        exit(1);
    }
    return tok;
}

static void check_prompt(const pl_segments *prompt)
{
    pl_ids ids;
    pl_buf back;
    pl_error err;
    size_t controls = 0, found = 0;
    pl_ids_init(&ids, PL_IDS_MAX);
    pl_buf_init(&back, (size_t)64 << 20, "fuzz");
    if (pl_utf8_check(prompt->text.data, prompt->text.len) != prompt->text.len)
        __builtin_trap();
    for (size_t i = 0; i < prompt->count; i++) {
        controls += prompt->items[i].control;
        if (i && !prompt->items[i].control && !prompt->items[i - 1].control)
            __builtin_trap(); /* neighbouring text is one piece */
    }
    if (pl_segments_encode(tokenizer(), prompt, &ids, &err) != PL_OK)
        __builtin_trap();
    for (size_t i = 0; i < ids.len; i++) {
        pl_token token;
        found += pl_tokenizer_token(tokenizer(), ids.data[i], &token) && token.added;
    }
    if (found != controls || pl_tokenizer_decode(tokenizer(), ids.data, ids.len, false, &back, &err) != PL_OK ||
        back.len != prompt->text.len || memcmp(back.data, prompt->text.data, back.len) != 0)
        __builtin_trap();
    pl_ids_free(&ids);
    pl_buf_free(&back);
}

static void check_refusal(const pl_error *err, pl_status status)
{
    if (status != PL_EINVAL || err->status != status || !err->param[0] || !err->message[0] ||
        strpbrk(err->message, "\r\n"))
        __builtin_trap();
}

static void run(const pl_json *request, bool name_images)
{
    pl_error err;
    pl_chat *chat = NULL;
    pl_segments prompt;
    bool in_reasoning, continues;
    pl_chat_options options = pl_chat_default_options;
    options.images = name_images ? PL_CHAT_IMAGES_NAME : PL_CHAT_IMAGES_REFUSE;
    pl_status status = pl_chat_options_from_request(request, &options, &err);
    if (status == PL_OK)
        status = pl_chat_from_json(pl_json_get(request, "messages"), pl_json_get(request, "tools"),
                                   pl_json_get(request, "response_format"), &options, &chat, &err);
    if (status != PL_OK) {
        check_refusal(&err, status);
        return;
    }
    pl_segments_init(&prompt, (size_t)64 << 20);
    if (pl_chat_render(chat, &prompt, &in_reasoning, &continues, &err) != PL_OK)
        __builtin_trap();
    check_prompt(&prompt);
    pl_segments_free(&prompt);
    pl_chat_free(chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_json_doc *doc;
    pl_error err;
    if (pl_json_parse((const char *)data, size, NULL, &doc, &err) != PL_OK)
        return 0;
    run(pl_json_root(doc), size & 1);
    pl_json_free(doc);
    return 0;
}
