/* Reading tokenizer.json: what is not implemented, or contradicts itself, is refused by its name; nothing crashes. */
#include "base/file.h"
#include "base/sha256.h"
#include "text/tokenizer_check.h"

static const char *const VOCAB = ",\"ab\":256,\"abc\":257";
static const char *const MERGES = "\"a b\",[\"ab\",\"c\"]";
#define TWO_ADDED ADDED(258, "[x]", false, true) "," ADDED(259, "[y]", true, false)

/* The good file with the first `from` replaced by `to`. */
static void changed(pl_buf *json, const char *from, const char *to)
{
    pl_error err;
    pl_buf good;
    small_json(&good, VOCAB, MERGES, TWO_ADDED);
    const char *at = strstr(good.data, from);
    assert_non_null(at);
    pl_buf_init(json, 1 << 20, "test");
    pl_buf_add(json, good.data, (size_t)(at - good.data), &err);
    pl_buf_adds(json, to, &err);
    pl_buf_adds(json, at + strlen(from), &err);
    pl_buf_free(&good);
}

static void refused(const char *from, const char *to, const char *named)
{
    pl_buf json;
    pl_error err;
    pl_tokenizer *tok = (pl_tokenizer *)&err;
    changed(&json, from, to);
    assert_fails(PL_EFORMAT, &err, pl_tokenizer_parse(&tok, json.data, json.len, "here.json", &err));
    assert_null(tok);
    if (!strstr(err.message, named) || strncmp(err.message, "here.json: ", 11) != 0)
        fail_msg("\"%s\" does not name %s", err.message, named);
    pl_buf_free(&json);
}

static void accepted(const char *from, const char *to)
{
    pl_buf json;
    pl_error err;
    pl_tokenizer *tok;
    changed(&json, from, to);
    if (pl_tokenizer_parse(&tok, json.data, json.len, "here.json", &err) != PL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(pl_tokenizer_size(tok), 260);
    pl_tokenizer_close(tok);
    pl_buf_free(&json);
}

static void test_the_file_itself(void **state)
{
    (void)state;
    accepted("\"version\"", "\"version\"");
    accepted("\"post_processor\":null,", "");
    accepted("\"post_processor\":null", "\"post_processor\":{\"type\":\"ByteLevel\",\"trim_offsets\":false}");
    accepted("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[]}", "\"normalizer\":null");
    accepted("\"end_of_word_suffix\":\"\",", "");
    accepted(",\"ignore_merges\":false", "");
}

static void test_options_not_implemented(void **state)
{
    (void)state;
    refused("\"version\":\"1.0\"", "\"version\":\"2.0\"", "version");
    refused("\"version\":\"1.0\"", "\"version\":\"1.0\",\"new\":1", "\"new\"");
    refused("\"truncation\":null", "\"truncation\":{\"max_length\":5}", "truncation");
    refused("\"padding\":null", "\"padding\":{}", "padding");
    refused("\"normalizers\":[]", "\"normalizers\":[{\"type\":\"NFC\"}]", "normalizer");
    refused("{\"type\":\"Sequence\",\"normalizers\":[]}", "{\"type\":\"NFKC\"}", "NFKC");
    refused("\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}", "TemplateProcessing");
    refused("\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":{\"type\":\"Metaspace\"}", "Metaspace");
    refused("\"type\":\"BPE\"", "\"type\":\"Unigram\"", "Unigram");
    refused("\"dropout\":null", "\"dropout\":0.5", "model.dropout");
    refused("\"unk_token\":null", "\"unk_token\":\"<unk>\"", "model.unk_token");
    refused("\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"", "continuing_subword_prefix");
    refused("\"end_of_word_suffix\":\"\"", "\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix");
    refused("\"fuse_unk\":false", "\"fuse_unk\":true", "fuse_unk");
    refused("\"byte_fallback\":false", "\"byte_fallback\":true", "byte_fallback");
    refused("\"ignore_merges\":false", "\"ignore_merges\":true", "ignore_merges");
    refused("\"ignore_merges\":false", "\"ignore_merges\":false,\"other\":0", "\"other\"");
    refused("\"model\":{", "\"model\":[],\"x\":{", "\"x\"");
}

static void test_pre_tokenizers_not_implemented(void **state)
{
    (void)state;
    refused("{1,3}", "{1,2}", "step 1");
    refused("{\"Regex\":\"\\\\p{N}{1,3}\"}", "{\"String\":\"x\"}", "step 1");
    refused("[一-龥", "[一-龦", "step 2");
    refused("\\\\s+(?!", "\\\\s*(?!", "step 3");
    refused("\"behavior\":\"Isolated\"", "\"behavior\":\"Removed\"", "Removed");
    refused("\"invert\":false", "\"invert\":true", "invert");
    refused("\"type\":\"Split\"", "\"type\":\"Digits\"", "Digits");
    refused("\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space");
    refused("\"add_prefix_space\":false,", "", "add_prefix_space");
    refused("\"use_regex\":false", "\"use_regex\":true", "use_regex");
    refused("\"pretokenizers\":[", "\"pretokenizers\":[{},", "4 steps");
    refused("\"pre_tokenizer\":{\"type\":\"Sequence\"", "\"pre_tokenizer\":{\"type\":\"Whitespace\"", "Whitespace");
    refused("\"pre_tokenizer\":{", "\"pre_tokenizer\":null,\"x\":{", "\"x\"");
}

static void test_vocabulary_faults(void **state)
{
    (void)state;
    refused("\"ab\":256", "\"ab\":255", "255");
    refused("\"ab\":256", "\"ab\":-1", "\"ab\"");
    refused("\"ab\":256", "\"ab\":4194304", "\"ab\"");
    refused("\"ab\":256", "\"ab\":4000000", "highest id");
    refused("\"ab\":256", "\"ab\":1.5", "found 1.5");
    refused("\"ab\":256", "\"ab\":256,\"ab\":256", "JSON");
    refused("\"ab\":256", "\"\":256", "bytes");
    refused("\"a\":97,", "", "0x61");
    refused("\"vocab\":{", "\"vocab\":[],\"x\":{", "\"x\"");
    refused("\"a b\"", "\"a bb\"", "\"bb\"");
    refused("\"a b\"", "\"a b c\"", "merges[0]");
    refused("\"a b\"", "\"ab\"", "merges[0]");
    refused("\"a b\"", "\" ab\"", "merges[0]");
    refused("\"a b\"", "7", "merges[0]");
    refused("\"a b\"", "[\"a\",\"b\",\"c\"]", "merges[0]");
    refused("\"a b\"", "[\"a\",5]", "merges[0]");
    refused("\"a b\"", "\"b a\"", "\"ba\"");
    refused("\"a b\"", "\"a b\",\"a b\"", "merges[1]");
    refused("\"ab\":256", "\"▁\":256", "merges[0]");
    refused("\"a b\"", "\"▁ ▁\"", "merges[0]");
}

static void test_added_token_faults(void **state)
{
    (void)state;
    refused("\"id\":258", "\"id\":97", "id 97");
    refused("\"id\":258", "\"id\":259", "259");
    refused("\"id\":258", "\"id\":\"258\"", "added_tokens[0]");
    refused("\"content\":\"[x]\"", "\"content\":\"[y]\"", "[y]");
    refused("\"content\":\"[x]\"", "\"content\":\"\"", "content");
    refused("\"content\":\"[x]\"", "\"content\":5", "content");
    refused("\"content\":\"[x]\"", "\"content\":\"abc\"", "abc");
    refused("\"single_word\":false", "\"single_word\":true", "single_word");
    refused("\"lstrip\":false", "\"lstrip\":true", "lstrip");
    refused("\"rstrip\":false", "\"rstrip\":true", "rstrip");
    refused("\"normalized\":false", "\"normalized\":null", "normalized");
    refused("\"special\":true", "\"special\":1", "special");
    refused("\"special\":true", "\"special\":true,\"more\":1", "\"more\"");
    refused("\"added_tokens\":[{", "\"added_tokens\":[7,{", "added_tokens[0]");
    refused("\"id\":258,\"content\":\"[x]\"", "\"id\":257,\"content\":\"abc\"", "merges[1]"); /* a merge makes it */
    refused("\"id\":258,\"content\":\"[x]\"", "\"id\":97,\"content\":\"a\"", "0x61");
}

static void test_messages_stay_one_line(void **state)
{
    (void)state;
    pl_buf json;
    pl_error err;
    pl_tokenizer *tok;
    changed(&json, "\"version\":\"1.0\"", "\"version\":\"1.0\",\"a\\nb\\u007f\":1");
    assert_fails(PL_EFORMAT, &err, pl_tokenizer_parse(&tok, json.data, json.len, "here.json", &err));
    assert_null(strpbrk(err.message, "\n\r\x7f"));
    pl_buf_free(&json);
}

static void test_not_json(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{", "7", "[]", "null", "{}", "\xff", "{\"version\":\"1.0\"}", "\"\\u0000\""};
    pl_error err;
    pl_tokenizer *tok;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(PL_EFORMAT, &err, pl_tokenizer_parse(&tok, bad[i], strlen(bad[i]), "x", &err));
}

/* Cut anywhere, the file is refused, in one line. */
static void test_truncated(void **state)
{
    (void)state;
    pl_buf json;
    pl_error err;
    pl_tokenizer *tok;
    small_json(&json, VOCAB, MERGES, TWO_ADDED);
    for (size_t n = 0; n < json.len; n += 7) {
        char *exact = malloc(n + 1); /* so that a sanitizer sees a read past the end */
        assert_non_null(exact);
        memcpy(exact, json.data, n);
        assert_fails(PL_EFORMAT, &err, pl_tokenizer_parse(&tok, exact, n, "cut", &err));
        free(exact);
    }
    pl_buf_free(&json);
}

static void test_gaps_are_no_tokens(void **state)
{
    (void)state;
    pl_tokenizer *tok = small_tokenizer(",\"ab\":300", "\"a b\"", "");
    pl_token t;
    assert_int_equal(pl_tokenizer_size(tok), 301);
    assert_true(pl_tokenizer_token(tok, 300, &t));
    assert_false(pl_tokenizer_token(tok, 299, &t));
    pl_tokenizer_close(tok);
}

static void test_files(void **state)
{
    (void)state;
    pl_error err;
    pl_tokenizer *tok;
    assert_fails(PL_ENOTFOUND, &err, pl_tokenizer_load(&tok, "tests/vectors/none.json", &err));
    assert_null(tok);
    assert_fails(PL_EIO, &err, pl_tokenizer_load(&tok, "tests", &err));
    tok = load_tokenizer(NANO_TOKENIZER);
    pl_sha256 sha;
    pl_buf file;
    unsigned char expected[32];
    pl_buf_init(&file, 1 << 24, "file");
    assert_int_equal(pl_file_read(&file, NANO_TOKENIZER, &err), PL_OK);
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, file.data, file.len);
    pl_sha256_digest(&sha, expected);
    pl_buf_free(&file);
    assert_memory_equal(pl_tokenizer_sha256(tok), expected, 32);
    pl_tokenizer_close(tok);
    pl_tokenizer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file_itself),
        cmocka_unit_test(test_options_not_implemented),
        cmocka_unit_test(test_pre_tokenizers_not_implemented),
        cmocka_unit_test(test_vocabulary_faults),
        cmocka_unit_test(test_added_token_faults),
        cmocka_unit_test(test_messages_stay_one_line),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_gaps_are_no_tokens),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
