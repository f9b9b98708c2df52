/* The growable buffer: content, cap, and that a refused append changes nothing. */
#include "base/buf.h"
#include "base/check.h"

static void appends_and_ends_in_nul(void **state)
{
    (void)state;
    pl_buf buf;
    pl_buf_init(&buf, 1000, "test");
    assert_null(buf.data);
    assert_int_equal(pl_buf_adds(&buf, "ab", NULL), PL_OK);
    assert_int_equal(pl_buf_add(&buf, "\0c", 2, NULL), PL_OK);
    assert_int_equal(pl_buf_addc(&buf, 'd', NULL), PL_OK);
    assert_int_equal(pl_buf_addf(&buf, NULL, "%05d", 42), PL_OK);
    assert_int_equal(pl_buf_add(&buf, NULL, 0, NULL), PL_OK);
    assert_int_equal(buf.len, 10);
    assert_memory_equal(buf.data, "ab\0cd00042", 11);
    pl_buf_clear(&buf);
    assert_int_equal(buf.len, 0);
    assert_string_equal(buf.data, "");
    pl_buf_free(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.cap, 1000);
    pl_buf_free(&buf);
}

static void adding_nothing_to_a_fresh_buffer_makes_a_string(void **state)
{
    (void)state;
    pl_buf buf;
    pl_buf_init(&buf, 0, "test");
    assert_int_equal(pl_buf_add(&buf, NULL, 0, NULL), PL_OK);
    assert_non_null(buf.data);
    assert_string_equal(buf.data, "");
    pl_buf_free(&buf);
}

static void stops_at_its_cap(void **state)
{
    (void)state;
    pl_buf buf;
    pl_error err;
    pl_buf_init(&buf, 100, "request body");
    char block[101];
    memset(block, 'x', sizeof block);
    assert_fails(PL_ELIMIT, &err, pl_buf_add(&buf, block, 101, &err));
    assert_non_null(strstr(err.message, "request body"));
    assert_non_null(strstr(err.message, "100"));
    assert_int_equal(pl_buf_add(&buf, block, 100, &err), PL_OK);
    assert_fails(PL_ELIMIT, &err, pl_buf_addc(&buf, 'y', &err));
    assert_fails(PL_ELIMIT, &err, pl_buf_addf(&buf, &err, "%d", 5));
    assert_fails(PL_ELIMIT, &err, pl_buf_reserve(&buf, SIZE_MAX, &err));
    assert_fails(PL_ELIMIT, &err, pl_buf_reserve(&buf, SIZE_MAX - 99, &err));
    assert_int_equal(buf.len, 100);
    assert_memory_equal(buf.data, block, 100);
    assert_int_equal(buf.data[100], 0);
    pl_buf_free(&buf);
}

static void consumes_from_the_front(void **state)
{
    (void)state;
    pl_buf buf;
    pl_buf_init(&buf, 100, "test");
    pl_buf_consume(&buf, 5);
    assert_int_equal(buf.len, 0);
    assert_int_equal(pl_buf_adds(&buf, "hello world", NULL), PL_OK);
    pl_buf_consume(&buf, 0);
    pl_buf_consume(&buf, 6);
    assert_string_equal(buf.data, "world");
    pl_buf_consume(&buf, 99);
    assert_int_equal(buf.len, 0);
    assert_string_equal(buf.data, "");
    pl_buf_free(&buf);
}

/* Many appends of every length keep every byte. */
static void grows_without_losing_bytes(void **state)
{
    (void)state;
    pl_buf buf;
    pl_buf_init(&buf, 1 << 20, "test");
    size_t total = 0;
    for (size_t n = 0; n < 300; n++) {
        for (size_t i = 0; i < n; i++)
            assert_int_equal(pl_buf_addc(&buf, (char)(total + i), NULL), PL_OK);
        total += n;
        assert_int_equal(pl_buf_reserve(&buf, n, NULL), PL_OK);
        assert_true(buf.room > buf.len + n - (n != 0));
    }
    assert_int_equal(buf.len, total);
    for (size_t i = 0; i < total; i++)
        assert_int_equal(buf.data[i], (char)i);
    pl_buf_free(&buf);
}

static void fits_and_grows_again(void **state)
{
    (void)state;
    pl_buf buf;
    pl_buf_init(&buf, 1000, "test");
    pl_buf_fit(&buf);
    assert_null(buf.data);
    for (int i = 0; i < 300; i++)
        assert_int_equal(pl_buf_addc(&buf, 'x', NULL), PL_OK);
    assert_true(buf.room > 301);
    pl_buf_fit(&buf);
    assert_int_equal(buf.room, 301);
    assert_int_equal(strlen(buf.data), 300);
    assert_int_equal(pl_buf_adds(&buf, "yz", NULL), PL_OK);
    assert_int_equal(buf.len, 302);
    assert_string_equal(buf.data + 299, "xyz");
    pl_buf_free(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_ends_in_nul),    cmocka_unit_test(adding_nothing_to_a_fresh_buffer_makes_a_string),
        cmocka_unit_test(stops_at_its_cap),           cmocka_unit_test(consumes_from_the_front),
        cmocka_unit_test(grows_without_losing_bytes), cmocka_unit_test(fits_and_grows_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
