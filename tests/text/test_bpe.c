/* Merging: both ways (scan and heap) against the definition, and long unbroken runs. */
#include "text/bpe.h"
#include "text/tokenizer_check.h"

/* The definition: look for the lowest rank, the leftmost of equals, until none is left. */
static size_t naive(const pl__bpe *bpe, const char *piece, size_t n, int32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = bpe->byte_id[(unsigned char)piece[i]];
    for (;;) {
        uint32_t best = UINT32_MAX;
        size_t where = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t s = 0; s <= bpe->mask; s++) {
                const pl__merge *m = &bpe->slots[s];
                if (m->left == ids[i] && m->right == ids[i + 1] && m->rank < best)
                    best = m->rank, where = i;
            }
        if (best == UINT32_MAX)
            return n;
        ids[where] = bpe->merged[best];
        memmove(ids + where + 1, ids + where + 2, (n - where - 2) * sizeof *ids);
        n--;
    }
}

/* A few letters and random merges of them, in an order that no training would make. */
static void random_bpe(pl__bpe *bpe, uint64_t *random)
{
    pl_error err;
    assert_int_equal(pl__bpe_init(bpe, 24, &err), PL_OK);
    for (int b = 0; b < 256; b++)
        bpe->byte_id[b] = b;
    int32_t pool[4 + 24] = {'a', 'b', 'c', 'd'};
    int n = 4, next = 256;
    for (int i = 0; i < 24; i++) {
        int32_t left = pool[random_next(random) % (uint64_t)n], right = pool[random_next(random) % (uint64_t)n];
        if (pl__bpe_add(bpe, left, right, next))
            pool[n++] = next++;
    }
}

static void test_equal_to_the_definition(void **state)
{
    (void)state;
    uint64_t random = random_seed();
    for (int round = 0; round < 300; round++) {
        pl__bpe bpe;
        random_bpe(&bpe, &random);
        pl__bpe_work *work = pl__bpe_work_open(1 << 20); /* with the cache of words */
        for (int i = 0; i < 30; i++) {
            char piece[130];
            int32_t expected[130];
            size_t n = 1 + random_next(&random) % (i % 3 ? 12 : 130); /* both sides of the scan's limit */
            for (size_t k = 0; k < n; k++)
                piece[k] = (char)('a' + random_next(&random) % 4);
            size_t count = naive(&bpe, piece, n, expected);
            for (int again = 0; again < 2; again++) { /* the second time from the cache */
                pl_ids ids;
                pl_error err;
                pl_ids_init(&ids, 1000);
                assert_int_equal(pl__bpe_encode(&bpe, work, piece, n, &ids, &err), PL_OK);
                assert_int_equal(ids.len, count);
                assert_memory_equal(ids.data, expected, count * sizeof *expected);
                pl_ids_free(&ids);
            }
        }
        pl__bpe_work_close(work);
        pl__bpe_free(&bpe);
    }
}

static void test_a_pair_has_one_merge(void **state)
{
    (void)state;
    pl__bpe bpe;
    pl_error err;
    assert_int_equal(pl__bpe_init(&bpe, 2, &err), PL_OK);
    assert_true(pl__bpe_add(&bpe, 1, 2, 256));
    assert_false(pl__bpe_add(&bpe, 1, 2, 257));
    assert_true(pl__bpe_add(&bpe, 2, 1, 258));
    assert_int_equal(bpe.ranks, 2);
    pl__bpe_free(&bpe);
}

/* Doubling merges on a million letters: the heap is filled and emptied three times. Quadratic work would not end. */
static void test_a_long_run(void **state)
{
    (void)state;
    enum { N = 1 << 20, ODD = N - 1 };
    pl_tokenizer *tok =
        small_tokenizer(",\"aa\":256,\"aaaa\":257,\"aaaaaaaa\":258", "\"a a\",[\"aa\",\"aa\"],\"aaaa aaaa\"", "");
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, 'a', N);
    pl_ids ids;
    pl_error err;
    pl_ids_init(&ids, PL_IDS_MAX);
    assert_int_equal(pl_tokenizer_encode(tok, text, ODD, true, &ids, &err), PL_OK);
    assert_int_equal(ids.len, N / 8 - 1 + 3);
    for (size_t i = 0; i < N / 8 - 1; i++)
        assert_int_equal(ids.data[i], 258);
    assert_int_equal(ids.data[N / 8 - 1], 257);
    assert_int_equal(ids.data[N / 8], 256);
    assert_int_equal(ids.data[N / 8 + 1], 'a');
    pl_ids_free(&ids);
    free(text);
    pl_tokenizer_close(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_the_definition),
        cmocka_unit_test(test_a_pair_has_one_merge),
        cmocka_unit_test(test_a_long_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
