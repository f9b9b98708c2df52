/* Shared by the tests of the chat encoding and the splitter. */
#ifndef PL_TESTS_TEXT_SUPPORT_H
#define PL_TESTS_TEXT_SUPPORT_H

#include "base/check.h"

#include "base/clock.h"
#include "base/file.h"
#include "text/chat.h"
#include "text/splitter.h"
#include "text/tokenizer.h"

/* A failing status with its message. */
#define OK(expr)                                                                                                       \
    do {                                                                                                               \
        err.message[0] = '\0';                                                                                         \
        pl_status ok_ = (expr);                                                                                        \
        if (ok_ != PL_OK)                                                                                              \
            fail_msg("%s: %s", #expr, err.message);                                                                    \
    } while (0)

static inline pl_json_doc *parse(const char *text)
{
    pl_error err;
    pl_json_doc *doc = NULL;
    OK(pl_json_parse(text, strlen(text), NULL, &doc, &err));
    return doc;
}

static inline pl_json_doc *parse_file(const char *path)
{
    pl_error err;
    pl_buf buf;
    pl_json_doc *doc = NULL;
    pl_buf_init(&buf, (size_t)16 << 20, path);
    OK(pl_file_read(&buf, path, &err));
    OK(pl_json_parse(buf.data, buf.len, NULL, &doc, &err));
    pl_buf_free(&buf);
    return doc;
}

/* Random numbers that a seed repeats: PACELINE_TEST_SEED, or the clock; printed once. */
static inline uint64_t *random_state(void)
{
    static uint64_t state;
    if (!state) {
        const char *given = getenv("PACELINE_TEST_SEED");
        state = given ? strtoull(given, NULL, 10) : (uint64_t)pl_now_ns();
        state |= !state;
        printf("seed %llu\n", (unsigned long long)state);
    }
    return &state;
}

/* A random number below n. */
static inline size_t below(size_t n)
{
    uint64_t *s = random_state();
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (size_t)(*s % n);
}

#endif
