/* The arena: aligned, zeroed, disjoint blocks, and a clean end when it is spent. */
#include "base/arena.h"
#include "base/check.h"

static void rounds_up_to_whole_lines(void **state)
{
    (void)state;
    assert_int_equal(pl_arena_need(0), 0);
    assert_int_equal(pl_arena_need(1), 64);
    assert_int_equal(pl_arena_need(64), 64);
    assert_int_equal(pl_arena_need(65), 128);
    assert_true(pl_arena_need(SIZE_MAX) == SIZE_MAX);
    assert_true(pl_arena_need(SIZE_MAX - 62) == SIZE_MAX);
}

static void hands_out_disjoint_zeroed_blocks(void **state)
{
    (void)state;
    pl_arena arena;
    pl_error err;
    assert_int_equal(pl_arena_open(&arena, 64 * 10, "test", &err), PL_OK);
    unsigned char *last = NULL;
    for (int i = 0; i < 10; i++) {
        unsigned char *p = pl_arena_take(&arena, 1 + (size_t)i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % PL_ARENA_ALIGN, 0);
        if (last)
            assert_ptr_equal(p, last + 64);
        for (int k = 0; k < 64; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xAA, 64);
        last = p;
    }
    assert_null(pl_arena_take(&arena, 1));
    assert_null(pl_arena_take(&arena, SIZE_MAX));
    assert_null(pl_arena_take(&arena, SIZE_MAX - 64));
    assert_int_equal(arena.used, 640);
    pl_arena_close(&arena);
    assert_null(arena.base);
    pl_arena_close(&arena);
}

static void refuses_what_cannot_be_reserved(void **state)
{
    (void)state;
    pl_arena arena;
    pl_error err;
    assert_fails(PL_ENOMEM, &err, pl_arena_open(&arena, SIZE_MAX / 2, "compressed entries", &err));
    assert_non_null(strstr(err.message, "compressed entries"));
    assert_null(pl_arena_take(&arena, 1));
    pl_arena_close(&arena);
}

static void an_empty_arena_is_fine(void **state)
{
    (void)state;
    pl_arena arena;
    assert_int_equal(pl_arena_open(&arena, 0, "nothing", NULL), PL_OK);
    assert_null(pl_arena_take(&arena, 1));
    pl_arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_up_to_whole_lines),
        cmocka_unit_test(hands_out_disjoint_zeroed_blocks),
        cmocka_unit_test(refuses_what_cannot_be_reserved),
        cmocka_unit_test(an_empty_arena_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
