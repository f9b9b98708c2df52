/* One tokenizer, many threads: each gets the ids that one thread alone gets. Run under ThreadSanitizer too. */
#include "base/threads.h"
#include "text/tokenizer_check.h"

enum { TASKS = 64, TEXT_BYTES = 4000 };

typedef struct shared {
    const pl_tokenizer *tok;
    char text[TASKS][TEXT_BYTES + 4];
    size_t len[TASKS];
    pl_ids alone[TASKS], together[TASKS];
} shared;

static void encode(shared *s, pl_ids *ids, size_t task)
{
    pl_error err;
    pl_ids_init(ids, PL_IDS_MAX);
    if (pl_tokenizer_encode(s->tok, s->text[task], s->len[task], task % 2 == 0, ids, &err) != PL_OK)
        ids->len = SIZE_MAX; /* no assertion off the test's own thread: found below */
}

static void one(void *arg, size_t task, int thread)
{
    (void)thread;
    shared *s = arg;
    encode(s, &s->together[task], task);
}

static void test_threads_agree_with_one(void **state)
{
    (void)state;
    uint64_t random = random_seed();
    pl_tokenizer *tok = load_tokenizer(NANO_TOKENIZER);
    shared *s = calloc(1, sizeof *s);
    pl_pool *pool;
    pl_error err;
    assert_non_null(s);
    s->tok = tok;
    for (size_t i = 0; i < TASKS; i++) {
        while (s->len[i] < TEXT_BYTES)
            s->len[i] += (size_t)random_char(&random, s->text[i] + s->len[i]);
        encode(s, &s->alone[i], i);
    }
    assert_int_equal(pl_pool_open(&pool, 4, &err), PL_OK);
    pl_pool_run(pool, TASKS, one, s);
    pl_pool_close(pool);
    for (size_t i = 0; i < TASKS; i++) {
        assert_true(s->alone[i].len > 0 && s->alone[i].len < SIZE_MAX);
        assert_int_equal(s->together[i].len, s->alone[i].len);
        assert_memory_equal(s->together[i].data, s->alone[i].data, s->alone[i].len * sizeof(int32_t));
        pl_ids_free(&s->alone[i]);
        pl_ids_free(&s->together[i]);
    }
    free(s);
    pl_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_agree_with_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
