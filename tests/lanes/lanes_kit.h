/* What the engine's tests share. */
#ifndef TESTS_LANES_KIT_H
#define TESTS_LANES_KIT_H

#include "base/clock.h"
#include "base/sha256.h"
#include "lanes/engine.h"
#include "lanes/fake_target.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct kit {
    fake target;
    pl_engine *engine;
} kit;

static inline void kit_open(kit *k, int queue)
{
    pl_error err;
    fake_init(&k->target);
    pl_engine_settings settings = {.queue = queue, .core = {.plain_streams = 3, .joint = 1, .decode_share = 0.25}};
    assert_int_equal(pl_engine_open(&k->engine, &k->target.table, NULL, &settings, &err), PL_OK);
}

static inline void kit_close(kit *k)
{
    fake_go(&k->target);
    pl_engine_close(k->engine);
    assert_int_equal(k->target.misuse, 0);
    assert_int_equal(k->target.admits, k->target.releases);
}

/* A greedy request: prompt is not copied here. */
static inline pl_request kit_request(const int32_t *prompt, size_t len, int64_t max_tokens)
{
    return (pl_request){.prompt = prompt,
                        .prompt_len = len,
                        .sampling = {.temperature = 0, .top_p = 1, .repetition_penalty = 1},
                        .max_tokens = max_tokens,
                        .eos = -1,
                        .top_logprobs = -1};
}

static inline pl_stream *kit_submit(kit *k, const pl_request *request)
{
    pl_error err;
    pl_stream *stream;
    if (pl_engine_submit(k->engine, request, 1, &stream, &err) != PL_OK)
        fail_msg("submit: %s", err.message);
    return stream;
}

/* Read to the end: at most cap tokens into token. Returns the outcome. */
static inline pl_outcome kit_read(pl_stream *stream, int32_t *token, size_t cap)
{
    size_t n = 0;
    for (;;) {
        pl_stream_event event;
        if (!pl_stream_next(stream, &event)) {
            assert_true(pl_stream_wait(stream, 20000));
            continue;
        }
        if (event.kind == PL_STREAM_TOKEN) {
            assert_true(n < cap);
            token[n++] = event.token;
        } else if (event.kind == PL_STREAM_FINISHED) {
            pl_outcome outcome = *event.outcome;
            assert_int_equal(outcome.tokens, n);
            assert_false(pl_stream_next(stream, &event)); /* nothing follows */
            return outcome;
        }
    }
}

/* What the fake target says after a prompt. */
static inline void kit_expect(const int32_t *prompt, size_t len, int32_t *token, size_t n)
{
    int32_t all[FAKE_CONTEXT];
    memcpy(all, prompt, len * sizeof *prompt);
    for (size_t i = 0; i < n; i++)
        token[i] = all[len + i] = fake_next(all, (int)(len + i));
}

static inline void kit_sha(const int32_t *token, size_t n, char hex[65])
{
    pl_sha256 sha;
    pl_sha256_init(&sha);
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)token[i];
        unsigned char le[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                               (unsigned char)(id >> 24)};
        pl_sha256_add(&sha, le, 4);
    }
    pl_sha256_hex(&sha, hex);
}

#endif
