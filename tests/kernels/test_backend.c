/* Opening the CPU backend: instruction sets by name, memory, refusals. */
#include "ops_fixture.h"

static void names_are_checked(void **state)
{
    (void)state;
    pl_error err;
    pl_pool *pool;
    pl_kernels k;
    pl_kernel_limits limits = ops_limits();
    assert_int_equal(pl_pool_open(&pool, 2, &err), PL_OK);
    assert_int_equal(pl_cpu_kernels(&k, &limits, pool, "sse9", &err), PL_EINVAL);
    assert_string_equal(err.param, "isa");
    assert_non_null(strstr(err.message, "sse9"));
    int have = 0;
    static const char *const names[] = {"auto", "scalar", "avx2", "avx512", "neon"};
    for (int i = 0; i < 5; i++) {
        pl_status s = pl_cpu_kernels(&k, &limits, pool, names[i], &err);
        if (s != PL_OK) {
            assert_int_equal(s, PL_EINVAL);
            assert_true(i >= 2); /* auto and scalar are everywhere */
            continue;
        }
        have++;
        assert_non_null(strstr(k.name, i ? names[i] : "cpu "));
        k.close(&k);
    }
    assert_true(have >= 2);
    pl_pool_close(pool);
}

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    pl_error err;
    kit t;
    pl_kernel_limits limits = ops_limits();
    assert_true(kit_open(&t, "scalar", 1, &limits));
    for (size_t bytes = 0; bytes < 5000; bytes = 3 * bytes + 1) {
        void *p;
        assert_int_equal(t.k.reserve(&t.k, bytes, "a test", &p, &err), PL_OK);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(((unsigned char *)p)[i], 0);
        unsigned char in[4] = {1, 2, 3, 4}, out[4] = {0};
        if (bytes >= 4) {
            t.k.upload(&t.k, p, in, 4);
            t.k.download(&t.k, out, p, 4);
            assert_memory_equal(in, out, 4);
        }
    }
    kit_close(&t);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    pl_error err;
    kit t;
    void *p = &p;
    pl_kernel_limits limits = ops_limits();
    assert_true(kit_open(&t, "scalar", 1, &limits));
    assert_int_equal(t.k.reserve(&t.k, SIZE_MAX, "the moon", &p, &err), PL_ENOMEM);
    assert_non_null(strstr(err.message, "the moon"));
    assert_null(p);
    assert_int_equal(t.k.reserve(&t.k, SIZE_MAX / 2, "the moon", &p, &err), PL_ENOMEM);
    limits.heads = limits.head_dim = limits.window = 2000000000; /* sizes that do not fit must not wrap around */
    assert_true(pl_cpu_scratch_bytes(&limits, 64) > (uint64_t)1 << 62);
    pl_kernels k;
    assert_int_equal(pl_cpu_kernels(&k, &limits, t.pool, "scalar", &err), PL_ENOMEM);
    kit_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_checked),
                                       cmocka_unit_test(memory_is_zeroed_and_aligned),
                                       cmocka_unit_test(too_much_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
