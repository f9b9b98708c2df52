/* Drafts, confidences and draft logits against the reference (tiny-a) and on the trained checkpoint (nano).
 * A draft may differ only where its own margin is small; what follows a difference in one block is not compared, since
 * the chain is conditioned on it. */
#include "model/support.h"

#include <math.h>

enum { BLOCK = 5, V = 512 };
static const float DRAFT_MARGIN = 0.6f;

static fixture tiny;

/* Ingest everything held and propose behind the anchor. */
static pl_proposal propose(pl_model *model, int32_t anchor, pl_draft_pick *pick, void *arg)
{
    pl_error err;
    int slot = 0, count = pl_model_len(model, 0);
    pl_proposal out;
    if (pl_drafter_ingest(model, &slot, &count, 1, &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_ask ask = {.slot = 0, .anchor = anchor};
    if (pl_drafter_propose(model, &ask, 1, pick, arg, &out, &err) != PL_OK)
        fail_msg("%s", err.message);
    return out;
}

/* How many of a block's drafts are comparable, and that they agree where their margins say they must. */
static int agree(const char *what, int which, const pl_proposal *got, const int32_t *want, const float *margins)
{
    for (int r = 0; r < BLOCK; r++) {
        if (got->draft[r] == want[r])
            continue;
        float margin = margins ? margins[r] : got->margin[r];
        if (margin > DRAFT_MARGIN)
            fail_msg("%s %d row %d: draft %d, reference %d, margin %.3f", what, which, r, got->draft[r], want[r],
                     (double)margin);
        return r;
    }
    return BLOCK;
}

typedef struct logit_check {
    const float *want;  /* [5][V] of one case */
    const int32_t *ids; /* the reference's drafts: the chain is kept on its path */
    double max, sum;
    int rows;
} logit_check;

static int32_t follow_reference(void *arg, int ask, int row, const float *logits)
{
    logit_check *c = arg;
    (void)ask;
    difference d = compare(logits, c->want + (size_t)row * V, V);
    c->max = d.max <= c->max ? c->max : d.max;
    c->sum += d.mean;
    c->rows++;
    return c->ids[row];
}

static void draft_logits_match(void **state)
{
    (void)state;
    enum { CASES = 13 };
    int count;
    int32_t *tokens = load_prompt("p4", &count);
    int32_t *pos = load_i32(TINY "vectors/draft.pos.i32", CASES);
    int32_t *ids = load_i32(TINY "vectors/draft.ids.i32", CASES * (1 + BLOCK));
    float *want = load_f32(TINY "vectors/draft.logits.f32", (size_t)CASES * BLOCK * V);
    float *conf = load_f32(TINY "vectors/draft.conf.f32", CASES * BLOCK);
    logit_check c = {0};
    double worst_conf = 0, sum_conf = 0;
    pl_model_reset(tiny.model, 0);
    for (int i = 0; i < CASES; i++) {
        run_rows(tiny.model, tokens, pl_model_len(tiny.model, 0), pos[i] + 1, NULL);
        c.want = want + (size_t)i * BLOCK * V;
        c.ids = ids + i * (1 + BLOCK) + 1;
        pl_proposal got = propose(tiny.model, ids[i * (1 + BLOCK)], follow_reference, &c);
        for (int r = 0; r < BLOCK; r++) {
            double e = fabs((double)got.confidence[r] - (double)conf[i * BLOCK + r]);
            worst_conf = e <= worst_conf ? worst_conf : e;
            sum_conf += e / (CASES * BLOCK);
        }
    }
    print_message("draft logits: largest difference %.3f, mean %.4f; confidence %.3f, %.4f\n", c.max, c.sum / c.rows,
                  worst_conf, sum_conf);
    assert_int_equal(c.rows, CASES * BLOCK);
    assert_true(c.max <= 1.8 && c.sum / c.rows <= 0.08);
    assert_true(worst_conf <= 0.5 && sum_conf <= 0.05);
    free(tokens), free(pos), free(ids), free(want), free(conf);
}

static void drafts_along_a_reply_match(void **state)
{
    (void)state;
    enum { CASES = 64 };
    int count, same = 0;
    int32_t *tokens = load_prompt("p3", &count);
    int32_t *greedy = load_i32(TINY "vectors/p3.greedy.i32", CASES);
    int32_t *pos = load_i32(TINY "vectors/spec.pos.i32", CASES);
    int32_t *ids = load_i32(TINY "vectors/spec.ids.i32", CASES * (1 + BLOCK));
    float *margins = load_f32(TINY "vectors/spec.margin.f32", CASES * BLOCK);
    pl_model_reset(tiny.model, 0);
    run_rows(tiny.model, tokens, 0, count, NULL);
    for (int i = 0; i < CASES; i++) {
        if (pos[i] >= pl_model_len(tiny.model, 0))
            run_rows(tiny.model, greedy - count, pl_model_len(tiny.model, 0), pos[i] + 1, NULL);
        pl_proposal got = propose(tiny.model, ids[i * (1 + BLOCK)], NULL, NULL);
        same += agree("reply", i, &got, ids + i * (1 + BLOCK) + 1, margins + i * BLOCK);
    }
    print_message("drafts along p3's reply: %d of %d equal before a small-margin difference\n", same, CASES * BLOCK);
    assert_true(same > CASES * BLOCK * 8 / 10);
    free(tokens), free(greedy), free(pos), free(ids), free(margins);
}

/* A drafter that sat out rounds catches up in one ingest: the same proposal as one fed at every position. */
static void one_late_ingest_equals_many(void **state)
{
    (void)state;
    int count;
    int32_t *tokens = load_prompt("p4", &count);
    pl_model_reset(tiny.model, 0);
    for (int at = 0; at < 60; at++) {
        run_rows(tiny.model, tokens, at, at + 1, NULL);
        (void)propose(tiny.model, 5, NULL, NULL);
    }
    pl_proposal fed = propose(tiny.model, tokens[60], NULL, NULL);
    pl_model_reset(tiny.model, 0);
    run_rows(tiny.model, tokens, 0, 60, NULL);
    pl_proposal late = propose(tiny.model, tokens[60], NULL, NULL);
    assert_memory_equal(&fed, &late, sizeof fed);
    free(tokens);
}

static int open_tiny(void **state)
{
    (void)state;
    open_fixture(&tiny, TINY "model", (pl_model_settings){.threads = 1, .context = 512});
    return 0;
}

static int close_tiny(void **state)
{
    (void)state;
    close_fixture(&tiny);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draft_logits_match),
        cmocka_unit_test(drafts_along_a_reply_match),
        cmocka_unit_test(one_late_ingest_equals_many),
    };
    return cmocka_run_group_tests(tests, open_tiny, close_tiny);
}
