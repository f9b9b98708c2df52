#include "checkpoint/synth_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_CAP = 64 << 20,
    SMALL_VOCAB = 2048,  /* below: only the control tokens that a chat needs */
    LARGE_VOCAB = 65536, /* from here on as many reserved ids as the release has */
    BYTES = 256
};

typedef struct control {
    const char *text;
    bool special; /* dropped by "skip special tokens" */
    bool always;  /* also in a small vocabulary */
} control;

/* The release's spellings and flags, in its order; bos, eos, pad, System and the image token have ids of their own. */
static const control controls[] = {
    {"<｜fim▁hole｜>", false, false},
    {"<｜fim▁begin｜>", false, false},
    {"<｜fim▁end｜>", false, false},
    {"<｜User｜>", false, true},
    {"<｜Assistant｜>", false, true},
    {"<|EOT|>", true, false},
    {"<｜tool▁calls▁begin｜>", false, false},
    {"<｜tool▁calls▁end｜>", false, false},
    {"<｜tool▁call▁begin｜>", false, false},
    {"<｜tool▁call▁end｜>", false, false},
    {"<｜tool▁outputs▁begin｜>", false, false},
    {"<｜tool▁outputs▁end｜>", false, false},
    {"<｜tool▁output▁begin｜>", false, false},
    {"<｜tool▁output▁end｜>", false, false},
    {"<｜tool▁sep｜>", false, false},
    {"<think>", false, true},
    {"</think>", false, true},
    {"｜DSML｜", false, true},
    {"<｜latest_reminder｜>", false, true},
    {"<｜action｜>", false, false},
    {"<｜query｜>", false, false},
    {"<｜authority｜>", false, false},
    {"<｜domain｜>", false, false},
    {"<｜title｜>", false, false},
    {"<｜read_url｜>", false, false},
};

static const char head_json[] = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[\n";
static const char middle_json[] =
    "\n],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[]},\n"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[\n"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}\"},\"behavior\":\"Isolated\",\"invert\":false},\n"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+\"},"
    "\"behavior\":\"Isolated\",\"invert\":false},\n"
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|"
    "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},\n"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]},\n"
    "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false,\"use_regex\":true},\n"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\n"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
    "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"vocab\":{\n";

typedef enum kind { FREE, BASE, ADDED, ADDED_SPECIAL } kind;

typedef struct vocab {
    int size, tail; /* ids from tail on are added tokens that the model's own vocabulary does not list */
    int next;       /* base ids: the next that may be free */
    pl_buf text;    /* spellings, each with its NUL */
    uint32_t *at;   /* per id, into text */
    unsigned char *kind;
    pl_buf merges; /* "A B" lines, as JSON */
    pl_error *err;
    pl_status status; /* the first failure sticks */
} vocab;

static void put(vocab *v, int id, const char *left, const char *right, kind k)
{
    if (v->status != PL_OK)
        return;
    v->at[id] = (uint32_t)v->text.len;
    v->kind[id] = (unsigned char)k;
    v->status = pl_buf_add(&v->text, left, strlen(left), v->err);
    if (v->status == PL_OK)
        v->status = pl_buf_add(&v->text, right, strlen(right) + 1, v->err);
}

/* The first free id from `from` on, searched to the end and then from the tail's start; -1 when there is none. */
static int free_id(const vocab *v, int from)
{
    for (int id = from; id < v->size; id++)
        if (v->kind[id] == FREE)
            return id;
    for (int id = v->tail; id < from; id++)
        if (v->kind[id] == FREE)
            return id;
    return -1;
}

/* At `wanted` when the config says so and the id is free, else at the first free id from `from` on. Returns the id. */
static int put_control(vocab *v, int wanted, int from, const char *text, bool special)
{
    int id = wanted >= 0 && v->kind[wanted] == FREE ? wanted : free_id(v, from);
    if (id >= 0)
        put(v, id, text, "", special ? ADDED_SPECIAL : ADDED);
    else if (v->status == PL_OK)
        v->status =
            pl_fail_param(v->err, PL_EFORMAT, "text_config.vocab_size",
                          "text_config.vocab_size: expected room for the control tokens, found %d ids", v->size);
    return id;
}

static void put_controls(vocab *v, const pl_config *c)
{
    static const char *const names[] = {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"};
    const int wanted[] = {c->bos, c->eos, c->pad};
    for (int i = 0; i < 3; i++)
        put_control(v, wanted[i] >= 0 ? wanted[i] : i, v->tail, names[i], true);
    if (c->image_token >= 0)
        put_control(v, c->image_token, v->tail, "<｜deepseek_image｜>", false);
    int at = put_control(v, c->noise_token, v->size < SMALL_VOCAB ? v->tail : v->tail + 8, "<｜System｜>", false);
    at = at < v->tail ? v->tail : at;
    if (c->image_token < 0)
        at = put_control(v, -1, at, "<｜deepseek_image｜>", false);
    for (size_t i = 0; i < sizeof controls / sizeof *controls && v->status == PL_OK; i++)
        if (controls[i].always || v->size >= SMALL_VOCAB)
            at = put_control(v, -1, at, controls[i].text, controls[i].special);
    int number = 0;
    for (int id = v->tail; id < v->size && v->status == PL_OK; id++)
        if (v->kind[id] == FREE) {
            char text[64];
            snprintf(text, sizeof text, "<｜place▁holder▁no▁%d｜>", number++);
            put(v, id, text, "", ADDED_SPECIAL);
        }
}

/* Is there a base id left? Then v->next is it. */
static bool has_room(vocab *v)
{
    while (v->next < v->tail && v->kind[v->next] != FREE)
        v->next++;
    return v->next < v->tail && v->status == PL_OK;
}

static void put_char(vocab *v, unsigned code)
{
    char text[3] = {(char)code};
    if (code >= 0x80) {
        text[0] = (char)(0xc0 | code >> 6);
        text[1] = (char)(0x80 | (code & 63));
    }
    if (has_room(v))
        put(v, v->next, text, "", BASE);
}

/* The characters that stand for the 256 bytes, in code point order: the printable ones for themselves, then U+0100.. */
static void put_bytes(vocab *v)
{
    int others = 0;
    for (unsigned b = 0; b < BYTES; b++) {
        if ((b > 32 && b < 127) || (b > 160 && b != 173))
            put_char(v, b);
        else
            others++;
    }
    for (int i = 0; i < others; i++)
        put_char(v, (unsigned)(256 + i));
}

/* A token for left + right, and the merge that makes it. False when the vocabulary is full. */
static bool merge(vocab *v, const char *left, const char *right)
{
    if (!has_room(v))
        return false;
    put(v, v->next, left, right, BASE);
    if (v->status == PL_OK)
        v->status = pl_buf_addf(&v->merges, v->err, "%s\"%s %s\"", v->merges.len ? ",\n" : "", left, right);
    return v->status == PL_OK;
}

static const char letters[] = "etaoinshrdlcumwfgypbvkjxqz"; /* by frequency */

/* All words of n letters, frequent letters first, each from the word without its last letter; then the same after a
 * space ("Ġ") and, for pairs, with a capital. False when the vocabulary is full. */
static bool merge_words(vocab *v, int n)
{
    int letter[8] = {0};
    for (int sum = 0; sum <= 25 * n; sum++) {
        /* letter[0..n-2] count up; the last one is what is left of the sum */
        memset(letter, 0, sizeof letter);
        for (bool more = true; more;) {
            int rest = sum;
            char word[9] = {0}, last[2] = {0};
            for (int i = 0; i < n - 1; i++)
                rest -= letter[i];
            if (rest >= 0 && rest < 26) {
                letter[n - 1] = rest;
                for (int i = 0; i < n; i++)
                    word[i] = letters[letter[i]];
                last[0] = word[n - 1];
                word[n - 1] = 0;
                if (!merge(v, word, last))
                    return false;
                word[n - 1] = last[0];
                if (!merge(v, "Ġ", word))
                    return false;
                word[0] = (char)(word[0] - 'a' + 'A');
                word[1] = 0;
                if (n == 2 && !merge(v, word, last))
                    return false;
            }
            int i = n - 2;
            while (i >= 0 && letter[i] == 25)
                letter[i--] = 0;
            more = i >= 0;
            if (more)
                letter[i]++;
        }
    }
    return true;
}

static bool merge_all(vocab *v)
{
    for (int i = 0; i < 26; i++)
        if (!merge(v, "Ġ", (char[2]){letters[i]}))
            return false;
    if (!merge(v, "Ġ", "Ġ") || !merge(v, "ĠĠ", "ĠĠ") || !merge(v, "Ċ", "Ċ"))
        return false;
    if (!merge_words(v, 2))
        return false;
    for (int i = 0; i < 1100; i++) { /* numbers of two and of three digits */
        char left[3], right[2] = {(char)('0' + i % 10)};
        snprintf(left, sizeof left, i < 100 ? "%01d" : "%02d", i < 100 ? i / 10 : (i - 100) / 10);
        if (!merge(v, left, right))
            return false;
    }
    return merge_words(v, 3) && merge_words(v, 4) && merge_words(v, 5);
}

/* One spelling as a JSON string. Only the byte tokens hold characters that need an escape. */
static pl_status add_string(pl_buf *out, const char *text, pl_error *err)
{
    PL_TRY(pl_buf_addc(out, '"', err));
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            PL_TRY(pl_buf_addc(out, '\\', err));
        PL_TRY(pl_buf_addc(out, *text, err));
    }
    return pl_buf_addc(out, '"', err);
}

static pl_status write_json(const vocab *v, pl_buf *out, pl_error *err)
{
    bool first = true;
    PL_TRY(pl_buf_adds(out, head_json, err));
    for (int id = 0; id < v->size; id++) {
        if (v->kind[id] < ADDED)
            continue;
        PL_TRY(pl_buf_addf(out, err, "%s{\"id\":%d,\"content\":", first ? "" : ",\n", id));
        PL_TRY(add_string(out, v->text.data + v->at[id], err));
        PL_TRY(pl_buf_addf(
            out, err, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":%s}",
            v->kind[id] == ADDED_SPECIAL ? "true" : "false"));
        first = false;
    }
    PL_TRY(pl_buf_adds(out, middle_json, err));
    for (int id = 0; id < v->tail; id++) {
        PL_TRY(pl_buf_adds(out, id ? ",\n" : "", err));
        PL_TRY(add_string(out, v->text.data + v->at[id], err));
        PL_TRY(pl_buf_addf(out, err, ":%d", id));
    }
    PL_TRY(pl_buf_adds(out, "\n},\"merges\":[\n", err));
    if (v->merges.len)
        PL_TRY(pl_buf_add(out, v->merges.data, v->merges.len, err));
    return pl_buf_adds(out, "\n]}}\n", err);
}

static pl_status build(vocab *v, const pl_config *config)
{
    int reserved = v->size >= LARGE_VOCAB ? 1280 : v->size >= SMALL_VOCAB ? 64 : 16;
    v->tail = v->size - reserved;
    if (v->tail < BYTES + 8)
        return pl_fail_param(v->err, PL_EFORMAT, "text_config.vocab_size",
                             "text_config.vocab_size: expected at least %d ids for a tokenizer, found %d",
                             BYTES + 8 + reserved, v->size);
    v->at = calloc((size_t)v->size, sizeof *v->at);
    v->kind = calloc((size_t)v->size, 1);
    if (!v->at || !v->kind)
        return pl_fail(v->err, PL_ENOMEM, "no memory for a vocabulary of %d ids", v->size);
    put_controls(v, config);
    put_bytes(v);
    bool full = !merge_all(v);
    if (v->status == PL_OK && !full && has_room(v))
        return pl_fail_param(v->err, PL_EFORMAT, "text_config.vocab_size",
                             "text_config.vocab_size: no tokenizer of %d ids can be made here", v->size);
    return v->status;
}

pl_status pl__synth_tokenizer(const pl_config *config, pl_buf *out, pl_error *err)
{
    vocab v = {.size = config->vocab_size, .err = err, .status = PL_OK};
    pl_buf_init(&v.text, TEXT_CAP, "vocabulary");
    pl_buf_init(&v.merges, TEXT_CAP, "merges");
    pl_status status = build(&v, config);
    if (status == PL_OK)
        status = write_json(&v, out, err);
    pl_buf_free(&v.text);
    pl_buf_free(&v.merges);
    free(v.at);
    free(v.kind);
    return status;
}
