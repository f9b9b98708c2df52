/* Depths: what is chosen is worth as much as the best of all that could be, in the fewest rows. */
#include "depth/depth_kit.h"

enum { LANES = 3, CASES = 3000 };
static const double SLACK = 1e-11; /* above the rounding of a sum, as the rule has it */

/* A round of the rule's inside: lanes with what they are offered, and streams that have a past. */
typedef struct scene {
    pl_depth *depth;
    pl_depth_lane lane[LANES];
    pl__offer offer[LANES];
    pl_depth_round round;
    double weight[LANES], rate, extra;
    bool must; /* who is offered something verifies one of it */
} scene;

typedef struct best {
    int taken[LANES], rows;
    double gain;
} best;

static void make_past(scene *s, int slot)
{
    pl__recent *r = &s->depth->slot[slot].recent;
    r->count = kit_below(4) ? 1 + kit_below(PL_DEPTH_RECENT) : 0;
    for (int i = 0; i < r->count; i++) {
        r->tokens[i] = 1 + kit_below(6);
        r->ms[i] = 1 + 60 * kit_some();
    }
}

static void make_prices(pl_cost *cost)
{
    for (int i = kit_below(10); i > 0; i--)
        pl_cost_saw_verify(cost, 1 + kit_below(20), 1 + 80 * kit_some());
}

static void make(scene *s, int joint, int lanes)
{
    memset(s, 0, sizeof *s);
    s->depth = kit_depth(LANES, 0, joint, 1 + 20 * kit_some(), (kit_below(2) ? 1 : 8) * kit_some());
    make_prices(&s->depth->cost);
    s->round = (pl_depth_round){.lane = s->lane, .lanes = lanes, .passed = true};
    s->round.rows = lanes + kit_below(kit_below(2) ? 6 : 40);
    for (int i = 0; i < lanes; i++) {
        s->lane[i].slot = LANES - 1 - i;
        make_past(s, s->lane[i].slot);
        s->offer[i].drafts = kit_below(6) ? kit_below(lanes == 3 ? 7 : PL_DEPTH_MOST + 1) : 0;
        s->offer[i].copy = kit_below(2);
        for (int k = 0; k < s->offer[i].drafts; k++)
            s->offer[i].chance[k] = kit_below(12) ? 0.995 * kit_some() : 0;
    }
}

/* What joint mode 2 weighs with, from its definition. */
static void weigh(scene *s)
{
    double each[LANES], mean = 0, sum = 0;
    for (int i = 0; i < s->round.lanes; i++) {
        const pl__recent *r = &s->depth->slot[s->lane[i].slot].recent;
        each[i] = 0;
        for (int j = 0; j < r->count; j++)
            each[i] += r->tokens[j] / r->count;
        each[i] = r->count ? each[i] : 1;
        mean += each[i] / s->round.lanes;
    }
    for (int i = 0; i < s->round.lanes; i++)
        sum += sqrt(mean / each[i]) / s->round.lanes;
    for (int i = 0; i < s->round.lanes; i++)
        s->weight[i] = sqrt(mean / each[i]) / sum;
}

static void set_up_joint(scene *s, int mode)
{
    s->rate = 0;
    s->must = mode == 1;
    s->extra = mode == 2 ? 3 : 0;
    for (int i = 0; i < s->round.lanes; i++) {
        s->rate += pl__slot_rate(s->depth, s->lane[i].slot);
        s->weight[i] = 1;
    }
    if (mode == 2)
        weigh(s);
}

static double gain_of(const scene *s, const int *taken)
{
    int rows = s->round.lanes;
    double sum = 0;
    for (int i = 0; i < s->round.lanes; i++) {
        double chain = s->weight[i];
        for (int k = 0; k < taken[i]; k++)
            sum += chain *= s->offer[i].chance[k];
        rows += taken[i];
    }
    return sum - s->rate * (pl_cost_verify(&s->depth->cost, rows) + s->extra);
}

static bool allowed(const scene *s, const int *taken)
{
    int rows = s->round.lanes, spare = s->round.rows - s->round.lanes;
    for (int i = 0; i < s->round.lanes; i++) {
        rows += taken[i];
        bool one = s->must && s->offer[i].drafts && spare > 0; /* the first in order, when rows are few */
        spare -= one;
        if (one && !taken[i])
            return false;
    }
    return rows <= s->round.rows;
}

/* Every vector of depths. */
static best brute_force(const scene *s)
{
    best b = {.gain = -INFINITY, .rows = 0};
    int most[LANES] = {0}, t[LANES];
    for (int i = 0; i < s->round.lanes; i++)
        most[i] = s->offer[i].drafts;
    for (t[0] = 0; t[0] <= most[0]; t[0]++)
        for (t[1] = 0; t[1] <= most[1]; t[1]++)
            for (t[2] = 0; t[2] <= most[2]; t[2]++) {
                int rows = s->round.lanes + t[0] + t[1] + t[2];
                if (!allowed(s, t))
                    continue;
                double gain = gain_of(s, t);
                if (gain > b.gain + SLACK || (gain > b.gain - SLACK && rows < b.rows))
                    b = (best){.taken = {t[0], t[1], t[2]}, .rows = rows, .gain = gain};
            }
    return b;
}

static void hold_joint_against_all(int mode)
{
    int drafting = 0, whole = 0, capped = 0;
    kit_seed();
    for (int c = 0; c < CASES; c++) {
        scene s;
        make(&s, mode, 1 + kit_below(LANES));
        set_up_joint(&s, mode);
        pl__choose_joint(s.depth, s.offer, &s.round);
        best b = brute_force(&s);
        int taken[LANES] = {0}, rows = s.round.lanes, offered = s.round.lanes;
        for (int i = 0; i < s.round.lanes; i++) {
            taken[i] = s.lane[i].depth;
            rows += taken[i];
            offered += s.offer[i].drafts;
            assert_true(taken[i] >= 0 && taken[i] <= s.offer[i].drafts);
            assert_int_equal(s.lane[i].copy, taken[i] > 0 && s.offer[i].copy);
        }
        if (!allowed(&s, taken) || fabs(gain_of(&s, taken) - b.gain) > 2 * SLACK || rows != b.rows)
            fail_msg("case %d: depths %d %d %d are worth %.12f; %d %d %d are worth %.12f", c, taken[0], taken[1],
                     taken[2], gain_of(&s, taken), b.taken[0], b.taken[1], b.taken[2], b.gain);
        drafting += rows > s.round.lanes;
        whole += rows == offered;
        capped += rows == s.round.rows;
        pl_depth_close(s.depth);
    }
    print_message("%d of %d draft, %d verify all there is, %d all there is room for\n", drafting, CASES, whole, capped);
    assert_true(drafting > CASES / 4 && whole > 100 && whole < CASES - 100 && capped > 100);
}

static void together_equals_all_vectors(void **state)
{
    (void)state;
    hold_joint_against_all(1);
}

static void evened_out_equals_all_vectors(void **state)
{
    (void)state;
    hold_joint_against_all(2);
}

/* Each lane by itself at its own rate, the rows that are left handed on. */
static void alone_equals_all_depths(void **state)
{
    (void)state;
    int deep = 0, none = 0;
    kit_seed();
    for (int c = 0; c < CASES; c++) {
        scene s;
        make(&s, 0, 1 + kit_below(LANES));
        pl__choose_alone(s.depth, s.offer, &s.round);
        int spare = s.round.rows - s.round.lanes;
        for (int i = 0; i < s.round.lanes; i++) {
            double rate = pl__slot_rate(s.depth, s.lane[i].slot), most = -INFINITY, chain = 1, sum = 0;
            int depth = 0;
            for (int k = 0; k <= s.offer[i].drafts && k <= spare; k++) {
                sum += k ? chain *= s.offer[i].chance[k - 1] : 0;
                double gain = sum - rate * pl_cost_verify(&s.depth->cost, k + 1);
                if (gain > most + SLACK) {
                    most = gain;
                    depth = k;
                }
            }
            assert_int_equal(s.lane[i].depth, depth);
            assert_int_equal(s.lane[i].copy, depth && s.offer[i].copy);
            spare -= depth;
            deep += depth > 2;
            none += depth == 0;
        }
        pl_depth_close(s.depth);
    }
    assert_true(deep > 100 && none > 100);
}

/* A stream that made a token in ten ms; a row takes five: a draft is worth its row from a half on. */
static void make_even(scene *s, int mode, int lanes, double chance)
{
    memset(s, 0, sizeof *s);
    s->depth = kit_depth(LANES, 0, mode, 10, 5);
    s->round = (pl_depth_round){.lane = s->lane, .lanes = lanes, .rows = 64, .passed = true};
    for (int i = 0; i < lanes; i++) {
        pl__recent *r = &s->depth->slot[i].recent;
        r->count = i == 0;
        r->tokens[0] = i == 0;
        r->ms[0] = 8;
        s->lane[i].slot = i;
        s->offer[i] = (pl__offer){.drafts = 4, .chance = {chance, 1, 1, 1}};
        if (i > 0) { /* adds nothing to the rate */
            r->count = 1;
            r->ms[0] = 1;
        }
    }
}

static void ties_go_to_the_smaller(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++)
        for (int less = 0; less < 2; less++) {
            scene s;
            /* Rate 1/8, a row 5 ms: 0.625 tokens. The first draft gives just that, the others nothing. */
            make_even(&s, mode, 1, less ? 0.625 : 0.6251);
            s.offer[0].chance[1] = 0;
            if (mode)
                pl__choose_joint(s.depth, s.offer, &s.round);
            else
                pl__choose_alone(s.depth, s.offer, &s.round);
            assert_int_equal(s.lane[0].depth, mode == 1 || !less); /* mode 1 verifies one in any case */
            pl_depth_close(s.depth);
        }
}

/* Mode 1: no gain, and yet each ask verifies one draft, as far as rows go. */
static void every_ask_keeps_one(void **state)
{
    (void)state;
    for (int rows = LANES; rows <= LANES + 5; rows++) {
        scene s;
        make_even(&s, 1, LANES, 0.001);
        s.round.rows = rows;
        pl__choose_joint(s.depth, s.offer, &s.round);
        for (int i = 0; i < LANES; i++)
            assert_int_equal(s.lane[i].depth, i < rows - LANES);
        s.offer[1].drafts = 0; /* who did not ask takes no row */
        pl__choose_joint(s.depth, s.offer, &s.round);
        assert_int_equal(s.lane[1].depth, 0);
        assert_int_equal(s.lane[0].depth, rows > LANES);
        assert_int_equal(s.lane[2].depth, rows > LANES + 1);
        pl_depth_close(s.depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_equals_all_depths),       cmocka_unit_test(together_equals_all_vectors),
        cmocka_unit_test(evened_out_equals_all_vectors), cmocka_unit_test(ties_go_to_the_smaller),
        cmocka_unit_test(every_ask_keeps_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
