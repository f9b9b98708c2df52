/* Rope tables equal the reference's, bit for bit. */
#include "base/buf.h"
#include "base/file.h"
#include "base/rope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void equals(const char *file, double theta, const pl_rope_yarn *yarn)
{
    pl_buf buf;
    pl_error err;
    float freq[32];
    pl_buf_init(&buf, sizeof freq, file);
    assert_int_equal(pl_file_read(&buf, file, &err), PL_OK);
    assert_int_equal(buf.len, sizeof freq);
    pl_rope_frequencies(freq, 64, theta, yarn);
    assert_memory_equal(freq, buf.data, sizeof freq);
    pl_buf_free(&buf);
}

static void plain_table_is_the_gpus(void **state)
{
    (void)state;
    equals("tests/vectors/tiny-a/unit/rope.plain.freq_gpu.f32", 10000, NULL);
}

static void yarn_table_is_the_gpus(void **state)
{
    (void)state;
    pl_rope_yarn yarn = {16, 32, 1, 65536};
    equals("tests/vectors/tiny-a/unit/rope.yarn.freq_gpu.f32", 160000, &yarn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_table_is_the_gpus),
        cmocka_unit_test(yarn_table_is_the_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
