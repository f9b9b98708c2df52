/* Rings by position: what is stored comes back, spans longer than the ring keep their last rows, slots stay apart. */
#include "ops_fixture.h"

enum { LENGTH = 10, WIDTH = 6, SLOTS = 3, DIM = 32 };

static void rows_come_back(pl_kernels *k)
{
    static unsigned char data[SLOTS * LENGTH * WIDTH];
    pl_ring ring = {.data = data, .length = LENGTH, .row_bytes = WIDTH};
    unsigned char x[40][WIDTH], y[40][WIDTH];
    for (int i = 0; i < 40; i++)
        for (int c = 0; c < WIDTH; c++)
            x[i][c] = (unsigned char)rng();
    memset(data, 0, sizeof data);
    ops_launch l;
    launch_start(&l);
    launch_span(&l, 2, 7, 5);
    launch_span(&l, 0, 3, 35); /* three and a half times round */
    k->ring_put(k, &ring, x, &l.launch);
    for (int i = 0; i < LENGTH * WIDTH; i++)
        assert_int_equal(data[LENGTH * WIDTH + i], 0); /* slot 1 */
    launch_start(&l);
    launch_span(&l, 0, 3 + 35 - LENGTH, LENGTH);
    launch_span(&l, 2, 7, 5);
    k->ring_get(k, y, &ring, &l.launch);
    assert_memory_equal(y, x + 5 + 35 - LENGTH, LENGTH * WIDTH);
    assert_memory_equal(y + LENGTH, x, 5 * WIDTH);
}

/* The same for the rows that threads store: no row may take the place of a later one */
static void long_spans_keep_their_end(pl_kernels *k)
{
    static unsigned char data[2][SLOTS * LENGTH * (DIM + 1)], pairs[2][SLOTS * LENGTH * 2 * DIM * 4];
    static pl_bf16 kv[OPS_ROWS * DIM];
    static float a[OPS_ROWS * DIM], b[OPS_ROWS * DIM];
    for (int i = 0; i < OPS_ROWS * DIM; i++)
        kv[i] = pl_bf16_from_f32(rng_gauss()), a[i] = rng_gauss(), b[i] = rng_gauss();
    for (int one = 0; one < 2; one++) {
        pl_ring ring = {.data = data[one], .length = LENGTH, .row_bytes = DIM + 1};
        pl_ring pair = {.data = pairs[one], .length = LENGTH, .row_bytes = 2 * DIM * 4};
        ops_launch l;
        launch_start(&l);
        launch_span(&l, 1, 4, 25);
        launch_span(&l, 0, 0, 11);
        for (int r = 0; r < l.launch.rows; r++) {
            ops_launch single;
            launch_start(&single);
            launch_span(&single, l.slot[r], l.pos[r], 1);
            const pl_launch *to = one ? &single.launch : &l.launch;
            k->window_put(k, &ring, kv + (one ? r * DIM : 0), DIM, to);
            k->pair_put(k, &pair, a + (one ? r * DIM : 0), b + (one ? r * DIM : 0), DIM, to);
            if (!one)
                break;
        }
    }
    assert_memory_equal(data[0], data[1], sizeof data[0]);
    assert_memory_equal(pairs[0], pairs[1], sizeof pairs[0]);
}

static void test_rows(void **state)
{
    (void)state;
    on_every_isa(rows_come_back);
}
static void test_long(void **state)
{
    (void)state;
    on_every_isa(long_spans_keep_their_end);
}

int main(void)
{
    rng_start("rings");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
