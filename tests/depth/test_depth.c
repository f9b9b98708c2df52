/* The two functions as the rounds call them. */
#include "depth/depth_kit.h"

enum { SLOTS = 70 };

/* A round of n lanes that all may draft: five proposals each at this chance; tells how it went. */
static pl_depth_outcome turn(pl_depth *d, int n, double chance, bool lands, double verify_row_ms)
{
    static pl_depth_lane lane[SLOTS];
    static pl_depth_result result[SLOTS];
    static float confidence[5];
    pl_depth_round round = {.lane = lane, .lanes = n, .rows = 6 * n};
    for (int k = 0; k < 5; k++)
        confidence[k] = kit_logit(chance);
    for (int i = 0; i < n; i++)
        lane[i] = (pl_depth_lane){.slot = i, .drafts = true, .most = 15};
    pl_depth_decide(d, &round);
    pl_depth_outcome o = {.result = result, .lanes = n, .rows = n};
    for (int i = 0; i < n; i++) {
        lane[i].heads = lane[i].ask ? 5 : 0;
        lane[i].confidence = confidence;
        o.asks += lane[i].ask;
    }
    round.passed = true;
    pl_depth_decide(d, &round);
    for (int i = 0; i < n; i++) {
        int kept = lands ? lane[i].depth : 0, known = lands ? kept + 1 : 0; /* row 0 shows one more */
        o.rows += lane[i].depth;
        result[i] = (pl_depth_result){.slot = i,
                                      .depth = lane[i].depth,
                                      .accepted = kept,
                                      .heads = lane[i].heads,
                                      .confidence = confidence,
                                      .agreed = known < lane[i].heads ? known : lane[i].heads,
                                      .known_miss = lane[i].heads && !lands};
    }
    o.verify_ms = 10 + verify_row_ms * (o.rows - n);
    o.pass_ms = o.asks ? 2 : 0;
    pl_depth_observe(d, &o);
    return o;
}

static void plain_rounds_from_so_many_streams(void **state)
{
    (void)state;
    for (int from = 0; from <= 5; from++) {
        pl_depth *d = kit_depth(SLOTS, from, 1, 10, 0.5);
        for (int n = 1; n <= SLOTS; n++)
            for (int i = 0; i < 3; i++) {
                pl_depth_outcome o = turn(d, n, 0.9, true, 0.5);
                bool plain = (from && n >= from) || n > PL__DEPTH_LANES;
                bool looks = n < PL_PAUSE_STREAMS ? i == 2 : plain || o.asks == 0; /* the third round of each */
                assert_int_equal(o.asks, plain || looks ? 0 : n);
                assert_true(o.asks ? o.rows > n : o.rows == n);
            }
        pl_depth_close(d);
    }
}

static void it_looks_at_plain_now_and_then(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) {
        pl_depth *d = kit_depth(2, 3, 1, 10, 0.5);
        int plain = 0, early = 0;
        for (int i = 0; i < 4096; i++) {
            bool was = turn(d, n, 0.9, true, 0.5).asks == 0;
            plain += was;
            early += was && i < 8;
        }
        assert_int_equal(early, 2);
        assert_int_equal(plain, 2 + 4096 / 256);
        pl_depth_close(d);
    }
}

/* Drafts that never land: after a while nearly all rounds are plain. Then they land: it may rest once more, and then
 * learns what they are worth from the few rounds of each trial. */
static void it_rests_and_comes_back(void **state)
{
    (void)state;
    pl_depth *d = kit_depth(1, 3, 1, 10, 1);
    int asked = 0, back = 0, late = 0;
    for (int i = 0; i < 4000; i++)
        asked += turn(d, 1, 0.9, false, 1).asks;
    assert_true(asked > 0 && asked < 200);
    for (int i = 0; i < 6000; i++) {
        pl_depth_outcome o = turn(d, 1, 0.9, true, 1);
        back = back || o.rows < 6 ? back : i;
        late += i >= 5000 && o.rows == 6;
    }
    print_message("%d asks while none landed; whole blocks again after %d rounds\n", asked, back);
    assert_true(back > 0 && back < 5000);
    assert_true(late > 990); /* but for a look at plain */
    pl_depth_close(d);
}

/* A stream asks neither when it may not draft, has no room, nor when copies that land are at hand. */
static void who_asks(void **state)
{
    (void)state;
    pl_depth *d = kit_depth(4, 0, 1, 10, 1);
    pl_depth_lane lane[4] = {{.slot = 0, .drafts = true, .most = 5},
                             {.slot = 1, .drafts = false, .most = 5, .copies = 15, .match = 20},
                             {.slot = 2, .drafts = true, .most = 0},
                             {.slot = 3, .drafts = true, .most = 5, .copies = 15, .match = 20}};
    pl_depth_round round = {.lane = lane, .lanes = 4, .rows = 64};
    pl_depth_decide(d, &round);
    assert_true(lane[0].ask);
    assert_false(lane[1].ask || lane[2].ask || lane[3].ask);
    round.passed = true;
    static const float no[5] = {-9, -9, -9, -9, -9};
    lane[0].heads = 5;
    lane[0].confidence = no;
    lane[0].copies = 3;
    lane[0].match = 4;
    pl_depth_decide(d, &round);
    assert_true(lane[0].copy && lane[0].depth <= 3); /* the copied ones are worth more here */
    assert_true(lane[3].copy && lane[3].depth > 0 && lane[3].depth <= 5);
    assert_int_equal(lane[1].depth, 0);
    assert_int_equal(lane[2].depth, 0);
    /* Copies that never land lose their credit: the stream asks again. A new stream in the slot has it back. */
    pl_depth_result miss = {.slot = 3, .copy = true, .match = 20, .depth = 5, .missed = true};
    for (int i = 0; i < 20; i++)
        pl_depth_observe(d, &(pl_depth_outcome){.result = &miss, .lanes = 1, .rows = 6, .verify_ms = 15});
    round.passed = false;
    pl_depth_decide(d, &round);
    assert_true(lane[3].ask);
    pl_depth_admit(d, 3);
    bool looks = true;
    for (int i = 0; i < 4 && looks; i++) { /* past the early plain ones */
        pl_depth_decide(d, &round);
        looks = !lane[0].ask;
    }
    assert_false(looks || lane[3].ask);
    pl_depth_close(d);
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    pl_depth *d;
    pl_error err;
    pl_depth_settings s = {.slots = 0, .fixed = -1};
    assert_fails(PL_EINVAL, &err, pl_depth_open(&d, &s, &err));
    assert_null(d);
    for (int joint = -1; joint <= 3; joint += 4) {
        s = (pl_depth_settings){.slots = 1, .fixed = -1, .joint = joint};
        assert_fails(PL_EINVAL, &err, pl_depth_open(&d, &s, &err));
        assert_string_equal(err.param, "depth-joint");
    }
    pl_depth_close(NULL);
}

static double odd_ms(void)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -1, DBL_MAX, DBL_MIN, 1e-300};
    return kit_below(3) ? 50 * kit_some() : odd[kit_below(8)];
}

static float odd_confidence(void)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0};
    return kit_below(3) ? (float)(8 * kit_some() - 4) : odd[kit_below(6)];
}

static void any_round(pl_depth *d, float (*confidence)[PL_DEPTH_MOST + 1])
{
    static pl_depth_lane lane[SLOTS];
    int n = kit_below(4) ? 1 + kit_below(3) : kit_below(SLOTS + 1);
    pl_depth_round round = {.lane = lane, .lanes = n, .rows = n + kit_below(80)};
    for (int i = 0; i < n; i++)
        lane[i] = (pl_depth_lane){.slot = i,
                                  .drafts = kit_below(8),
                                  .sampled = kit_below(2),
                                  .most = kit_below(PL_DEPTH_MOST + 1),
                                  .copies = kit_below(PL_DEPTH_MOST + 1),
                                  .match = kit_below(40)};
    pl_depth_decide(d, &round);
    for (int i = 0; i < n; i++) {
        assert_false(lane[i].ask && (!lane[i].drafts || lane[i].most < 1));
        lane[i].heads = lane[i].ask ? kit_below(PL_DEPTH_MOST + 2) : 0;
        lane[i].confidence = confidence[i];
        for (int k = 0; k < lane[i].heads; k++)
            confidence[i][k] = odd_confidence();
    }
    round.passed = true;
    pl_depth_decide(d, &round);
    int rows = n;
    for (int i = 0; i < n; i++) {
        int there = lane[i].copy ? lane[i].copies : lane[i].heads;
        assert_true(lane[i].depth >= 0 && lane[i].depth <= lane[i].most && lane[i].depth <= there);
        assert_false(lane[i].depth && !lane[i].drafts);
        rows += lane[i].depth;
    }
    assert_true(rows <= round.rows || n == 0);
}

static void any_outcome(pl_depth *d, float (*confidence)[PL_DEPTH_MOST + 1])
{
    static pl_depth_result result[SLOTS];
    int n = kit_below(4) ? 1 + kit_below(3) : kit_below(SLOTS + 1);
    for (int i = 0; i < n; i++) {
        int depth = kit_below(PL_DEPTH_MOST + 1), heads = kit_below(PL_DEPTH_MOST + 2);
        result[i] = (pl_depth_result){.slot = kit_below(SLOTS),
                                      .sampled = kit_below(2),
                                      .copy = kit_below(2),
                                      .match = kit_below(40),
                                      .depth = depth,
                                      .accepted = kit_below(depth + 1),
                                      .missed = kit_below(2),
                                      .heads = heads,
                                      .confidence = confidence[i],
                                      .agreed = kit_below(heads + 1),
                                      .known_miss = kit_below(2)};
        for (int k = 0; k < heads; k++)
            confidence[i][k] = odd_confidence();
    }
    pl_depth_outcome o = {.result = result,
                          .lanes = n,
                          .rows = kit_below(2) ? n + kit_below(80) : kit_below(3000),
                          .asks = kit_below(SLOTS + 1),
                          .verify_ms = odd_ms(),
                          .pass_ms = odd_ms()};
    pl_depth_observe(d, &o);
}

static void nothing_odd_breaks_it(void **state)
{
    (void)state;
    static float confidence[SLOTS][PL_DEPTH_MOST + 1];
    kit_seed();
    for (int run = 0; run < 100; run++) {
        pl_depth *d = kit_depth(SLOTS, kit_below(6), kit_below(3), 10 * kit_some(), 5 * kit_some());
        d->settings.fixed = kit_below(3) ? -1 : kit_below(20);
        for (int i = 0; i < 500; i++) {
            any_round(d, confidence);
            any_outcome(d, confidence);
            if (kit_below(20) == 0)
                pl_depth_admit(d, kit_below(SLOTS));
        }
        assert_true(pl_cost_verify(&d->cost, 1) > 0);
        pl_depth_close(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_rounds_from_so_many_streams), cmocka_unit_test(it_looks_at_plain_now_and_then),
        cmocka_unit_test(it_rests_and_comes_back),           cmocka_unit_test(who_asks),
        cmocka_unit_test(bad_settings_are_refused),          cmocka_unit_test(nothing_odd_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
