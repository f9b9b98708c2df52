/* Prices: a guess, what was measured, what lies between and beyond. */
#include "depth/depth_kit.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void the_guess_is_a_line(void **state)
{
    (void)state;
    pl_cost c;
    pl_cost_init(&c, 10, 5, 8, 6);
    for (int rows = 1; rows <= 3 * PL_COST_ROWS; rows++)
        assert_true(near(pl_cost_verify(&c, rows), 10 + 5 * (rows - 1)));
    for (int asks = 1; asks <= 3 * PL_COST_ASKS; asks++)
        assert_true(near(pl_cost_pass(&c, asks), 8 + 6 * (asks - 1)));
    assert_true(pl_cost_pass(&c, 0) == 0);
    assert_true(pl_cost_pass(&c, -1) == 0);
}

static void what_was_measured_replaces_it(void **state)
{
    (void)state;
    pl_cost c;
    pl_cost_init(&c, 10, 5, 8, 6);
    pl_cost_saw_verify(&c, 4, 30);
    assert_true(near(pl_cost_verify(&c, 4), 30));
    pl_cost_saw_verify(&c, 4, 34);
    assert_true(near(pl_cost_verify(&c, 4), 30)); /* of the first few the least: the others waited for something */
    pl_cost_saw_verify(&c, 4, 28);
    pl_cost_saw_verify(&c, 4, 31);
    assert_true(near(pl_cost_verify(&c, 4), 28));
    pl_cost_saw_verify(&c, 4, 38);
    assert_true(near(pl_cost_verify(&c, 4), 30)); /* then a mean, of five */
    pl_cost_saw_pass(&c, 2, 5);
    assert_true(near(pl_cost_pass(&c, 2), 5));
    /* Of late: what was true long ago is forgotten. */
    for (int i = 0; i < 400; i++)
        pl_cost_saw_verify(&c, 4, 20);
    assert_true(fabs(pl_cost_verify(&c, 4) - 20) < 0.01);
    for (int i = 0; i < 400; i++)
        pl_cost_saw_verify(&c, 4, 60);
    assert_true(fabs(pl_cost_verify(&c, 4) - 60) < 0.01); /* no stall: it stays */
    /* Passes of more asks than have an entry count as the most. */
    pl_cost_saw_pass(&c, 5 * PL_COST_ASKS, 100);
    assert_true(near(pl_cost_pass(&c, PL_COST_ASKS), 100));
}

static void the_nearest_scales_the_rest(void **state)
{
    (void)state;
    pl_cost c;
    pl_cost_init(&c, 10, 5, 8, 6);
    pl_cost_saw_verify(&c, 3, 40); /* guessed 20: this machine takes twice as long */
    assert_true(near(pl_cost_verify(&c, 1), 20));
    assert_true(near(pl_cost_verify(&c, 2), 30));
    assert_true(near(pl_cost_verify(&c, 5), 60));
    assert_true(near(pl_cost_verify(&c, PL_COST_ROWS + 37), 2 * (10 + 5 * (PL_COST_ROWS + 36))));
    pl_cost_saw_verify(&c, 7, 48); /* between two: on the line */
    assert_true(near(pl_cost_verify(&c, 4), 42));
    assert_true(near(pl_cost_verify(&c, 6), 46));
    assert_true(near(pl_cost_verify(&c, 9), 50 * 48.0 / 40));
    assert_true(near(pl_cost_verify(&c, 1), 20)); /* below all: as before */
    pl_cost_saw_pass(&c, 1, 4);
    assert_true(near(pl_cost_pass(&c, 3), 10));
}

/* Whatever was measured, in whatever order: more rows never cost less. */
static void no_price_falls_with_rows(void **state)
{
    (void)state;
    kit_seed();
    for (int round = 0; round < 3000; round++) {
        pl_cost c;
        pl_cost_init(&c, 0.1 + 20 * kit_some(), 10 * kit_some(), 0.1 + 20 * kit_some(), 10 * kit_some());
        for (int i = kit_below(12); i > 0; i--) {
            pl_cost_saw_verify(&c, 1 + kit_below(kit_below(2) ? 8 : PL_COST_ROWS), 200 * kit_some());
            pl_cost_saw_pass(&c, 1 + kit_below(PL_COST_ASKS + 2), 200 * kit_some());
        }
        for (int n = 1; n < PL_COST_ROWS + 10; n++) {
            assert_true(pl_cost_verify(&c, n) > 0);
            assert_true(pl_cost_verify(&c, n + 1) >= pl_cost_verify(&c, n) * (1 - 1e-12));
            assert_true(pl_cost_pass(&c, n + 1) >= pl_cost_pass(&c, n) * (1 - 1e-12));
            if (n <= PL_COST_ROWS && c.verify[n].seen)
                assert_true(pl_cost_verify(&c, n) >= c.verify[n].ms);
        }
    }
}

/* One launch that took a second among launches of ten ms moves the price by little. */
static void a_stall_is_cut(void **state)
{
    (void)state;
    pl_cost c;
    pl_cost_init(&c, 10, 5, 8, 6);
    for (int i = 0; i < 10; i++)
        pl_cost_saw_verify(&c, 2, 10);
    pl_cost_saw_verify(&c, 2, 1000);
    assert_true(pl_cost_verify(&c, 2) > 10);
    assert_true(pl_cost_verify(&c, 2) < 11);
    for (int i = 0; i < 10; i++)
        pl_cost_saw_pass(&c, 1, 8);
    pl_cost_saw_pass(&c, 1, DBL_MAX);
    assert_true(pl_cost_pass(&c, 1) < 9);
}

static void odd_times_are_passed_over(void **state)
{
    (void)state;
    static const double odd[] = {0, -0.0, -1, NAN, INFINITY, -INFINITY};
    pl_cost c, before;
    pl_cost_init(&c, 10, 5, 8, 6);
    pl_cost_saw_verify(&c, 2, 12);
    pl_cost_saw_pass(&c, 2, 12);
    before = c;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        pl_cost_saw_verify(&c, 2, odd[i]);
        pl_cost_saw_verify(&c, 3, odd[i]);
        pl_cost_saw_pass(&c, 2, odd[i]);
    }
    /* And counts that have no entry. */
    pl_cost_saw_verify(&c, 0, 7);
    pl_cost_saw_verify(&c, -3, 7);
    pl_cost_saw_verify(&c, PL_COST_ROWS + 1, 7);
    pl_cost_saw_pass(&c, 0, 7);
    pl_cost_saw_pass(&c, -1, 7);
    assert_memory_equal(&c, &before, sizeof c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guess_is_a_line),
        cmocka_unit_test(what_was_measured_replaces_it),
        cmocka_unit_test(the_nearest_scales_the_rest),
        cmocka_unit_test(no_price_falls_with_rows),
        cmocka_unit_test(a_stall_is_cut),
        cmocka_unit_test(odd_times_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
