/* Outside text in messages: nothing that moves a cursor, ends a line or is no UTF-8 gets through, wherever it is
 * cut. */
#include "base/check.h"
#include "base/printable.h"
#include "base/status.h"
#include "base/utf8.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain \"text\" \\ and ▁ 语言 👍", "plain \"text\" \\ and ▁ 语言 👍"},
    {"a\nb\r\tc", "a\\x0Ab\\x0D\\x09c"},
    {"\x1b[31mred\x07", "\\x1B[31mred\\x07"},
    {"\x7f", "\\x7F"},
    {"\xc2\x85\xc2\x9b\xc2\xa0", "\\xC2\\x85\\xC2\\x9B\xc2\xa0"},
    {"\xff\xfe", "\\xFF\\xFE"},
    {"\xe2\x96", "\\xE2\\x96"},
    {"\xe2\x96z", "\\xE2\\x96z"},
    {"\xc0\xaf\xed\xa0\x80", "\\xC0\\xAF\\xED\\xA0\\x80"},
    {"x\xe2\x80\xaey\xe2\x80\xa8z\xe2\x81\xa6", "x\\xE2\\x80\\xAEy\\xE2\\x80\\xA8z\\xE2\\x81\\xA6"},
};

static void what_shows_stays_and_the_rest_is_escaped(void **state)
{
    (void)state;
    char out[256], again[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pl_printable(out, sizeof out, cases[i].text, strlen(cases[i].text)), strlen(cases[i].shown));
        assert_string_equal(out, cases[i].shown);
        pl_printable(again, sizeof again, out, strlen(out));
        assert_string_equal(again, out);
    }
    assert_int_equal(pl_printable(out, sizeof out, "a\0b", 3), 6);
    assert_string_equal(out, "a\\x00b");
}

static void no_room_cuts_neither_characters_nor_escapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t room = 1; room <= strlen(cases[i].shown) + 1; room++) {
            char *out = malloc(room); /* a sanitizer sees a byte too many */
            assert_non_null(out);
            size_t n = pl_printable(out, room, cases[i].text, strlen(cases[i].text));
            assert_int_equal(n, strlen(out));
            assert_memory_equal(out, cases[i].shown, n);
            assert_int_equal(pl_utf8_check(out, n), n);
            const char *slash = strrchr(out, '\\');
            assert_true(!slash || i == 1 || strlen(slash) >= 4); /* that one has a backslash of its own */
            free(out);
        }
}

static void messages_and_parameters_pass_through_it(void **state)
{
    (void)state;
    pl_error err;
    pl_fail_param(&err, PL_EINVAL, "top\x1b[2Jp", "found \"%s\"", "a\nb\xff");
    assert_string_equal(err.message, "found \"a\\x0Ab\\xFF\"");
    assert_string_equal(err.param, "top\\x1B[2Jp");
    pl_fail(&err, PL_EIO, "%s", "\x07");
    assert_string_equal(err.message, "\\x07");
    pl_fail_at(&err, PL_EIO, 3, "%s", "\xe2\x96");
    assert_string_equal(err.message, "\\xE2\\x96");
    /* A message that is cut in its last character, and one whose escapes no longer fit. */
    char text[2000];
    memset(text, 1, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    pl_fail(&err, PL_EIO, "%s", text);
    assert_int_equal(strlen(err.message), (sizeof err.message - 1) / 4 * 4);
    for (size_t at = sizeof err.message - 6; at < sizeof err.message + 6; at++) {
        memset(text, 'a', sizeof text - 1);
        memcpy(text + at, "👍", 4);
        pl_fail(&err, PL_EIO, "%s", text);
        assert_null(strchr(err.message, '\\'));
        assert_int_equal(pl_utf8_check(err.message, strlen(err.message)), strlen(err.message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_shows_stays_and_the_rest_is_escaped),
        cmocka_unit_test(no_room_cuts_neither_characters_nor_escapes),
        cmocka_unit_test(messages_and_parameters_pass_through_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
