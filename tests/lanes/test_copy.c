/* Copied drafts: the longest match among the last places, and what stood behind it. */
#include "base/check.h"
#include "lanes/copy.h"

#include <inttypes.h>

enum { PLACES = 8, LONGEST = 32, MOST = 15 }; /* as copy.c has them */

static uint64_t state_of_random;

static int below(int n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (int)((state_of_random >> 33) % (uint64_t)n);
}

static void open_index(pl__copy *c, int context)
{
    void *memory = malloc(pl__copy_bytes(context));
    assert_non_null(memory);
    pl__copy_init(c, context, memory);
}

static void close_index(pl__copy *c)
{
    free(c->newest);
}

/* Index the text and look: how many drafts there are. */
static int found(pl__copy *c, const int32_t *token, int n, int32_t *draft, int most, int *match)
{
    pl__copy_extend(c, token, n);
    return pl__copy_find(c, token, n, draft, most, match);
}

static int agree(const int32_t *token, int a, int b)
{
    int n = 0;
    while (n < LONGEST && a >= n && token[a - n] == token[b - n])
        n++;
    return n;
}

/* The same by looking at every place. */
static int brute_force(const int32_t *token, int n, int32_t *draft, int most, int *match)
{
    int best = -1;
    *match = 0;
    for (int at = n - 2, seen = 0; at >= 0 && seen < PLACES; at--) {
        int long_ = agree(token, at, n - 1);
        seen += long_ >= PL_COPY_MATCH;
        if (long_ >= PL_COPY_MATCH && long_ > *match) {
            *match = long_;
            best = at;
        }
    }
    if (best < 0)
        return 0;
    for (int k = 0, period = n - 1 - best; k < most; k++)
        draft[k] = token[best + 1 + k % period];
    return most;
}

static void the_longest_of_the_last_places(void **state)
{
    (void)state;
    pl__copy c;
    int32_t draft[MOST];
    int match;
    /* 1 2 3 4 twice: behind 9 9 came 50, behind 8 came 60. The newer place has the shorter match. */
    const int32_t text[] = {9, 9, 1, 2, 3, 4, 50, 51, 8, 1, 2, 3, 4, 60, 61, 9, 9, 1, 2, 3, 4};
    const int n = sizeof text / sizeof *text;
    open_index(&c, 64);
    assert_int_equal(found(&c, text, n, draft, 3, &match), 3);
    assert_int_equal(match, 6);
    assert_int_equal(draft[0], 50);
    assert_int_equal(draft[1], 51);
    assert_int_equal(draft[2], 8);
    /* As long a match in both: the newer one. */
    const int32_t even[] = {1, 2, 3, 4, 50, 1, 2, 3, 4, 60, 1, 2, 3, 4};
    pl__copy_reset(&c);
    assert_int_equal(found(&c, even, 14, draft, 1, &match), 1);
    assert_int_equal(match, 4);
    assert_int_equal(draft[0], 60);
    close_index(&c);
    /* The ninth last place is not looked at. */
    int32_t many[160];
    int at = 0;
    for (int i = 0; i <= PLACES; i++) {
        const int32_t piece[] = {i < 1 ? 77 : 100 + i, 1, 2, 3, 4, 200 + i};
        memcpy(many + at, piece, sizeof piece);
        at += 6;
    }
    const int32_t tail[] = {77, 1, 2, 3, 4};
    memcpy(many + at, tail, sizeof tail);
    open_index(&c, 160);
    assert_int_equal(found(&c, many, at + 5, draft, 1, &match), 1);
    assert_int_equal(match, 4);
    assert_int_equal(draft[0], 200 + PLACES);
    pl__copy_reset(&c);
    assert_int_equal(found(&c, many + 6, 5, draft, 1, &match), 0);
    close_index(&c);
}

static void nothing_below_four_tokens(void **state)
{
    (void)state;
    pl__copy c;
    int32_t draft[MOST] = {-5};
    int match = 9;
    const int32_t three[] = {7, 1, 2, 3, 50, 8, 1, 2, 3}, four[] = {1, 2, 3, 4, 1, 2, 3, 4};
    open_index(&c, 16);
    for (int n = 0; n <= 9; n++) {
        assert_int_equal(found(&c, three, n, draft, MOST, &match), 0);
        assert_int_equal(match, 0);
        assert_int_equal(draft[0], -5);
    }
    pl__copy_reset(&c);
    assert_int_equal(found(&c, four, 7, draft, MOST, &match), 0);
    assert_int_equal(found(&c, four, 8, draft, 0, &match), 0); /* no room */
    assert_int_equal(found(&c, four, 8, draft, MOST, &match), MOST);
    assert_int_equal(match, 4);
    close_index(&c);
}

static void a_loop_goes_on_past_the_end(void **state)
{
    (void)state;
    for (int period = 1; period <= 7; period++) {
        pl__copy c;
        int32_t text[40], draft[MOST];
        int match, n = 5 + 2 * period;
        for (int i = 0; i < n; i++)
            text[i] = i % period;
        open_index(&c, 40);
        assert_int_equal(found(&c, text, n, draft, MOST, &match), MOST);
        for (int k = 0; k < MOST; k++)
            assert_int_equal(draft[k], (n + k) % period);
        close_index(&c);
    }
}

/* Texts over small alphabets, grown by bits as a reply grows. A small index makes many runs share a hash. */
static void it_equals_looking_everywhere(void **state)
{
    (void)state;
    enum { TEXTS = 400, LONG = 400 };
    const char *given = getenv("PACELINE_TEST_SEED");
    state_of_random = given ? strtoull(given, NULL, 10) : 20261201;
    print_message("seed %" PRIu64 "\n", state_of_random);
    int hits = 0, looks = 0, longest = 0;
    for (int t = 0; t < TEXTS; t++) {
        pl__copy c;
        int32_t text[LONG], draft[MOST], expected[MOST];
        int letters = 2 + below(5), match, wanted;
        for (int i = 0; i < LONG; i++) /* now and then a stretch of what was there */
            text[i] = i > 110 && i % 100 < 45 ? text[i - 100 - t % 10] : below(letters) * 1000003;
        open_index(&c, LONG);
        for (int n = 0; n <= LONG; n += 1 + below(9)) {
            int most = below(MOST + 1), count = found(&c, text, n, draft, most, &match);
            assert_int_equal(count, most ? brute_force(text, n, expected, most, &wanted) : 0);
            assert_int_equal(match, most ? wanted : 0);
            assert_memory_equal(draft, expected, (size_t)count * sizeof *draft);
            hits += count > 0;
            looks++;
            longest += match == LONGEST;
        }
        close_index(&c);
    }
    print_message("%d of %d looks found something, %d of them %d tokens or more\n", hits, looks, longest, LONGEST);
    assert_true(hits > looks / 4 && hits < looks && longest > 0);
}

/* A rare run is found though another one of the same place in the index was there many times since. */
static void a_shared_hash_hides_nothing(void **state)
{
    (void)state;
    pl__copy c;
    int32_t text[128], draft[1];
    open_index(&c, 128);
    /* Two runs of the same hash, by looking at the index. */
    int32_t first_of[1 << 10] = {0};
    int32_t rare[4] = {0}, often[4] = {0};
    for (int32_t i = 1; i < 100000 && !often[0]; i++) {
        int32_t run[4] = {i, i + 1, i + 2, i + 3};
        pl__copy_reset(&c);
        pl__copy_extend(&c, run, 4);
        uint32_t place = 0;
        while (c.newest[place] < 0)
            place++;
        if (first_of[place])
            for (int k = 0; k < 4; k++) {
                rare[k] = first_of[place] + k;
                often[k] = run[k];
            }
        first_of[place] = i;
    }
    assert_true(often[0] > 0);
    int n = 0, match;
    memcpy(text, rare, sizeof rare);
    text[4] = -50;
    for (n = 5; n < 5 + 5 * 2 * PLACES; n += 5) {
        memcpy(text + n, often, sizeof often);
        text[n + 4] = -60;
    }
    memcpy(text + n, rare, sizeof rare);
    pl__copy_reset(&c);
    assert_int_equal(found(&c, text, n + 4, draft, 1, &match), 1);
    assert_int_equal(match, 4);
    assert_int_equal(draft[0], -50);
    close_index(&c);
}

static void reset_forgets(void **state)
{
    (void)state;
    pl__copy c;
    int32_t draft[MOST];
    int match;
    const int32_t one[] = {1, 2, 3, 4, 50}, two[] = {60, 61, 1, 2, 3, 4}, again[] = {1, 2, 3, 4, 70, 1, 2, 3, 4};
    open_index(&c, 16);
    pl__copy_extend(&c, one, 5);
    pl__copy_reset(&c);
    assert_int_equal(found(&c, two, 6, draft, MOST, &match), 0);
    pl__copy_reset(&c);
    assert_int_equal(found(&c, again, 9, draft, 1, &match), 1);
    assert_int_equal(draft[0], 70);
    pl__copy_extend(&c, again, 4); /* shorter than what is indexed: nothing is to do */
    assert_int_equal(c.count, 9);
    close_index(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_of_the_last_places), cmocka_unit_test(nothing_below_four_tokens),
        cmocka_unit_test(a_loop_goes_on_past_the_end),    cmocka_unit_test(it_equals_looking_everywhere),
        cmocka_unit_test(a_shared_hash_hides_nothing),    cmocka_unit_test(reset_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
