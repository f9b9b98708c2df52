/* What a forward refuses, what a cancel leaves behind, how far a rewind reaches. */
#include "model/internal.h"
#include "model/support.h"

static fixture f;
static int32_t tokens[100];

static pl_status forward(int slot, int pos, int rows, const atomic_bool *cancel, pl_error *err)
{
    pl_run run = {slot, pos, rows, tokens + pos % 40, PL_WANT_LAST};
    return pl_model_forward(f.model, &run, 1, cancel, NULL, err);
}

static void bad_launches_are_refused(void **state)
{
    (void)state;
    pl_error err;
    pl_model_reset(f.model, 0);
    assert_fails(PL_EINVAL, &err, forward(2, 0, 1, NULL, &err));  /* no such slot */
    assert_fails(PL_EINVAL, &err, forward(0, 1, 1, NULL, &err));  /* a gap */
    assert_fails(PL_EINVAL, &err, forward(0, 0, 0, NULL, &err));  /* nothing */
    assert_fails(PL_EINVAL, &err, forward(0, 0, 33, NULL, &err)); /* past the piece */
    assert_int_equal(forward(0, 0, 30, NULL, &err), PL_OK);
    assert_fails(PL_EINVAL, &err, forward(0, 30, 31, NULL, &err)); /* past the context */
    pl_run twice[] = {{0, 30, 1, tokens, PL_WANT_LAST}, {0, 31, 1, tokens, PL_WANT_LAST}};
    assert_fails(PL_EINVAL, &err, pl_model_forward(f.model, twice, 2, NULL, NULL, &err));
    pl_run wide[] = {{0, 30, 1, tokens, PL_WANT_LAST}, {1, 0, PL_WINDOW_ROWS + 1, tokens, PL_WANT_LAST}};
    assert_fails(PL_EINVAL, &err, pl_model_forward(f.model, wide, 2, NULL, NULL, &err));
    const int32_t strange[] = {5, -1, 512};
    for (int i = 1; i < 3; i++) {
        pl_run run = {0, 30, 1, &strange[i], PL_WANT_LAST};
        assert_fails(PL_EINVAL, &err, pl_model_forward(f.model, &run, 1, NULL, NULL, &err));
        assert_non_null(strstr(err.message, "position 30"));
    }
    assert_int_equal(pl_model_len(f.model, 0), 30); /* and nothing of it moved the slot */
    assert_null(pl_model_logits(f.model, 1));
}

static void a_rewind_reaches_the_latest_launch(void **state)
{
    (void)state;
    pl_error err;
    pl_model_reset(f.model, 0);
    assert_int_equal(forward(0, 0, 32, NULL, &err), PL_OK);
    assert_int_equal(forward(0, 0, 1, NULL, &err), PL_OK); /* the whole piece taken back */
    assert_int_equal(pl_model_len(f.model, 0), 1);
    for (int at = 1; at < 50; at++)
        assert_int_equal(forward(0, at, 1, NULL, &err), PL_OK);
    assert_fails(PL_EINVAL, &err, forward(0, 5, 1, NULL, &err));
    assert_non_null(strstr(err.message, "rewound"));
    assert_int_equal(forward(0, 50 - PL_WINDOW_ROWS, 1, NULL, &err), PL_OK);
}

static void a_cancelled_launch_leaves_the_slot_usable(void **state)
{
    (void)state;
    pl_error err;
    float want[512];
    atomic_bool cancel = true;
    pl_model_reset(f.model, 0);
    assert_int_equal(forward(0, 0, 20, NULL, &err), PL_OK);
    assert_int_equal(forward(0, 20, 7, NULL, &err), PL_OK);
    memcpy(want, pl_model_logits(f.model, 0), sizeof want);
    pl_model_reset(f.model, 0);
    assert_int_equal(forward(0, 0, 20, NULL, &err), PL_OK);
    assert_fails(PL_ECANCELED, &err, forward(0, 20, 15, &cancel, &err));
    assert_int_equal(pl_model_len(f.model, 0), 20);
    assert_int_equal(forward(0, 20, 7, NULL, &err), PL_OK);
    assert_memory_equal(want, pl_model_logits(f.model, 0), sizeof want);
}

/* Operations that raise the flag while they run, as a client does that leaves: the n-th call of one of them. */
typedef enum operation { OP_WINDOW, OP_INDEX, OP_ATTENTION, OP_MOE, OPERATIONS } operation;
static struct {
    pl_kernels own;
    operation at;
    int left, later; /* calls of `at` before the flag; operations begun behind it */
    atomic_bool flag;
} leaver;

static void passes(operation which)
{
    leaver.later += leaver.flag;
    if (which == leaver.at && leaver.left-- == 0)
        leaver.flag = true;
}

static void leaving_window(pl_kernels *k, const pl_ring *ring, const pl_bf16 *kv, int dim, const pl_launch *launch)
{
    passes(OP_WINDOW);
    leaver.own.window_put(k, ring, kv, dim, launch);
}

static void leaving_index(pl_kernels *k, const pl_lists *lists, int topk, const pl_bf16 *q, const pl_bf16 *w,
                          float w_scale, const pl_entries *entries, int heads, int dim, const pl_candidates *publish,
                          const pl_candidates *within, const pl_launch *launch)
{
    passes(OP_INDEX);
    leaver.own.index_select(k, lists, topk, q, w, w_scale, entries, heads, dim, publish, within, launch);
}

static void leaving_attention(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                              const pl_entries *entries, const pl_lists *lists, const float *sink, int heads, int dim,
                              float scale, const pl_launch *launch)
{
    passes(OP_ATTENTION);
    leaver.own.attention(k, o, q, ring, window, entries, lists, sink, heads, dim, scale, launch);
}

static void leaving_moe(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const int32_t *id, const float *weight,
                        const pl_experts *e, int rows, int dim)
{
    passes(OP_MOE);
    leaver.own.moe(k, y, x, id, weight, e, rows, dim);
}

/* A launch of 15 rows behind 20, given up in the nth call of an operation; false when there is no such call. */
static bool give_up_in(operation at, int nth)
{
    pl_error err;
    pl_model_reset(f.model, 0);
    assert_int_equal(forward(0, 0, 20, NULL, &err), PL_OK);
    leaver.at = at, leaver.left = nth, leaver.later = 0;
    leaver.flag = false;
    pl_kernels *k = &f.model->kernels;
    leaver.own = *k;
    k->window_put = leaving_window, k->index_select = leaving_index;
    k->attention = leaving_attention, k->moe = leaving_moe;
    pl_status status = forward(0, 20, 15, &leaver.flag, &err);
    *k = leaver.own;
    /* behind the last layer's experts nothing is left to give up */
    bool last = at == OP_MOE && nth == f.model->config->layers - 1;
    assert_int_equal(status, leaver.flag && !last ? PL_ECANCELED : PL_OK);
    return leaver.flag;
}

static void a_cancel_is_seen_between_the_parts_of_a_layer(void **state)
{
    (void)state;
    pl_error err;
    float want[512];
    pl_model_reset(f.model, 0);
    assert_int_equal(forward(0, 0, 20, NULL, &err), PL_OK);
    assert_int_equal(forward(0, 20, 7, NULL, &err), PL_OK);
    memcpy(want, pl_model_logits(f.model, 0), sizeof want);
    for (int at = 0; at < OPERATIONS; at++) {
        int nth = 0;
        for (; give_up_in((operation)at, nth); nth++) {
            assert_int_equal(leaver.later, 0);
            assert_int_equal(forward(0, 20, 7, NULL, &err), PL_OK);
            assert_memory_equal(want, pl_model_logits(f.model, 0), sizeof want);
        }
        assert_in_range(nth, 1, f.model->config->layers);
    }
}

static void the_drafter_refuses_what_it_cannot_do(void **state)
{
    (void)state;
    pl_error err;
    pl_proposal out;
    int slot = 0, count = 5;
    pl_ask ask = {.slot = 0, .anchor = 1};
    pl_model_reset(f.model, 0);
    assert_fails(PL_EINVAL, &err, pl_drafter_propose(f.model, &ask, 1, NULL, NULL, &out, &err)); /* nothing ingested */
    assert_fails(PL_EINVAL, &err, pl_drafter_ingest(f.model, &slot, &count, 1, &err));           /* nothing held */
    assert_int_equal(forward(0, 0, 32, NULL, &err), PL_OK);
    assert_int_equal(pl_drafter_ingest(f.model, &slot, &count, 1, &err), PL_OK);
    assert_int_equal(pl_drafter_count(f.model, 0), 5);
    ask.anchor = 512;
    assert_fails(PL_EINVAL, &err, pl_drafter_propose(f.model, &ask, 1, NULL, NULL, &out, &err));
    assert_int_equal(forward(0, 3, 1, NULL, &err), PL_OK); /* rewound behind what was ingested */
    assert_int_equal(pl_drafter_count(f.model, 0), 3);
}

static int open_tiny(void **state)
{
    (void)state;
    open_fixture(&f, TINY "model", (pl_model_settings){.threads = 1, .slots = 2, .context = 60, .piece = 32});
    for (int i = 0; i < 100; i++)
        tokens[i] = 3 + i * 5;
    return 0;
}

static int close_tiny(void **state)
{
    (void)state;
    close_fixture(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_launches_are_refused),
        cmocka_unit_test(a_rewind_reaches_the_latest_launch),
        cmocka_unit_test(a_cancelled_launch_leaves_the_slot_usable),
        cmocka_unit_test(a_cancel_is_seen_between_the_parts_of_a_layer),
        cmocka_unit_test(the_drafter_refuses_what_it_cannot_do),
    };
    return cmocka_run_group_tests(tests, open_tiny, close_tiny);
}
