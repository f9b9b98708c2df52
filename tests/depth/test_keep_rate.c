/* From a confidence to the chance of being kept. */
#include "depth/depth_kit.h"

static double chance(const pl_keep_rate *r, int position, float confidence)
{
    return pl_keep_chance(r, false, position, confidence);
}

static void unknown_positions_are_taken_at_their_word(void **state)
{
    (void)state;
    pl_keep_rate r = {0};
    for (int k = 0; k < PL_KEEP_POSITIONS; k++)
        for (int i = 1; i < 20; i++)
            assert_true(fabs(chance(&r, k, kit_logit(i / 20.0)) - i / 20.0) < 1e-6);
}

static void odd_confidences_are_chances_still(void **state)
{
    (void)state;
    pl_keep_rate r = {0};
    assert_true(chance(&r, 0, NAN) == 0);
    assert_true(chance(&r, 0, -INFINITY) == 0);
    assert_true(chance(&r, 0, -FLT_MAX) == 0);
    assert_true(chance(&r, 0, INFINITY) == 0.995);
    assert_true(chance(&r, 0, FLT_MAX) == 0.995);
    assert_true(chance(&r, 0, 0) == 0.5);
    /* Learning from them spoils nothing. */
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX};
    for (int i = 0; i < 1000; i++)
        pl_keep_saw(&r, false, 0, odd[i % 5], i % 3 == 0);
    double c = chance(&r, 0, 0);
    assert_true(c >= 0.1 && c <= 0.995);
}

/* The factor stays within 0.2 and 3, the chance below 0.995, however one-sided the sightings are. */
static void factors_are_held(void **state)
{
    (void)state;
    pl_keep_rate r = {0};
    for (int i = 0; i < 1000; i++) {
        pl_keep_saw(&r, false, 0, kit_logit(0.9), false);
        pl_keep_saw(&r, false, 1, kit_logit(0.02), true);
    }
    assert_true(fabs(chance(&r, 0, kit_logit(0.5)) - 0.2 * 0.5) < 1e-6);
    assert_true(fabs(chance(&r, 1, kit_logit(0.1)) - 3 * 0.1) < 1e-6);
    assert_true(chance(&r, 1, kit_logit(0.9)) == 0.995);
}

static void what_was_seen_is_followed_and_fades(void **state)
{
    (void)state;
    pl_keep_rate r = {0};
    for (int i = 0; i < 1000; i++)
        pl_keep_saw(&r, false, 2, kit_logit(0.8), i % 5 < 2); /* said 0.8, held 0.4 */
    double c = chance(&r, 2, kit_logit(0.8));
    assert_true(c > 0.25 && c < 0.55);
    for (int i = 0; i < 300; i++)
        pl_keep_saw(&r, false, 2, kit_logit(0.8), i % 5 < 4); /* now it holds what it says */
    c = chance(&r, 2, kit_logit(0.8));
    assert_true(c > 0.75 && c < 0.85);
    /* One sighting among many moves it by little. */
    pl_keep_saw(&r, false, 2, kit_logit(0.8), false);
    assert_true(fabs(chance(&r, 2, kit_logit(0.8)) - c) < 0.04);
}

static void classes_and_positions_are_apart(void **state)
{
    (void)state;
    pl_keep_rate r = {0};
    for (int i = 0; i < 200; i++)
        pl_keep_saw(&r, true, 3, kit_logit(0.9), false);
    assert_true(pl_keep_chance(&r, true, 3, kit_logit(0.9)) < 0.3);
    assert_true(fabs(pl_keep_chance(&r, false, 3, kit_logit(0.9)) - 0.9) < 1e-6);
    for (int k = 0; k < PL_KEEP_POSITIONS; k++)
        if (k != 3)
            assert_true(fabs(pl_keep_chance(&r, true, k, kit_logit(0.9)) - 0.9) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_positions_are_taken_at_their_word),
        cmocka_unit_test(odd_confidences_are_chances_still),
        cmocka_unit_test(factors_are_held),
        cmocka_unit_test(what_was_seen_is_followed_and_fades),
        cmocka_unit_test(classes_and_positions_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
