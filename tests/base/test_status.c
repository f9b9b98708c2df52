/* The error object: filled once, whole, and never past its fields. */
#include "base/check.h"
#include "base/status.h"

static void fills_every_field(void **state)
{
    (void)state;
    pl_error err;
    memset(&err, 0x55, sizeof err);
    assert_int_equal(pl_fail(&err, PL_EIO, "%s: %d", "disk", 7), PL_EIO);
    assert_int_equal(err.status, PL_EIO);
    assert_string_equal(err.message, "disk: 7");
    assert_string_equal(err.param, "");
    assert_int_equal(err.offset, -1);
    assert_int_equal(pl_fail_param(&err, PL_EINVAL, "top-p", "bad"), PL_EINVAL);
    assert_string_equal(err.param, "top-p");
    assert_int_equal(err.offset, -1);
    assert_int_equal(pl_fail_at(&err, PL_EFORMAT, 99, "bad"), PL_EFORMAT);
    assert_int_equal(err.offset, 99);
    assert_string_equal(err.param, "");
}

static void takes_no_object(void **state)
{
    (void)state;
    assert_int_equal(pl_fail(NULL, PL_ENOMEM, "x"), PL_ENOMEM);
    assert_int_equal(pl_fail_param(NULL, PL_EINVAL, NULL, "x"), PL_EINVAL);
    assert_int_equal(pl_fail_at(NULL, PL_EFORMAT, 1, "x"), PL_EFORMAT);
}

/* Is text whole UTF-8 (no sequence cut)? Only what the test writes: ASCII and two- and three-byte characters. */
static bool whole(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int n = *p < 0x80 ? 1 : *p < 0xE0 ? 2 : 3;
        for (int i = 1; i < n; i++)
            if ((p[i] & 0xC0) != 0x80)
                return false;
        p += n;
    }
    return true;
}

static void cuts_at_a_character(void **state)
{
    (void)state;
    char text[2048];
    for (int shift = 0; shift < 4; shift++) {
        memset(text, 'a', (size_t)shift);
        for (int i = 0; i < 500; i++)
            memcpy(text + shift + 3 * i, "\xE2\x96\x81", 3);
        text[shift + 1500] = '\0';
        pl_error err;
        pl_fail_param(&err, PL_EINVAL, text, "%s", text);
        assert_true(strlen(err.message) < sizeof err.message);
        assert_true(strlen(err.message) >= sizeof err.message - 4);
        assert_true(whole(err.message));
        assert_true(strlen(err.param) >= sizeof err.param - 4);
        assert_true(whole(err.param));
        assert_memory_equal(err.message, text, strlen(err.message));
    }
}

/* A message that fills the field exactly ends in a whole character and must not lose it. */
static void keeps_a_character_that_fits(void **state)
{
    (void)state;
    char text[512];
    memset(text, 'a', 509);
    memcpy(text + 509, "\xC3\xA4", 3);
    assert_int_equal(strlen(text), 511);
    pl_error err;
    pl_fail(&err, PL_EINVAL, "%s", text);
    assert_string_equal(err.message, text);
}

static void names_every_status(void **state)
{
    (void)state;
    for (int a = 0; a >= PL_EFAULT; a--)
        for (int b = 0; b > a; b--)
            assert_string_not_equal(pl_status_name((pl_status)a), pl_status_name((pl_status)b));
    assert_string_equal(pl_status_name(PL_OK), "ok");
    assert_string_equal(pl_status_name((pl_status)-77), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_every_field),   cmocka_unit_test(takes_no_object),
        cmocka_unit_test(cuts_at_a_character), cmocka_unit_test(keeps_a_character_that_fits),
        cmocka_unit_test(names_every_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
