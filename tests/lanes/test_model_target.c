/* The tables of target.h on a real model: greedy replies of the trained checkpoint are the reference's, its drafts come
 * through the drafter's table, a cancel ends a long prompt within a layer. */
#include "lanes/lanes_kit.h"
#include "lanes/model_target.h"
#include "model/drafter.h"
#include "text/json_text.h"
#include "text/token_map.h"

#include "base/file.h"

static struct {
    pl_checkpoint *checkpoint;
    pl_tokenizer *tokenizer;
    pl_token_map map;
    pl_model *model;
    pl_model_target *target;
    pl_json_doc *cases;
} m;

static int open_model(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_model_settings settings = {.threads = 2, .slots = 2, .context = 2048};
    pl_buf text;
    pl_buf_init(&text, 1 << 20, "cases");
    if (pl_checkpoint_open(&m.checkpoint, "models/nano", 2, NULL, NULL, &err) != PL_OK ||
        pl_tokenizer_load(&m.tokenizer, "models/nano/tokenizer.json", &err) != PL_OK ||
        pl_token_map_build(&m.map, m.tokenizer, &err) != PL_OK ||
        pl_model_open(&m.model, m.checkpoint, m.map.map, &settings, &err) != PL_OK ||
        pl_model_target_open(&m.target, m.model, &err) != PL_OK ||
        pl_file_read(&text, "tests/vectors/nano/cases.json", &err) != PL_OK ||
        pl_json_parse(text.data, text.len, NULL, &m.cases, &err) != PL_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    pl_buf_free(&text);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    pl_json_free(m.cases);
    pl_model_target_close(m.target);
    pl_model_close(m.model);
    pl_token_map_close(&m.map);
    pl_tokenizer_close(m.tokenizer);
    pl_checkpoint_close(m.checkpoint);
    return 0;
}

static size_t ids_of(const pl_json *list, int32_t *out, size_t cap)
{
    size_t n = 0;
    for (pl_json_iter it = {0}; pl_json_each(list, &it);) {
        int64_t id;
        assert_true(n < cap && pl_json_i64(it.value, 0, INT32_MAX, &id));
        out[n++] = (int32_t)id;
    }
    return n;
}

static pl_engine *open_engine(void)
{
    pl_error err;
    pl_engine *engine;
    pl_engine_settings settings = {.queue = 16,
                                   .core = {.drafts = true, .plain_streams = 3, .joint = 1, .decode_share = 0.25}};
    assert_int_equal(
        pl_engine_open(&engine, pl_model_target_table(m.target), pl_model_target_drafter(m.target), &settings, &err),
        PL_OK);
    return engine;
}

/* The margin of the reference at step i: where it is smaller than rounding noise another token may be right. */
static double margin(const pl_json *item, size_t i)
{
    double a, b;
    const pl_json *pair = pl_json_at(pl_json_get(item, "greedy_top2"), i);
    assert_true(pl_json_f64(pl_json_at(pair, 0), -1e9, 1e9, &a) && pl_json_f64(pl_json_at(pair, 1), -1e9, 1e9, &b));
    return a - b;
}

static void greedy_replies_are_the_reference_s(void **state)
{
    (void)state;
    pl_engine *engine = open_engine();
    int exact = 0, all = 0;
    for (pl_json_iter it = {0}; pl_json_each(pl_json_root(m.cases), &it); all++) {
        int32_t prompt[512], expected[512], token[512];
        size_t len = ids_of(pl_json_get(it.value, "ids"), prompt, 512);
        size_t n = ids_of(pl_json_get(it.value, "greedy"), expected, 512);
        pl_error err;
        pl_request request = kit_request(prompt, len, (int64_t)n);
        request.eos = pl_model_config(m.model)->eos;
        pl_stream *stream;
        assert_int_equal(pl_engine_submit(engine, &request, 1, &stream, &err), PL_OK);
        pl_outcome o = kit_read(stream, token, 512);
        size_t same = 0;
        while (same < n && same < o.tokens && token[same] == expected[same])
            same++;
        if (same < n) {
            assert_true(same > 3);
            assert_true(margin(it.value, same) < 1.0);
        } else {
            char sha[65];
            kit_sha(expected, n, sha);
            assert_string_equal(o.token_sha, sha);
            exact++;
        }
        pl_stream_release(stream);
    }
    printf("%d of %d replies equal to the last token\n", exact, all);
    assert_true(exact * 2 > all);
    pl_engine_close(engine);
}

static void the_drafter_s_table_proposes_what_the_drafter_does(void **state)
{
    (void)state;
    const pl_target *t = pl_model_target_table(m.target);
    const pl_draft_table *d = pl_model_target_drafter(m.target);
    const pl_json *item = pl_json_get(pl_json_root(m.cases), "chat_harbour");
    int32_t prompt[64];
    size_t len = ids_of(pl_json_get(item, "ids"), prompt, 64);
    pl_error err;
    int block = pl_model_config(m.model)->block;
    assert_int_equal(d->block, block);
    assert_int_equal(t->admit(t->arg, 1, &err), PL_OK);
    assert_int_equal(t->prefill(t->arg, 1, prompt, (int)len, true, NULL, &err), PL_OK);
    int slot = 1;
    assert_int_equal(d->ingest(d->arg, &slot, 1, &err), PL_OK);
    pl_draft_ask ask = {.slot = 1, .anchor = 521};
    int32_t draft[PL_MAX_BLOCK];
    float confidence[PL_MAX_BLOCK], gap[PL_MAX_BLOCK];
    assert_int_equal(d->propose(d->arg, &ask, 1, NULL, NULL, draft, confidence, gap, &err), PL_OK);
    const int32_t reference[] = {726, 304, 74, 4644, 597};
    assert_memory_equal(draft, reference, sizeof reference);
    for (int i = 0; i < block; i++)
        assert_true(gap[i] >= 0);
    /* A window whose rows are not all kept leaves the slot as if the rest had never been run. */
    int32_t window[4] = {521, 726, 9, 9};
    pl_window w = {.slot = 1, .rows = 4, .token = window};
    assert_int_equal(t->window(t->arg, &w, 1, NULL, &err), PL_OK);
    assert_int_equal(t->keep(t->arg, 1, (int)len + 5, &err), PL_EINVAL);
    assert_int_equal(t->keep(t->arg, 1, (int)len + 2, &err), PL_OK);
    assert_int_equal(t->keep(t->arg, 1, (int)len + 1, &err), PL_EINVAL);
    w = (pl_window){.slot = 1, .rows = 1, .token = &(int32_t){304}};
    assert_int_equal(t->window(t->arg, &w, 1, NULL, &err), PL_OK);
    float *row = malloc((size_t)t->vocab * sizeof *row);
    memcpy(row, t->logits(t->arg, 0), (size_t)t->vocab * sizeof *row);
    assert_int_equal(t->admit(t->arg, 0, &err), PL_OK);
    memcpy(prompt + len, (int32_t[]){521, 726, 304}, 3 * sizeof *prompt);
    assert_int_equal(t->prefill(t->arg, 0, prompt, (int)len + 3, true, NULL, &err), PL_OK);
    assert_memory_equal(row, t->logits(t->arg, 0), (size_t)t->vocab * sizeof *row);
    free(row);
    t->release(t->arg, 0);
    t->release(t->arg, 1);
}

static void a_long_prompt_is_cancelled_soon(void **state)
{
    (void)state;
    pl_engine *engine = open_engine();
    static int32_t prompt[2000];
    for (int i = 0; i < 2000; i++)
        prompt[i] = 100 + i % 900;
    pl_error err;
    pl_request request = kit_request(prompt, 2000, 4);
    pl_stream *stream;
    assert_int_equal(pl_engine_submit(engine, &request, 1, &stream, &err), PL_OK);
    pl_stream_event e;
    assert_true(pl_stream_wait(stream, 20000) && pl_stream_next(stream, &e));
    assert_int_equal(e.kind, PL_STREAM_STARTED);
    pl_stream_cancel(stream);
    int32_t token[4];
    pl_outcome o = kit_read(stream, token, 4);
    assert_int_equal(o.reason, PL_FINISH_CANCELLED);
    assert_int_equal(o.tokens, 0);
    pl_engine_counts c;
    pl_engine_counts_now(engine, &c);
    assert_true(c.prompt_tokens < 2000);
    pl_stream_release(stream);
    pl_engine_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_replies_are_the_reference_s),
        cmocka_unit_test(the_drafter_s_table_proposes_what_the_drafter_does),
        cmocka_unit_test(a_long_prompt_is_cancelled_soon),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
