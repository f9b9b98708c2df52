/* What the tokenizer's tests share: the two shipped tokenizers, and one small enough to be taken apart. */
#ifndef PL_TESTS_TEXT_TOKENIZER_CHECK_H
#define PL_TESTS_TEXT_TOKENIZER_CHECK_H

#include "base/check.h"
#include "base/utf8.h"
#include "text/tokenizer_impl.h"

#define NANO_TOKENIZER "models/nano/tokenizer.json"
#define TINY_TOKENIZER "tests/vectors/tiny-a/model/tokenizer.json"

static inline pl_tokenizer *load_tokenizer(const char *path)
{
    pl_error err;
    pl_tokenizer *tok;
    pl_status status = pl_tokenizer_load(&tok, path, &err);
    if (status != PL_OK)
        fail_msg("%s: %s", path, err.message);
    return tok;
}

/* A tokenizer.json in out: the 256 bytes (id = byte), `vocab` (", \"ab\": 256" ...), `merges` and `added` (both the
 * inside of an array). */
static inline void small_json(pl_buf *out, const char *vocab, const char *merges, const char *added)
{
    pl_error err;
    pl_buf_init(out, 1 << 20, "test");
    pl_buf_addf(
        out, &err,
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[%s],\"normalizer\":"
        "{\"type\":\"Sequence\",\"normalizers\":[]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
        added);
    pl_buf_adds(
        out,
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}\"},\"behavior\":\"Isolated\",\"invert\":"
        "false},{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[一-龥\u3040-ゟ゠-ヿ]+\"},\"behavior\":\"Isolated\","
        "\"invert\":false},{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\"
        "\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*"
        "|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},",
        &err);
    pl_buf_adds(
        out,
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]},"
        "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"dropout\":null,"
        "\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":\"\",\"fuse_unk\":false,"
        "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{",
        &err);
    for (int b = 0; b < 256; b++) {
        char letter[5] = {0};
        pl_utf8_put(pl__byte_letter((unsigned char)b), letter);
        pl_buf_addf(out, &err, "%s\"%s%s\":%d", b ? "," : "", b == '"' || b == '\\' ? "\\" : "", letter, b);
    }
    assert_int_equal(pl_buf_addf(out, &err, "%s},\"merges\":[%s]}}", vocab, merges), PL_OK);
}

#define ADDED(id, content, normalized, special)                                                                        \
    "{\"id\":" #id ",\"content\":\"" content "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"             \
    "\"normalized\":" #normalized ",\"special\":" #special "}"

static inline pl_tokenizer *small_tokenizer(const char *vocab, const char *merges, const char *added)
{
    pl_buf json;
    pl_error err;
    pl_tokenizer *tok;
    small_json(&json, vocab, merges, added);
    if (pl_tokenizer_parse(&tok, json.data, json.len, "small", &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_buf_free(&json);
    return tok;
}

/* xorshift64*: the same numbers everywhere for a seed. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* A seed from the environment (TEST_SEED) or fixed, printed so that a failure can be had again. */
static inline uint64_t random_seed(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20261017;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed ? seed : 1;
}

/* A random character of a kind that the splits tell apart, appended to text; returns its bytes. */
static inline int random_char(uint64_t *state, char out[4])
{
    static const uint32_t ranges[][2] = {{'a', 'z'},         {'A', 'Z'},          {'0', '9'},       {'!', '/'},
                                         {' ', ' '},         {'\n', '\n'},        {'\r', '\r'},     {'\t', '\t'},
                                         {0, 0x1f},          {0x7f, 0xa1},        {0x100, 0x17f},   {0x300, 0x36f},
                                         {0x660, 0x669},     {0x2000, 0x206f},    {0x20a0, 0x20bf}, {0x2460, 0x2473},
                                         {0x3000, 0x3003},   {0x3040, 0x30ff},    {0x4e00, 0x4e10}, {0x9fa0, 0x9fb0},
                                         {0xac00, 0xac10},   {0xe000, 0xe003},    {0xff00, 0xff20}, {0x1f600, 0x1f610},
                                         {0x20000, 0x20010}, {0x10fff0, 0x10ffff}};
    const uint32_t *r = ranges[random_next(state) % (sizeof ranges / sizeof *ranges)];
    return pl_utf8_put(r[0] + (uint32_t)(random_next(state) % (r[1] - r[0] + 1)), out);
}

#endif
