/* A text of any bytes through a small tokenizer. UTF-8 comes back from its ids; plain text gives no added token; other
 * bytes are refused at the first one at fault, and come back repaired. The first byte picks whether added tokens
 * match. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/pretokenize.h"
#include "text/tokenizer_impl.h"

static json_t *split(const char *regex)
{
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", regex, "behavior", "Isolated",
                     "invert", 0);
}

static json_t *added(int id, const char *content, int normalized)
{
    return json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", content, "single_word", 0, "lstrip", 0,
                     "rstrip", 0, "normalized", normalized, "special", !normalized);
}

/* The 256 bytes, a few merges that nest and overlap, and added tokens that start alike. */
static pl_tokenizer *make(void)
{
    static const char *const merged[] = {"a a", "aa aa", "a b", "ab c", "b c", "Ġ Ġ", "ĠĠ ĠĠ", "Ċ Ċ", "1 2", "Ã ©"};
    enum { MERGES = sizeof merged / sizeof *merged };
    json_t *vocab = json_object(), *merges = json_array();
    for (int b = 0; b < 256; b++) {
        char letter[5] = {0};
        pl_utf8_put(pl__byte_letter((unsigned char)b), letter);
        json_object_set_new(vocab, letter, json_integer(b));
    }
    for (int i = 0; i < MERGES; i++) {
        char both[32];
        const char *space = strchr(merged[i], ' ');
        snprintf(both, sizeof both, "%.*s%s", (int)(space - merged[i]), merged[i], space + 1);
        json_object_set_new(vocab, both, json_integer(256 + i));
        json_array_append_new(merges, json_string(merged[i]));
    }
    json_t *file = json_pack("{s:s, s:[o,o,o,o], s:{s:s, s:[o,o,o,{s:s, s:b, s:b}]}, s:{s:s}, s:{s:s, s:o, s:o}}",
                             "version", "1.0", "added_tokens", added(300, "<a", 0), added(301, "<ab>", 0),
                             added(302, "\xef\xbd\x9cX", 1), added(303, "<a>", 1), "pre_tokenizer", "type", "Sequence",
                             "pretokenizers", split(pl__split_regex[0]), split(pl__split_regex[1]),
                             split(pl__split_regex[2]), "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 0,
                             "decoder", "type", "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges", merges);
    char *text = json_dumps(file, 0);
    pl_tokenizer *tok = NULL;
    pl_error err;
    if (!text || pl_tokenizer_parse(&tok, text, strlen(text), "fuzz", &err) != PL_OK)
        __builtin_trap();
    free(text);
    json_decref(file);
    return tok;
}

static void round_trip(const pl_tokenizer *tok, const char *text, size_t len, bool match)
{
    pl_ids ids;
    pl_buf back;
    pl_error err;
    pl_token t;
    pl_ids_init(&ids, PL_IDS_MAX);
    pl_buf_init(&back, 1 << 24, "text");
    if (pl_tokenizer_encode(tok, text, len, match, &ids, &err) != PL_OK)
        __builtin_trap();
    for (size_t i = 0; i < ids.len; i++)
        if (!pl_tokenizer_token(tok, ids.data[i], &t) || (!match && t.added))
            __builtin_trap();
    if (pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err) != PL_OK || back.len != len ||
        (len > 0 && memcmp(back.data, text, len) != 0))
        __builtin_trap();
    pl_ids_free(&ids);
    pl_buf_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_tokenizer *tok;
    if (!tok)
        tok = make();
    if (size == 0)
        return 0;
    bool match = data[0] & 1;
    const char *text = (const char *)data + 1;
    size_t len = size - 1, good = pl_utf8_check(text, len);
    if (good == len) {
        round_trip(tok, text, len, match);
        return 0;
    }
    pl_ids ids;
    pl_buf repaired;
    pl_error err = {0};
    pl_ids_init(&ids, PL_IDS_MAX);
    if (pl_tokenizer_encode(tok, text, len, match, &ids, &err) != PL_EFORMAT || err.offset != (int64_t)good || ids.len)
        __builtin_trap();
    pl_buf_init(&repaired, 1 << 24, "text");
    if (pl_utf8_repair(&repaired, text, len, &err) != PL_OK)
        __builtin_trap();
    round_trip(tok, repaired.data, repaired.len, match);
    pl_buf_free(&repaired);
    return 0;
}
