/* Random schedules: any number of slots and streams, any arrivals, cancels, retreats, depths, samplings and ends. Every
 * reply must be the plain engine's. */
#ifndef TESTS_LANES_SCHEDULE_H
#define TESTS_LANES_SCHEDULE_H

#include "depth/depth_int.h"
#include "lanes/core_kit.h"

#include <inttypes.h>

enum { STREAMS = 40 };

static uint64_t state;

static uint64_t number(void)
{
    state += 0x9e3779b97f4a7c15u;
    return pair_mix(state);
}

static int below(int n)
{
    return (int)(number() % (uint64_t)n);
}

static float some(void)
{
    return (float)(number() >> 40) * 0x1p-24f;
}

static bool stops(void *arg, int32_t token)
{
    int *sum = arg;
    *sum = (*sum * 31 + token) % 97;
    return *sum == 5;
}

typedef struct one {
    int32_t prompt[160];
    pl_bias bias[3];
    pl_request request;
    int sum, arrives, cancelled_at;
    bool admitted;
} one;

static void make_sampling(one *o)
{
    pl_sampling *s = &o->request.sampling;
    *s = (pl_sampling){.top_p = 1, .repetition_penalty = 1, .seed = number()};
    s->temperature = below(3) ? 0.2f + some() : 0;
    s->top_k = below(2) ? 1 + below(30) : 0;
    s->top_p = below(2) ? 0.3f + 0.7f * some() : 1;
    s->min_p = below(3) ? 0 : 0.2f * some();
    if (below(3) == 0) {
        s->repetition_penalty = 0.8f + some();
        s->presence_penalty = some();
        s->frequency_penalty = some();
    }
    if (below(4) == 0) {
        s->bias = o->bias;
        s->biases = 3;
        for (int i = 0; i < 3; i++)
            o->bias[i] = (pl_bias){.token = i * 20 + below(20), .add = below(4) ? 4 * some() - 2 : -INFINITY};
    }
}

static void make(one *o, int vocab, int steps)
{
    size_t len = 1 + (size_t)below(below(4) ? 30 : 160);
    for (size_t i = 0; i < len; i++) /* pieces of it come back, so that there is something to copy */
        o->prompt[i] = i > 12 && below(4) ? o->prompt[i - 12] : below(vocab);
    o->request = kit_request(o->prompt, len, 1 + below(below(3) ? 40 : 120));
    make_sampling(o);
    o->request.draft = below(6) != 0;
    o->request.background = below(5) == 0;
    o->request.eos = below(2) ? below(vocab) : -1;
    o->request.top_logprobs = below(3) ? -1 : below(PL_TOP_LOGPROBS_MAX + 1);
    o->request.think_budget = below(5) ? 0 : 1 + below(20);
    o->request.think_end = 7;
    o->request.stop = below(3) ? NULL : stops;
    o->sum = 0;
    o->request.stop_arg = &o->sum;
    o->arrives = below(steps);
    o->cancelled_at = below(5) ? -1 : below(steps);
    o->admitted = false;
}

static void arrive(kit *k, one *all, int n, int step)
{
    while (k->backs && pl__core_has_room(&k->core))
        kit_admit(k, k->back[--k->backs]);
    for (int i = 0; i < n; i++) {
        one *o = &all[i];
        if (!o->admitted && o->arrives <= step && pl__core_has_room(&k->core)) {
            kit_admit(k, k->ending[i].stream);
            o->admitted = true;
        }
        if (o->cancelled_at == step && !k->ending[i].over)
            atomic_store(&k->ending[i].stream->cancel, true);
    }
}

static bool all_over(const kit *k)
{
    for (int i = 0; i < k->endings; i++)
        if (!k->ending[i].over)
            return false;
    return true;
}

static pl_core_settings any_settings(void)
{
    return (pl_core_settings){.drafts = below(8) != 0,
                              .plain_streams = below(2) ? 0 : 1 + below(5),
                              .joint = below(3),
                              .decode_share = 0.9f * some(),
                              .order = below(2) ? PL_PROMPTS_SHORTEST : PL_PROMPTS_ARRIVAL};
}

/* Make n streams of the opened kit, run them all, hold each against the plain reply. */
static void run_streams(kit *k, plain_model *m, int n, int steps, uint64_t seed)
{
    static one all[STREAMS];
    for (int i = 0; i < n; i++) {
        make(&all[i], m->vocab, steps);
        kit_stream(k, &all[i].request);
    }
    for (int step = 0; !all_over(k); step++) {
        assert_true(step < 100000);
        arrive(k, all, n, step);
        if (below(25) == 0)
            (void)pl__core_give_way(&k->core);
        if (below(3) == 0) /* any depth at any time */
            k->core.depth->settings.fixed = below(PL_DEPTH_MOST + 2) - 1;
        kit_step(k);
    }
    for (int i = 0; i < n; i++) {
        int sum = 0;
        static plain expected;
        plain_reply_of(m, &all[i].request, &sum, &expected);
        if (!kit_equal(&k->ending[i], &expected))
            fail_msg("seed %" PRIu64 ": stream %d of %d differs", seed, i, n);
    }
}

/* run(seed) for as many seeds as asked for: PACELINE_TEST_SEED is the first, PACELINE_TEST_SCHEDULES how many. */
static void run_schedules(void (*run)(uint64_t seed), long standard)
{
    const char *first = getenv("PACELINE_TEST_SEED"), *count = getenv("PACELINE_TEST_SCHEDULES");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 20261201;
    long schedules = count ? strtol(count, NULL, 10) : standard;
    print_message("seed %" PRIu64 ", %ld schedules\n", seed, schedules);
    for (long i = 0; i < schedules; i++) {
        run(seed + (uint64_t)i);
        if (count && (i + 1) % 100 == 0) { /* who asks for many wants to know how far it is */
            print_message("%ld/%ld schedules\n", i + 1, schedules);
            fflush(stdout);
        }
    }
}

#endif
