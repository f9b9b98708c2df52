/* Draws against the straightforward way: filters, ties, penalties, extreme rows, every instruction set. */
#include "base/rowmath.h"
#include "model/sampler_kit.h"

#include <float.h>

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

static void random_row(float *x, int n)
{
    int kind = (int)kit_random(5);
    for (int i = 0; i < n; i++) {
        double g = kit_uniform() + kit_uniform() + kit_uniform() - 1.5;
        x[i] = (float)(kind == 0 ? 12 * g : kind == 1 ? 2 * g : kind == 2 ? floor(4 * g) : kind == 3 ? 200 * g : 0);
    }
    if (kind != 4)
        for (int i = 0; i < 5; i++)
            x[kit_random((uint32_t)n)] += 6;
    if (kit_random(4) == 0)
        for (int i = 0; i < n / 3; i++)
            x[kit_random((uint32_t)n)] = -INFINITY;
}

static pl_sampling random_settings(int n)
{
    static const float temperatures[] = {1, 0.6f, 0.05f, 2, 5, 1e-6f, 80};
    static const float shares[] = {1, 0.95f, 0.5f, 0.999f, 0.01f, 1e-8f};
    static const float nears[] = {0, 0.05f, 0.5f, 1, 1e-7f};
    pl_sampling s = kit_plain();
    s.temperature = temperatures[kit_random(7)];
    s.top_p = shares[kit_random(6)];
    s.min_p = nears[kit_random(5)];
    s.top_k = kit_random(2) ? (int)kit_random((uint32_t)n + 3) : 0;
    s.seed = ((uint64_t)kit_random(1u << 31) << 33) + kit_random(1u << 31);
    return s;
}

static void draws_equal_the_straightforward_way(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static float x[MOST];
    static kit_item item[MOST];
    int compared = 0;
    for (int round = 0; round < 400; round++) {
        int n = 1 + (int)kit_random(round % 4 ? 300 : MOST);
        pl_sampler *s[4] = {NULL};
        for (int k = 0; k < 4; k++)
            s[k] = pl_rowmath_for(isas[k]) ? kit_sampler(n, isas[k]) : NULL;
        for (int again = 0; again < 4; again++) {
            random_row(x, n);
            pl_sampling set = random_settings(n);
            int64_t position = kit_random(1 << 20);
            bool close;
            int kept = kit_filter(item, x, n, &set, &close);
            int want = kept > 0 ? kit_draw(item, kept, &set, position) : -1;
            int first = -2;
            for (int k = 0; k < 4; k++) {
                if (!s[k])
                    continue;
                pl_draw d = {.logits = x, .position = position, .sampling = &set};
                int got = pl_draw_token(s[k], &d);
                if (first != -2)
                    assert_int_equal(got, first);
                first = got;
                if (!close && got != want)
                    fail_msg("%s: n %d t %g k %d p %g min %g: drew %d, expected %d of %d kept", isas[k], n,
                             (double)set.temperature, set.top_k, (double)set.top_p, (double)set.min_p, got, want, kept);
            }
            compared += !close;
        }
        for (int k = 0; k < 4; k++)
            pl_sampler_close(s[k]);
    }
    print_message("%d draws compared\n", compared);
    assert_true(compared > 1000);
}

/* Which tokens can come out at all: draws over many positions. */
static int reachable(pl_sampler *s, const float *x, const pl_sampling *set, bool *seen, int n)
{
    int count = 0;
    memset(seen, 0, (size_t)n * sizeof *seen);
    for (int64_t position = 0; position < 4000; position++) {
        pl_draw d = {.logits = x, .position = position, .sampling = set};
        int id = pl_draw_token(s, &d);
        assert_in_range(id, 0, n - 1);
        count += !seen[id];
        seen[id] = true;
    }
    return count;
}

static void ties_at_a_cut_keep_the_lower_ids(void **state)
{
    (void)state;
    float x[40];
    bool seen[40];
    for (int i = 0; i < 40; i++)
        x[i] = i % 2 ? 3.0f : 1.0f; /* twenty equal best, twenty equal others */
    pl_sampler *s = kit_sampler(40, "auto");
    pl_sampling set = kit_plain();
    set.top_k = 5;
    assert_int_equal(reachable(s, x, &set, seen, 40), 5);
    assert_true(seen[1] && seen[3] && seen[5] && seen[7] && seen[9]);
    set.top_k = 0;
    set.top_p = 0.35f; /* each best holds 4.4 %: eight reach 35.2 % */
    assert_int_equal(reachable(s, x, &set, seen, 40), 8);
    assert_true(seen[1] && seen[15] && !seen[17] && !seen[0]);
    set.top_p = 1;
    set.min_p = 0.2f; /* e^-2 is 0.135 */
    assert_int_equal(reachable(s, x, &set, seen, 40), 20);
    set.temperature = 0;
    pl_draw d = {.logits = x, .sampling = &set};
    assert_int_equal(pl_draw_token(s, &d), 1);
    x[7] = -0.0f; /* both zeros are one value */
    x[3] = 0.0f;
    for (int i = 0; i < 40; i++)
        if (i != 3 && i != 7)
            x[i] = -1;
    assert_int_equal(pl_draw_token(s, &d), 3);
    set.temperature = 1;
    set.min_p = 0;
    set.top_k = 1;
    assert_int_equal(pl_draw_token(s, &d), 3);
    x[3] = -0.0f;
    x[7] = 0.0f;
    assert_int_equal(pl_draw_token(s, &d), 3);
    pl_sampler_close(s);
}

static void extreme_rows(void **state)
{
    (void)state;
    float x[100];
    bool seen[100];
    pl_sampler *s = kit_sampler(100, "auto");
    pl_sampling set = kit_plain();
    pl_draw d = {.logits = x, .position = 5, .sampling = &set};
    for (int t = 0; t < 2; t++) { /* nothing can be drawn */
        set.temperature = (float)t;
        for (int i = 0; i < 100; i++)
            x[i] = i % 2 ? -INFINITY : NAN;
        assert_int_equal(pl_draw_token(s, &d), -1);
        x[42] = -1000;
        assert_int_equal(pl_draw_token(s, &d), 42);
    }
    set.temperature = 1;
    x[17] = -1000; /* NaN and -inf never win, whatever the filters */
    set.top_p = 0.9f;
    set.min_p = 0.1f;
    set.top_k = 50;
    assert_int_equal(reachable(s, x, &set, seen, 100), 2);
    assert_true(seen[17] && seen[42]);
    x[60] = INFINITY; /* infinities tie among themselves, above all else */
    x[61] = INFINITY;
    assert_int_equal(reachable(s, x, &set, seen, 100), 2);
    assert_true(seen[60] && seen[61]);
    set.temperature = 0;
    assert_int_equal(pl_draw_token(s, &d), 60);
    set = kit_plain();
    for (int i = 0; i < 100; i++)
        x[i] = FLT_MAX - (float)i * 1e32f;
    set.temperature = 1e-40f; /* a denormal temperature is still one */
    set.top_p = 0.999f;
    assert_int_equal(pl_draw_token(s, &d), 0);
    for (int i = 0; i < 100; i++) /* all equal: everything can come */
        x[i] = -7;
    set.temperature = 1;
    set.top_p = 1;
    assert_int_equal(reachable(s, x, &set, seen, 100), 100);
    pl_sampler_close(s);
}

/* Penalties and bias the slow way: counts from the whole list of tokens. */
static void penalise_plainly(float *y, const float *x, int n, const pl_sampling *s, const int32_t *prompt, int prompts,
                             const int32_t *reply, int replies)
{
    for (int id = 0; id < n; id++) {
        int in_prompt = 0, times = 0;
        for (int i = 0; i < prompts; i++)
            in_prompt += prompt[i] == id;
        for (int i = 0; i < replies; i++)
            times += reply[i] == id;
        y[id] = x[id];
        if (in_prompt + times > 0)
            y[id] = y[id] > 0 ? y[id] / s->repetition_penalty : y[id] * s->repetition_penalty;
        if (times > 0) {
            y[id] -= (float)times * s->frequency_penalty;
            y[id] -= s->presence_penalty;
        }
        for (int i = 0; i < s->biases; i++)
            if (s->bias[i].token == id)
                y[id] += s->bias[i].add;
    }
}

static void penalties_see_committed_and_pending_tokens(void **state)
{
    (void)state;
    enum { N = 60 };
    pl_error err;
    pl_sampler *s = kit_sampler(N, "auto");
    for (int round = 0; round < 500; round++) {
        float x[N], y[N];
        int32_t prompt[30], reply[40];
        kit_item item[N];
        for (int i = 0; i < N; i++)
            x[i] = (float)(6 * kit_uniform() - 3);
        for (int i = 0; i < 30; i++)
            prompt[i] = (int32_t)kit_random(N / 2);
        for (int i = 0; i < 40; i++)
            reply[i] = (int32_t)kit_random(N / 3);
        pl_sampling set = kit_plain();
        set.repetition_penalty = round % 3 ? (float)(0.7 + kit_uniform()) : 1;
        set.frequency_penalty = round % 2 ? (float)(2 * kit_uniform() - 0.5) : 0;
        set.presence_penalty = round % 5 ? (float)(2 * kit_uniform() - 0.5) : 0;
        set.seed = kit_random(1u << 31);
        pl_bias bias[2] = {{(int32_t)kit_random(30), (float)(4 * kit_uniform())},
                           {30 + (int32_t)kit_random(30), -INFINITY}};
        set.bias = bias;
        set.biases = round % 4 ? 2 : 0;
        int pendings = (int)kit_random(17), committed = (int)kit_random((uint32_t)(40 - pendings));
        pl_history h;
        assert_int_equal(pl_history_open(&h, N, &err), PL_OK);
        pl_history_prompt(&h, prompt, 30);
        for (int i = 0; i < committed; i++)
            pl_history_commit(&h, reply[i]);
        penalise_plainly(y, x, N, &set, prompt, 30, reply, committed + pendings);
        pl_draw d = {x, 9 + round, &set, &h, reply + committed, pendings};
        bool close;
        int kept = kit_filter(item, y, N, &set, &close);
        assert_int_equal(pl_draw_token(s, &d), kit_draw(item, kept, &set, d.position));
        /* committing what was pending changes nothing */
        for (int i = 0; i < pendings; i++)
            pl_history_commit(&h, reply[committed + i]);
        pl_draw later = {x, 9 + round, &set, &h, NULL, 0};
        assert_int_equal(pl_draw_token(s, &later), kit_draw(item, kept, &set, d.position));
        set.temperature = 0;
        assert_int_equal(pl_draw_token(s, &later), item[0].id);
        pl_history_reset(&h);
        for (int i = 0; i < N; i++)
            assert_int_equal(h.note[i], 0);
        pl_history_close(&h);
    }
    pl_sampler_close(s);
}

static void bias_comes_after_penalties(void **state)
{
    (void)state;
    pl_error err;
    float x[3] = {4, 3, 0};
    pl_sampler *s = kit_sampler(3, "auto");
    pl_sampling set = kit_plain();
    pl_bias bias = {0, 1.5f};
    pl_history h;
    pl_draw d = {.logits = x, .sampling = &set, .history = &h};
    assert_int_equal(pl_history_open(&h, 3, &err), PL_OK);
    pl_history_commit(&h, 0);
    pl_history_commit(&h, -1); /* ids that no vocabulary has are left out */
    pl_history_commit(&h, 3);
    set.temperature = 0;
    set.repetition_penalty = 2;
    assert_int_equal(pl_draw_token(s, &d), 1); /* 4 / 2 < 3 */
    set.bias = &bias;
    set.biases = 1;
    assert_int_equal(pl_draw_token(s, &d), 0); /* 4 / 2 + 1.5 > 3, while (4 + 1.5) / 2 < 3 */
    pl_history_close(&h);
    pl_sampler_close(s);
}

static void logprobs_of_the_raw_distribution(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N];
    static kit_item item[N];
    for (int round = 0; round < 20; round++) {
        random_row(x, N);
        double top = -HUGE_VAL, sum = 0;
        for (int i = 0; i < N; i++)
            top = (double)x[i] > top ? (double)x[i] : top;
        for (int i = 0; i < N; i++)
            sum += exp((double)x[i] - top);
        bool close;
        pl_sampling set = kit_plain();
        int kept = kit_filter(item, x, N, &set, &close);
        int32_t id = (int32_t)kit_random(N), top_id[20];
        float logprob, top_logprob[20], first = 0;
        for (int k = 0; k < 4; k++) {
            if (!pl_rowmath_for(isas[k]))
                continue;
            pl_sampler *s = kit_sampler(N, isas[k]);
            assert_int_equal(pl_logprobs(s, x, id, 20, &logprob, top_id, top_logprob), 20);
            double want = (double)x[id] - top - log(sum);
            assert_true((double)logprob == want || fabs((double)logprob - want) < 1e-6 * fabs(want) + 1e-7);
            for (int i = 0; i < 20 && i < kept; i++) {
                assert_int_equal(top_id[i], item[i].id);
                assert_true(fabs((double)top_logprob[i] - (item[i].x - top - log(sum))) < 1e-5);
            }
            if (k > 0)
                assert_memory_equal(&first, &logprob, sizeof first);
            first = logprob;
            assert_int_equal(pl_logprobs(s, x, id, 0, &logprob, NULL, NULL), 0);
            pl_sampler_close(s);
        }
    }
    float bad[4] = {NAN, 2, -INFINITY, 2}, logprob, tops[9];
    int32_t ids[9];
    pl_sampler *s = kit_sampler(4, "auto");
    assert_int_equal(pl_logprobs(s, bad, 0, 9, &logprob, ids, tops), 4);
    assert_true(logprob == -INFINITY && ids[0] == 1 && ids[1] == 3 && ids[2] == 0 && tops[0] == tops[1]);
    bad[1] = bad[3] = -INFINITY;
    assert_int_equal(pl_logprobs(s, bad, 1, 1, &logprob, ids, tops), 1);
    assert_true(logprob == -INFINITY && tops[0] == -INFINITY);
    pl_sampler_close(s);
}

static void a_sampler_needs_a_vocabulary_and_its_instructions(void **state)
{
    (void)state;
    pl_sampler *s;
    pl_error err;
    assert_fails(PL_EINVAL, &err, pl_sampler_open(&s, 0, "auto", &err));
    assert_fails(PL_EINVAL, &err, pl_sampler_open(&s, PL_MAX_VOCAB + 1, "auto", &err));
    assert_fails(PL_EINVAL, &err, pl_sampler_open(&s, 10, "mmx", &err));
    pl_sampler_close(NULL);
    assert_true(pl_sampler_bytes(129280) > 7 * 4 * 129280u && pl_sampler_bytes(129280) < 5000000);
}

int main(void)
{
    kit_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_equal_the_straightforward_way),
        cmocka_unit_test(ties_at_a_cut_keep_the_lower_ids),
        cmocka_unit_test(extreme_rows),
        cmocka_unit_test(penalties_see_committed_and_pending_tokens),
        cmocka_unit_test(bias_comes_after_penalties),
        cmocka_unit_test(logprobs_of_the_raw_distribution),
        cmocka_unit_test(a_sampler_needs_a_vocabulary_and_its_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
