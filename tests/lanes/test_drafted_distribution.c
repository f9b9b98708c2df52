/* The distribution of drafted replies: over 20,000 seeds, the tokens at a place where drafts are verified come as often
 * as the model's own probabilities say, and every single token is the plain engine's. Fixed seeds: nothing is left to
 * luck and a failure is a fault. */
#include "lanes/core_kit.h"

#include "base/check.h"

enum { SEEDS = 20000, AT_ONCE = 8, TOKENS = 6, PLACE = 2 /* the third token: the first draft's */ };

static int32_t prompt[] = {0, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7};
enum { PROMPT = sizeof prompt / sizeof *prompt };

/* A prompt whose first two tokens are nearly certain, and the third is wide: nearly all replies then draw it from one
 * distribution, and not from a mixture that evens out. */
static int find_prompt(void **state)
{
    (void)state;
    for (prompt[0] = 0; prompt[0] < PAIR_VOCAB; prompt[0]++) {
        int32_t token[PROMPT + 2];
        float x[PAIR_VOCAB];
        int sure = 0;
        memcpy(token, prompt, sizeof prompt);
        for (int n = PROMPT; n < PROMPT + 3; n++) {
            pair_logits(token, n, x);
            int32_t best = pair_best(x);
            sure += (x[best] > 5) == (n < PROMPT + 2); /* the fake's wide logits end at 2 */
            if (n < PROMPT + 2)
                token[n] = best;
        }
        if (sure == 3)
            return 0;
    }
    return -1;
}

static const pl_core_settings drafting = {.drafts = true, .plain_streams = 0, .joint = 1, .fixed_depth = 5};

/* Whether drafts are right is drawn apart from the replies' own noise. first[slot]: of a reply's first proposal. */
typedef struct luck {
    uint64_t random;
    int first[PAIR_SLOTS];
} luck;

static int any_right(void *arg, int slot)
{
    luck *l = arg;
    l->random += 0x9e3779b97f4a7c15u;
    int right = (int)(pair_mix(l->random) % (PAIR_BLOCK + 1));
    if (l->first[slot] < 0)
        l->first[slot] = right;
    return right;
}

/* The value that chi-square with df degrees of freedom passes with probability 1 - 1e-4 (Wilson and Hilferty). */
static double chi_square_limit(int df)
{
    double a = 2.0 / (9.0 * df), z = 3.719;
    double b = 1 - a + z * sqrt(a);
    return df * b * b * b;
}

static void check_counts(const char *what, const int *count, const double *p, int draws)
{
    double chi = 0, rest_p = 0;
    int cells = 0, rest = 0;
    for (int i = 0; i < PAIR_VOCAB; i++) {
        double expect = p[i] * draws;
        if (expect < 5) { /* share one cell */
            rest_p += expect;
            rest += count[i];
            continue;
        }
        chi += (count[i] - expect) * (count[i] - expect) / expect;
        cells++;
    }
    if (rest_p >= 5) {
        chi += (rest - rest_p) * (rest - rest_p) / rest_p;
        cells++;
    }
    print_message("%s: %d tokens, chi-square %.1f over %d cells, limit %.1f\n", what, draws, chi, cells,
                  chi_square_limit(cells - 1));
    assert_true(cells > 20);
    assert_true(chi < chi_square_limit(cells - 1));
}

/* The probabilities behind token[0..n): a softmax, cut to the fewest tokens that reach top_p. */
static void softmax(const int32_t *token, int n, const pl_sampling *s, double *p)
{
    float x[PAIR_VOCAB];
    double total = 0, sum = 0;
    bool in[PAIR_VOCAB] = {false};
    pair_logits(token, n, x);
    for (int i = 0; i < PAIR_VOCAB; i++)
        total += p[i] = exp((double)x[i] / (double)s->temperature);
    while (sum < (double)s->top_p * total) {
        int best = -1;
        for (int i = 0; i < PAIR_VOCAB; i++)
            if (!in[i] && (best < 0 || p[i] > p[best]))
                best = i;
        if (best < 0)
            break;
        in[best] = true;
        sum += p[best];
    }
    for (int i = 0; i < PAIR_VOCAB; i++)
        p[i] = in[i] ? p[i] / sum : 0;
}

/* Of the third token, whatever the first two are. */
static void third(const pl_sampling *s, double *out)
{
    int32_t token[PROMPT + 2];
    double one[PAIR_VOCAB], two[PAIR_VOCAB], three[PAIR_VOCAB];
    memcpy(token, prompt, sizeof prompt);
    memset(out, 0, PAIR_VOCAB * sizeof *out);
    softmax(token, PROMPT, s, one);
    for (int a = 0; a < PAIR_VOCAB; a++) {
        token[PROMPT] = a;
        if (one[a] == 0)
            continue;
        softmax(token, PROMPT + 1, s, two);
        for (int b = 0; b < PAIR_VOCAB; b++) {
            token[PROMPT + 1] = b;
            if (two[b] == 0)
                continue;
            softmax(token, PROMPT + 2, s, three);
            for (int c = 0; c < PAIR_VOCAB; c++)
                out[c] += one[a] * two[b] * three[c];
        }
    }
}

/* Replies with the seeds first.. in company; their third tokens into count[was its draft right]. */
static void replies(kit *k, luck *l, const pl_sampling *s, uint64_t first, int (*count)[PAIR_VOCAB])
{
    int slot_of[AT_ONCE];
    static plain expected;
    for (int i = 0; i < PAIR_SLOTS; i++)
        l->first[i] = -1;
    k->endings = 0;
    memset(k->ending, 0, sizeof k->ending);
    for (int i = 0; i < AT_ONCE; i++) {
        pl_request q = kit_request(prompt, PROMPT, TOKENS);
        q.sampling = *s;
        q.sampling.seed = first + (uint64_t)i;
        pl_stream *stream = kit_stream(k, &q);
        kit_admit(k, stream);
        for (int j = 0; j < AT_ONCE; j++)
            if (k->core.lane[j].stream == stream)
                slot_of[i] = j;
    }
    kit_run(k);
    for (int i = 0; i < AT_ONCE; i++) {
        pl_stream *stream = k->ending[i].stream;
        plain_reply(&stream->request, NULL, &expected);
        assert_true(kit_equal(&k->ending[i], &expected));
        assert_true(l->first[slot_of[i]] >= 0);
        count[l->first[slot_of[i]] > 0][stream->token[PLACE]]++;
        pl__stream_discard(stream);
    }
    k->endings = 0;
}

static void distribution_of(const char *what, const pl_sampling *s)
{
    kit k;
    luck l = {.random = 12345};
    double p[PAIR_VOCAB];
    int count[2][PAIR_VOCAB] = {{0}}, both[PAIR_VOCAB], draws[2] = {0};
    kit_open(&k, AT_ONCE, PAIR_ROWS, &drafting);
    k.pair.right = any_right;
    k.pair.arg = &l;
    for (uint64_t seed = 0; seed < SEEDS; seed += AT_ONCE)
        replies(&k, &l, s, seed, count);
    for (int i = 0; i < PAIR_VOCAB; i++) {
        both[i] = count[0][i] + count[1][i];
        draws[0] += count[0][i];
        draws[1] += count[1][i];
    }
    const pl_numbers *n = &k.core.totals.numbers;
    print_message("%s: %llu drafts verified, %llu kept\n", what, (unsigned long long)n->drafted,
                  (unsigned long long)n->accepted);
    assert_true(n->accepted > SEEDS && n->drafted - n->accepted > SEEDS);
    assert_int_equal(draws[0] + draws[1], SEEDS);
    third(s, p);
    check_counts("all", both, p, SEEDS);
    check_counts("draft kept", count[1], p, draws[1]);
    check_counts("draft wrong", count[0], p, draws[0]);
    kit_close(&k);
}

static void drafts_leave_the_distribution(void **state)
{
    (void)state;
    pl_sampling s = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    distribution_of("all tokens", &s);
    s.top_p = 0.95f;
    s.temperature = 1.2f;
    distribution_of("top-p 0.95, temperature 1.2", &s);
}

/* The check itself would see a drafter's own choice: tokens from another distribution fail it by far. */
static void another_distribution_is_seen(void **state)
{
    (void)state;
    pl_sampling s = {.temperature = 1, .top_p = 1, .repetition_penalty = 1}, warmer = s;
    warmer.temperature = 1.5f;
    double p[PAIR_VOCAB], q[PAIR_VOCAB], chi = 0;
    third(&s, p);
    third(&warmer, q);
    for (int i = 0; i < PAIR_VOCAB; i++)
        chi += (q[i] - p[i]) * (q[i] - p[i]) * SEEDS / p[i];
    print_message("another temperature: chi-square %.1f\n", chi);
    assert_true(chi > 3 * chi_square_limit(PAIR_VOCAB - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_leave_the_distribution),
        cmocka_unit_test(another_distribution_is_seen),
    };
    return cmocka_run_group_tests(tests, find_prompt, NULL);
}
