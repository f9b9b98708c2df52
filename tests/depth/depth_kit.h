/* What the tests of the rule share: a seed that is printed, and numbers from it. */
#ifndef TESTS_DEPTH_KIT_H
#define TESTS_DEPTH_KIT_H

#include "base/check.h"
#include "depth/depth_int.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static uint64_t kit_state;

/* PACELINE_TEST_SEED begins elsewhere. */
static inline void kit_seed(void)
{
    const char *given = getenv("PACELINE_TEST_SEED");
    kit_state = given ? strtoull(given, NULL, 10) : 20261201;
    print_message("seed %" PRIu64 "\n", kit_state);
}

static inline int kit_below(int n)
{
    kit_state = kit_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((kit_state >> 33) % (uint64_t)n);
}

static inline double kit_some(void)
{
    return (kit_below(1 << 30) + 0.5) * 0x1p-30;
}

static inline pl_depth *kit_depth(int slots, int plain_streams, int joint, double first, double row)
{
    pl_depth *d;
    pl_error err;
    pl_depth_settings s = {.slots = slots, .plain_streams = plain_streams, .joint = joint, .fixed = -1};
    pl_cost_init(&s.cost, first, row, first, row);
    if (pl_depth_open(&d, &s, &err) != PL_OK)
        fail_msg("%s", err.message);
    return d;
}

/* The confidence that a proposal has whose chance is p. */
static inline float kit_logit(double p)
{
    return (float)log(p / (1 - p));
}

#endif
