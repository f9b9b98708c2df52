/* One path, one set of bits: whole, in pieces, token by token, in windows whose later rows are thrown away, beside
 * other slots, on 1, 2 and 3 threads, on every instruction set of this machine. Logits are compared as bytes. */
#include "model/exact.h"

static uint64_t seed;

static void tiny_is_exact(void **state)
{
    (void)state;
    int count;
    int32_t *tokens = load_prompt("p5", &count);
    check_exact(TINY "model", tokens, count > 160 ? 160 : count, &seed);
    free(tokens);
}

/* Past the window of 128 and past the 64 entries that an index owner keeps. */
enum { COUNT = 190 };

static void nano_is_exact(void **state)
{
    (void)state;
    int32_t tokens[COUNT];
    for (int i = 0; i < COUNT; i++)
        tokens[i] = (int32_t)(next_random(&seed) % 7900);
    check_exact(NANO, tokens, COUNT, &seed);
}

int main(void)
{
    seed = print_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiny_is_exact),
        cmocka_unit_test(nano_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
