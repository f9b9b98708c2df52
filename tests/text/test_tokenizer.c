/* Encoding and decoding: the reference library's ids on both shipped tokenizers, and what must hold for any text. */
#include <jansson.h>

#include "base/file.h"
#include "text/tokenizer_check.h"

static void encode(const pl_tokenizer *tok, const char *text, size_t len, bool match, pl_ids *ids)
{
    pl_error err;
    pl_ids_clear(ids);
    if (pl_tokenizer_encode(tok, text, len, match, ids, &err) != PL_OK)
        fail_msg("%s", err.message);
}

/* Text and ids of one reference case; decoding gives the text back. */
static void check_case(const pl_tokenizer *tok, const json_t *text, const json_t *expected)
{
    pl_ids ids;
    pl_buf back;
    pl_error err;
    pl_ids_init(&ids, PL_IDS_MAX);
    pl_buf_init(&back, 1 << 20, "text");
    encode(tok, json_string_value(text), json_string_length(text), true, &ids);
    assert_int_equal(ids.len, json_array_size(expected));
    for (size_t i = 0; i < ids.len; i++)
        assert_int_equal(ids.data[i], json_integer_value(json_array_get(expected, i)));
    assert_int_equal(pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err), PL_OK);
    assert_int_equal(back.len, json_string_length(text));
    if (back.len)
        assert_memory_equal(back.data, json_string_value(text), back.len);
    pl_buf_free(&back);
    pl_ids_free(&ids);
}

static json_t *read_json(const char *path)
{
    json_error_t why;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (!json)
        fail_msg("%s: %s", path, why.text);
    return json;
}

static void test_tiny_reference_cases(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(TINY_TOKENIZER);
    json_t *cases = read_json("tests/vectors/tiny-a/tokenizer_cases.json"), *one;
    size_t i;
    assert_int_equal(json_array_size(cases), 83);
    json_array_foreach(cases, i, one)
    {
        check_case(tok, json_object_get(one, "text"), json_object_get(one, "ids"));
    }
    json_decref(cases);
    pl_tokenizer_close(tok);
}

static void test_nano_reference_texts(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(NANO_TOKENIZER);
    json_t *cases = read_json("tests/vectors/nano/cases.json"), *one;
    const char *name;
    int checked = 0;
    json_object_foreach(cases, name, one)
    {
        if (json_object_get(one, "text") && json_object_get(one, "ids")) {
            check_case(tok, json_object_get(one, "text"), json_object_get(one, "ids"));
            checked++;
        }
    }
    assert_true(checked >= 6);
    json_decref(cases);
    pl_tokenizer_close(tok);
}

static void test_plain_text_never_becomes_a_control_token(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(NANO_TOKENIZER);
    pl_ids ids;
    pl_ids_init(&ids, PL_IDS_MAX);
    int added = 0;
    for (int32_t id = 0; id < pl_tokenizer_size(tok); id++) {
        pl_token t, of;
        assert_true(pl_tokenizer_token(tok, id, &t));
        if (!t.added)
            continue;
        added++;
        encode(tok, t.bytes, t.len, true, &ids);
        assert_int_equal(ids.len, 1);
        assert_int_equal(ids.data[0], id);
        encode(tok, t.bytes, t.len, false, &ids);
        assert_true(ids.len > 1);
        for (size_t i = 0; i < ids.len; i++) {
            assert_true(pl_tokenizer_token(tok, ids.data[i], &of));
            assert_false(of.added);
        }
    }
    assert_int_equal(added, 67);
    pl_ids_free(&ids);
    pl_tokenizer_close(tok);
}

static void test_find_and_token(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(NANO_TOKENIZER);
    pl_token t = {.len = 77};
    assert_int_equal(pl_tokenizer_size(tok), 8192);
    assert_int_equal(pl_tokenizer_find(tok, "<｜end▁of▁sentence｜>"), 1);
    assert_int_equal(pl_tokenizer_find(tok, "<｜User｜>"), 8140);
    assert_int_equal(pl_tokenizer_find(tok, "<｜User｜"), -1);
    assert_int_equal(pl_tokenizer_find(tok, "the"), -1);
    assert_int_equal(pl_tokenizer_find(tok, ""), -1);
    assert_true(pl_tokenizer_token(tok, 1, &t));
    assert_true(t.added && t.special);
    assert_int_equal(t.len, strlen("<｜end▁of▁sentence｜>"));
    assert_true(pl_tokenizer_token(tok, 8140, &t));
    assert_true(t.added && !t.special);
    assert_false(pl_tokenizer_token(tok, -1, &t));
    assert_false(pl_tokenizer_token(tok, 8192, &t));
    assert_int_equal(t.len, strlen("<｜User｜>"));
    pl_tokenizer_close(tok);
}

static void test_decode_drops_special_tokens_on_demand_only(void **state)
{
    (void)state;
    pl_tokenizer *tok = small_tokenizer("", "", ADDED(256, "[S]", false, true) "," ADDED(257, "[č]", true, false));
    const int32_t ids[] = {256, 'a', 257, 256, ' ', 0};
    pl_buf out;
    pl_error err;
    pl_buf_init(&out, 100, "text");
    assert_int_equal(pl_tokenizer_decode(tok, ids, 6, false, &out, &err), PL_OK);
    assert_int_equal(out.len, 13); /* an added token's letters are no byte letters: its spelling is kept */
    assert_memory_equal(out.data, "[S]a[č][S] \0", 13);
    pl_buf_clear(&out);
    assert_int_equal(pl_tokenizer_decode(tok, ids, 6, true, &out, &err), PL_OK);
    assert_memory_equal(out.data, "a[č] \0", 8);
    const int32_t bad[] = {'x', 258};
    assert_fails(PL_EINVAL, &err, pl_tokenizer_decode(tok, bad, 2, false, &out, &err));
    assert_int_equal(err.offset, 1);
    assert_int_equal(out.len, 7);
    assert_memory_equal(out.data, "a[č] \0", 8);
    pl_buf_free(&out);
    pl_tokenizer_close(tok);
}

static void check_ids(const pl_tokenizer *tok, const char *text, const char *expected)
{
    pl_ids ids;
    pl_buf shown;
    pl_error err;
    pl_ids_init(&ids, PL_IDS_MAX);
    pl_buf_init(&shown, 4096, "ids");
    encode(tok, text, strlen(text), true, &ids);
    pl_buf_adds(&shown, "", &err);
    for (size_t i = 0; i < ids.len; i++)
        pl_buf_addf(&shown, &err, "%s%d", i ? " " : "", (int)ids.data[i]);
    assert_string_equal(shown.data, expected);
    pl_buf_free(&shown);
    pl_ids_free(&ids);
}

static void test_added_tokens_leftmost_longest_the_unnormalised_first(void **state)
{
    (void)state;
    pl_tokenizer *tok = small_tokenizer(
        "", "",
        ADDED(256, "<a", false, true) "," ADDED(257, "<abc", false, true) "," ADDED(258, "bcd", false, true) "," ADDED(
            259, "x<abcd", true, false) "," ADDED(260, "de", true, false));
    check_ids(tok, "<abcd", "257 100"); /* the longest, not "<a" */
    check_ids(tok, "<abd", "256 98 100");
    check_ids(tok, "<a<ab", "256 256 98");
    check_ids(tok, "x<abcd", "120 257 100"); /* 259 is longer and further left, but of the second kind */
    check_ids(tok, "abcde", "97 258 101");
    check_ids(tok, "xdey", "120 260 121");
    check_ids(tok, "<<ab", "60 256 98");
    check_ids(tok, "", "");
    pl_tokenizer_close(tok);
}

static void test_refusals_leave_the_list_alone(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(TINY_TOKENIZER);
    pl_ids ids;
    pl_error err;
    pl_ids_init(&ids, 5);
    assert_int_equal(pl_ids_push(&ids, 42, &err), PL_OK);
    assert_fails(PL_EFORMAT, &err, pl_tokenizer_encode(tok, "ab\xc3(", 4, true, &ids, &err));
    assert_int_equal(err.offset, 2);
    assert_fails(PL_EFORMAT, &err, pl_tokenizer_encode(tok, "\xed\xa0\x80", 3, true, &ids, &err));
    assert_fails(PL_EFORMAT, &err, pl_tokenizer_encode(tok, "a\xe4\xbd", 3, true, &ids, &err));
    assert_int_equal(err.offset, 1);
    assert_fails(PL_ELIMIT, &err, pl_tokenizer_encode(tok, "q w e r t", 9, true, &ids, &err));
    assert_int_equal(ids.len, 1);
    assert_int_equal(ids.data[0], 42);
    assert_int_equal(pl_tokenizer_encode(tok, "", 0, true, &ids, &err), PL_OK);
    assert_int_equal(pl_tokenizer_encode(tok, "\0", 1, true, &ids, &err), PL_OK);
    assert_int_equal(ids.len, 2);
    pl_ids_free(&ids);
    pl_tokenizer_close(tok);
}

static void round_trip(const pl_tokenizer *tok, uint64_t *random, bool match)
{
    char text[600];
    size_t len = 0, most = random_next(random) % 400;
    while (len < most) {
        pl_token t;
        if (random_next(random) % 8 == 0) { /* a whole token now and then, where it is text by itself */
            assert_true(pl_tokenizer_token(tok, (int32_t)(random_next(random) % (uint64_t)pl_tokenizer_size(tok)), &t));
            if (t.len > 128 || pl_utf8_check(t.bytes, t.len) < t.len)
                continue;
            memcpy(text + len, t.bytes, t.len);
            len += t.len;
        } else {
            len += (size_t)random_char(random, text + len);
        }
    }
    pl_ids ids;
    pl_buf back;
    pl_error err;
    pl_ids_init(&ids, PL_IDS_MAX);
    pl_buf_init(&back, 1 << 20, "text");
    encode(tok, text, len, match, &ids);
    assert_int_equal(pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err), PL_OK);
    assert_int_equal(back.len, len);
    if (len)
        assert_memory_equal(back.data, text, len);
    pl_buf_free(&back);
    pl_ids_free(&ids);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint64_t random = random_seed();
    pl_tokenizer *nano = load_tokenizer(NANO_TOKENIZER), *tiny = load_tokenizer(TINY_TOKENIZER);
    for (int i = 0; i < 4000; i++)
        round_trip(i % 2 ? nano : tiny, &random, i % 4 < 2);
    pl_tokenizer_close(nano);
    pl_tokenizer_close(tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny_reference_cases),
        cmocka_unit_test(test_nano_reference_texts),
        cmocka_unit_test(test_plain_text_never_becomes_a_control_token),
        cmocka_unit_test(test_find_and_token),
        cmocka_unit_test(test_decode_drops_special_tokens_on_demand_only),
        cmocka_unit_test(test_added_tokens_leftmost_longest_the_unnormalised_first),
        cmocka_unit_test(test_refusals_leave_the_list_alone),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
