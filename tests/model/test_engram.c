/* Engram look-ups: multipliers, primes and table rows equal the release's. */
#include "model/support.h"

#include "model/engram.h"

static void multipliers_are_numpys(void **state)
{
    (void)state;
    const struct {
        int layer, classes;
        int64_t m[4];
    } known[] = {
        {1, 99092, {76632096046245, 4839876093313, 35959672319349, 73987337458391}},
        {14, 99092, {67716810739261, 51510806800915, 30921347202721, 82619226485591}},
        {1, 300, {25312092204715445, 1598643339462077, 11877719498229879, 24438510811423417}},
        {4, 300, {27171098617865603, 1664016290499501, 24328227015100263, 6260917600735559}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int64_t m[4];
        pl__engram_multipliers(known[i].layer, known[i].classes, 4, m);
        for (int k = 0; k < 4; k++)
            assert_int_equal(m[k], known[i].m[k]);
    }
}

/* The release's constants on 24 given classes: the token "ids" are the classes themselves. */
static void open_release(pl_config *c, pl__engrams *e, pl_arena *arena, uint32_t *map)
{
    pl_error err;
    assert_int_equal(pl_config_load(c, "tests/vectors/release/config.json", &err), PL_OK);
    for (int i = 0; i < c->vocab_size; i++)
        map[i] = (uint32_t)i < (uint32_t)c->engram_classes ? (uint32_t)i : 0;
    pl__taker count = {0};
    assert_int_equal(pl__engrams_load(e, &count, c, NULL, &err), PL_OK);
    assert_int_equal(pl_arena_open(arena, count.host_bytes, "test", &err), PL_OK);
    pl__taker take = {.host = arena};
    assert_int_equal(pl__engrams_load(e, &take, c, map, &err), PL_OK);
}

static void rows_are_the_releases(void **state)
{
    (void)state;
    enum { N = 24, COLS = 24 };
    pl_config c;
    pl__engrams e;
    pl_arena arena;
    uint32_t *map = calloc(200000, sizeof *map);
    open_release(&c, &e, &arena, map);
    int32_t *classes = load_i32(TINY "unit/engram.class.i32", N);
    unsigned char *mask = load_array(TINY "unit/engram.mask.u8", 1, N);
    int32_t *rows = load_i32(TINY "unit/engram.rows.i32", N * 2 * COLS);
    int32_t *masked = load_i32(TINY "unit/engram.rows_masked.i32", N * 2 * COLS);
    int32_t *primes = load_i32(TINY "unit/engram.primes.i32", 2 * COLS);
    int32_t images[N];
    c.image_token = c.vocab_size - 1;
    for (int i = 0; i < N; i++)
        images[i] = mask[i] ? classes[i] : c.image_token;
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < COLS; i++)
            assert_int_equal(e.engram[l].prime[i], primes[l * COLS + i]);
    for (int pos = 0; pos < N; pos++)
        for (int l = 0; l < 2; l++) {
            int64_t id[COLS];
            pl__engram_rows(&e, &c, l, classes, pos, id);
            for (int i = 0; i < COLS; i++)
                assert_int_equal(id[i], rows[(pos * 2 + l) * COLS + i]);
            pl__engram_rows(&e, &c, l, images, pos, id);
            for (int i = 0; i < COLS; i++)
                assert_int_equal(id[i], masked[(pos * 2 + l) * COLS + i]);
        }
    free(classes), free(mask), free(rows), free(masked), free(primes), free(map);
    pl_arena_close(&arena);
}

static void a_class_out_of_range_is_refused(void **state)
{
    (void)state;
    pl_config c;
    pl__engrams e;
    pl_arena arena;
    pl_error err;
    uint32_t *map = calloc(200000, sizeof *map);
    open_release(&c, &e, &arena, map);
    pl_arena_close(&arena);
    map[77] = (uint32_t)c.engram_classes;
    assert_int_equal(pl_arena_open(&arena, 8 << 20, "test", &err), PL_OK);
    pl__taker take = {.host = &arena};
    assert_fails(PL_EINVAL, &err, pl__engrams_load(&e, &take, &c, map, &err));
    assert_non_null(strstr(err.message, "token 77"));
    pl_arena_close(&arena);
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multipliers_are_numpys),
        cmocka_unit_test(rows_are_the_releases),
        cmocka_unit_test(a_class_out_of_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
