#include "model/sampling.h"

#include "base/sha256.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

bool pl_sampling_resolve(pl_sampling *out, const pl_sampling_part *const *sources, int count)
{
    *out = (pl_sampling){.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    unsigned named = 0;
    for (int i = 0; i < count; i++) {
        const pl_sampling_part *s = sources[i];
        if (!s)
            continue;
        unsigned fresh = s->has & ~named;
        if (fresh & PL_HAS_TEMPERATURE)
            out->temperature = s->value.temperature;
        if (fresh & PL_HAS_TOP_K)
            out->top_k = s->value.top_k;
        if (fresh & PL_HAS_TOP_P)
            out->top_p = s->value.top_p;
        if (fresh & PL_HAS_MIN_P)
            out->min_p = s->value.min_p;
        if (fresh & PL_HAS_REPETITION)
            out->repetition_penalty = s->value.repetition_penalty;
        if (fresh & PL_HAS_FREQUENCY)
            out->frequency_penalty = s->value.frequency_penalty;
        if (fresh & PL_HAS_PRESENCE)
            out->presence_penalty = s->value.presence_penalty;
        if (fresh & PL_HAS_SEED)
            out->seed = s->value.seed;
        named |= s->has;
        if (!out->bias && s->value.biases > 0) {
            out->bias = s->value.bias;
            out->biases = s->value.biases;
        }
    }
    return (named & PL_HAS_SEED) != 0;
}

pl_sampling_part pl_sampling_of_generation(const pl_generation *g)
{
    static const struct {
        unsigned from, to;
    } names[] = {{PL_GEN_TEMPERATURE, PL_HAS_TEMPERATURE},
                 {PL_GEN_TOP_K, PL_HAS_TOP_K},
                 {PL_GEN_TOP_P, PL_HAS_TOP_P},
                 {PL_GEN_MIN_P, PL_HAS_MIN_P},
                 {PL_GEN_REPETITION, PL_HAS_REPETITION}};
    pl_sampling_part part = {.value = {.temperature = g->temperature,
                                       .top_k = g->top_k,
                                       .top_p = g->top_p,
                                       .min_p = g->min_p,
                                       .repetition_penalty = g->repetition_penalty}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (g->has & names[i].from)
            part.has |= names[i].to;
    return part;
}

/* Each id once: sorting would need memory and the list is short, so a bit table over a hash is not worth it either; the
 * square of PL_MAX_BIASES is under a millisecond, once a request. */
static pl_status check_biases(const pl_sampling *s, int vocab, pl_error *err)
{
    if (s->biases < 0 || s->biases > PL_MAX_BIASES || (s->biases > 0 && !s->bias))
        return pl_fail_param(err, PL_EINVAL, "logit_bias", "logit_bias may name at most %d tokens; found %d",
                             PL_MAX_BIASES, s->biases);
    for (int i = 0; i < s->biases; i++) {
        const pl_bias *b = &s->bias[i];
        if (b->token < 0 || b->token >= vocab)
            return pl_fail_param(err, PL_EINVAL, "logit_bias", "logit_bias names token %d; the vocabulary has 0 to %d",
                                 (int)b->token, vocab - 1);
        if (isnan(b->add) || b->add > 1e6f)
            return pl_fail_param(err, PL_EINVAL, "logit_bias",
                                 "the bias of token %d must be a number up to 1e6; found %g", (int)b->token,
                                 (double)b->add);
        for (int k = 0; k < i; k++)
            if (s->bias[k].token == b->token)
                return pl_fail_param(err, PL_EINVAL, "logit_bias", "logit_bias names token %d twice", (int)b->token);
    }
    return PL_OK;
}

pl_status pl_sampling_check(const pl_sampling *s, int vocab, pl_error *err)
{
    const struct {
        const char *name;
        float value, low, high;
        bool above; /* low itself is out of range */
    } ranges[] = {
        {"temperature", s->temperature, 0, 100, false},
        {"top_p", s->top_p, 0, 1, true},
        {"min_p", s->min_p, 0, 1, false},
        {"repetition_penalty", s->repetition_penalty, 0, 100, true},
        {"frequency_penalty", s->frequency_penalty, -100, 100, false},
        {"presence_penalty", s->presence_penalty, -100, 100, false},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high) ||
            (ranges[i].above && ranges[i].value == ranges[i].low))
            return pl_fail_param(err, PL_EINVAL, ranges[i].name, "%s must be a number %s %g and at most %g; found %g",
                                 ranges[i].name, ranges[i].above ? "above" : "of at least", (double)ranges[i].low,
                                 (double)ranges[i].high, (double)ranges[i].value);
    if (s->top_k < 0)
        return pl_fail_param(err, PL_EINVAL, "top_k", "top_k must be 0 (off) or more; found %d", s->top_k);
    return check_biases(s, vocab, err);
}

pl_status pl_sampling_copy(pl_sampling *to, const pl_sampling *from, pl_error *err)
{
    *to = *from;
    to->bias = NULL;
    to->biases = 0;
    if (from->biases <= 0)
        return PL_OK;
    size_t bytes = (size_t)from->biases * sizeof *from->bias;
    to->bias = malloc(bytes);
    if (!to->bias)
        return pl_fail(err, PL_ENOMEM, "no memory for %d logit biases", from->biases);
    memcpy(to->bias, from->bias, bytes);
    to->biases = from->biases;
    return PL_OK;
}

void pl_sampling_free(pl_sampling *sampling)
{
    free(sampling->bias);
    sampling->bias = NULL;
    sampling->biases = 0;
}

static uint64_t first_53_bits(const unsigned char *bytes)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | bytes[i];
    return v >> 11;
}

pl_status pl_seed_derive(uint64_t *seed, const int32_t *ids, size_t count, const char *salt, pl_error *err)
{
    if (salt && strcmp(salt, "random") == 0) {
        unsigned char bytes[8];
        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            return pl_fail(err, PL_EIO, "the system gave no random bytes for a seed: %s", strerror(errno));
        *seed = first_53_bits(bytes);
        return PL_OK;
    }
    /* the salt's NUL ends it, so that no salt runs into the ids */
    static const char domain[] = "paceline seed 1";
    pl_sha256 sha;
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, domain, sizeof domain);
    pl_sha256_add(&sha, salt ? salt : "", salt ? strlen(salt) + 1 : 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)ids[i];
        unsigned char le[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                               (unsigned char)(id >> 24)};
        pl_sha256_add(&sha, le, sizeof le);
    }
    unsigned char digest[32];
    pl_sha256_digest(&sha, digest);
    *seed = first_53_bits(digest);
    return PL_OK;
}
