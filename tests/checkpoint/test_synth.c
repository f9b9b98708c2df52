/* Synthetic checkpoints: they open, they are the same every time, their tokenizer is one. */
#include "checkpoint/fixture.h"

#include "base/sha256.h"
#include "checkpoint/inventory.h"
#include "checkpoint/synth_tokenizer.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

static void hash_file(const char *dir, const char *name, char hex[65])
{
    char *path = pl_path_join(dir, name);
    pl_map map;
    pl_error err = {0};
    pl_sha256 sha;
    assert_int_equal(pl_map_open(&map, path, &err), PL_OK);
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, map.data, map.size);
    pl_sha256_hex(&sha, hex);
    pl_map_close(&map);
    free(path);
}

static void opens_and_repeats(void **state)
{
    (void)state;
    static const char *const files[] = {"model-00003-of-00008.safetensors",
                                        "model-00008-of-00008.safetensors",
                                        "model.safetensors.index.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "generation_config.json",
                                        "config.json"};
    char a[64], b[64], other[64], hash[3][65];
    pl_error err = {0};
    make_folder(a);
    make_folder(b);
    make_folder(other);
    assert_int_equal(fx_synth(SMALL_CONFIG, a, 7, &err), PL_OK);
    assert_int_equal(fx_synth(SMALL_CONFIG, b, 7, &err), PL_OK);
    assert_int_equal(fx_synth(SMALL_CONFIG, other, 8, &err), PL_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        hash_file(a, files[i], hash[0]);
        hash_file(b, files[i], hash[1]);
        hash_file(other, files[i], hash[2]);
        assert_string_equal(hash[0], hash[1]);
        if (i < 2)
            assert_string_not_equal(hash[0], hash[2]);
    }
    /* The same on every machine: the first shard's bytes as they were when this test was written. */
    hash_file(a, "model-00001-of-00008.safetensors", hash[0]);
    assert_string_equal(hash[0], "8f378e55aaf1780b680d374c88402b90b3bddaaeee41a09eef685adfa484b5ad");

    pl_checkpoint *c = fx_open(a);
    assert_int_equal(pl_checkpoint_config(c)->engram_classes, 250); /* what the callback said, not the given 300 */
    pl_tally have, want;
    pl_tally_checkpoint(c, &have);
    pl_tally_config(pl_checkpoint_config(c), &want);
    assert_memory_equal(&have, &want, sizeof have);
    pl_checkpoint_close(c);
    fx_remove_folder(a);
    fx_remove_folder(b);
    fx_remove_folder(other);
}

static pl_status is_lively(void *arg, const pl_item *item, pl_error *err)
{
    pl_tensor t;
    PL_TRY(pl_checkpoint_tensor(arg, item->name, &t, err));
    assert_int_equal((uintptr_t)t.data % (uintptr_t)pl_dtype_size(t.dtype), 0);
    unsigned char low = 255, high = 0;
    for (size_t i = 0; i < t.bytes; i++) {
        low = t.data[i] < low ? t.data[i] : low;
        high = t.data[i] > high ? t.data[i] : high;
        if (t.dtype == PL_F8_E4M3)
            assert_true((t.data[i] & 127) != 127); /* NaN */
    }
    if (t.dtype == PL_F8_E8M0)
        assert_true(low >= 100 && high <= 140); /* well inside the exact range */
    if (t.bytes >= 64)
        assert_true(low != high);
    for (size_t i = 0; i < t.bytes / 4 && t.dtype == PL_F32; i++) {
        float x;
        memcpy(&x, t.data + 4 * i, 4);
        assert_true(isfinite(x) && fabsf(x) < 8);
    }
    return PL_OK;
}

static void values_are_sane(void **state)
{
    (void)state;
    char dir[64];
    pl_error err = {0};
    make_folder(dir);
    assert_int_equal(fx_synth(SMALL_CONFIG, dir, 3, &err), PL_OK);
    pl_checkpoint *c = fx_open(dir);
    assert_int_equal(pl_inventory_each(pl_checkpoint_config(c), is_lively, c, &err), PL_OK);
    pl_checkpoint_close(c);
    fx_remove_folder(dir);
}

static void edit(json_t *config, const char *key, int value)
{
    json_object_set_new(json_object_get(config, "text_config"), key, json_integer(value));
}

static pl_status synth_text(const char *text, const char *dir, pl_error *err)
{
    pl_synth s = {.config_json = text, .config_len = strlen(text), .where = "test", .out = dir, .classes = fx_classes};
    return pl_synth_write(&s, err);
}

/* More than 256 experts and 64 heads, no drafter, no Engram, with a vision part. */
static void other_shapes(void **state)
{
    (void)state;
    json_t *config = json_load_file(SMALL_CONFIG, 0, NULL);
    edit(config, "n_routed_experts", 300);
    edit(config, "num_attention_heads", 66);
    edit(config, "num_nextn_predict_layers", 0);
    json_array_remove(json_object_get(json_object_get(config, "text_config"), "compress_ratios"), 4);
    json_array_clear(json_object_get(json_object_get(config, "text_config"), "engram_layer_ids"));
    json_array_clear(json_object_get(json_object_get(config, "text_config"), "engram_num_embeddings"));
    json_object_set_new(config, "vision_config",
                        json_pack("{s:i,s:i,s:i,s:i,s:i}", "num_hidden_layers", 2, "hidden_size", 16,
                                  "intermediate_size", 24, "patch_size", 4, "downsample_ratio", 2));
    char *text = json_dumps(config, 0), dir[64];
    pl_error err = {0};
    make_folder(dir);
    if (synth_text(text, dir, &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_checkpoint *c = fx_open(dir);
    const pl_config *p = pl_checkpoint_config(c);
    assert_true(p->experts == 300 && p->heads == 66 && p->stages == 0 && p->engrams == 0 && p->has_vision);
    pl_checkpoint_info info;
    pl_checkpoint_info_get(c, &info);
    assert_int_equal(info.shards, 7); /* vision, embed, 4 layers, norm and head */
    pl_checkpoint_close(c);
    fx_remove_folder(dir);
    free(text);
    json_decref(config);
}

static void refuses_a_folder_in_use(void **state)
{
    (void)state;
    char dir[64];
    pl_error err = {0};
    make_folder(dir);
    assert_int_equal(fx_synth(SMALL_CONFIG, dir, 1, &err), PL_OK);
    assert_fails(PL_EINVAL, &err, fx_synth(SMALL_CONFIG, dir, 1, &err));
    assert_non_null(strstr(err.message, "found a checkpoint"));
    fx_remove_folder(dir);
    assert_fails(PL_EIO, &err, fx_synth(SMALL_CONFIG, "/proc/nothing/here", 1, &err));
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    json_t *config = json_load_file(SMALL_CONFIG, 0, NULL);
    char dir[64], inner[96];
    pl_error err;
    make_folder(dir);
    snprintf(inner, sizeof inner, "%s/a/b", dir);
    edit(config, "n_routed_experts", 8192);
    edit(config, "hidden_size", 65536);
    edit(config, "moe_intermediate_size", 131072);
    char *text = json_dumps(config, 0);
    assert_fails(PL_EIO, &err, synth_text(text, inner, &err));
    assert_non_null(strstr(err.message, "expected room for"));
    assert_int_equal(rmdir(dir), 0); /* nothing was left in it */
    make_folder(dir);
    free(text);
    edit(config, "hidden_size", 64);
    edit(config, "vocab_size", 200);
    text = json_dumps(config, 0);
    assert_fails(PL_EFORMAT, &err, synth_text(text, dir, &err)); /* ids past the vocabulary */
    free(text);
    json_decref(config);
    fx_remove_folder(dir); /* succeeds only when nothing was written */
    assert_int_not_equal(access(dir, F_OK), 0);
}

static pl_tokenizer *make_tokenizer(const pl_config *c)
{
    pl_buf text;
    pl_error err = {0};
    pl_tokenizer *tok;
    pl_buf_init(&text, 64 << 20, "tokenizer");
    if (pl__synth_tokenizer(c, &text, &err) != PL_OK ||
        pl_tokenizer_parse(&tok, text.data, text.len, "test", &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_buf_free(&text);
    return tok;
}

/* Every id has a token, control tokens stand where the config wants them, text comes back whole. */
static void tokenizers_of_many_sizes(void **state)
{
    (void)state;
    static const int sizes[] = {280, 281, 320, 512, 2047, 2048, 5000, 8192, 65536, 129280};
    static const char text[] = "The quick brown fox, 123 456 and \xe4\xbd\xa0\xe5\xa5\xbd\n\n  \x01\xc3\xa9!";
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        pl_config c = {.vocab_size = n, .bos = 0, .eos = 1, .pad = 2, .noise_token = n - 1, .image_token = n / 2};
        pl_tokenizer *tok = make_tokenizer(&c);
        pl_token t;
        assert_int_equal(pl_tokenizer_size(tok), n);
        for (int id = 0; id < n; id++)
            assert_true(pl_tokenizer_token(tok, id, &t));
        assert_int_equal(pl_tokenizer_find(tok, "<｜begin▁of▁sentence｜>"), 0);
        assert_int_equal(pl_tokenizer_find(tok, "<｜end▁of▁sentence｜>"), 1);
        assert_int_equal(pl_tokenizer_find(tok, "<｜▁pad▁｜>"), 2);
        assert_int_equal(pl_tokenizer_find(tok, "<｜System｜>"), n - 1);
        assert_int_equal(pl_tokenizer_find(tok, "<｜deepseek_image｜>"), n / 2);
        static const char *const needed[] = {"<｜User｜>", "<｜Assistant｜>", "<think>",
                                             "</think>",   "｜DSML｜",        "<｜latest_reminder｜>"};
        for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
            assert_true(pl_tokenizer_find(tok, needed[k]) > 2);
        pl_ids ids;
        pl_buf back;
        pl_error err = {0};
        pl_ids_init(&ids, 1000);
        pl_buf_init(&back, 1000, "text");
        assert_int_equal(pl_tokenizer_encode(tok, text, sizeof text - 1, false, &ids, &err), PL_OK);
        assert_int_equal(pl_tokenizer_decode(tok, ids.data, ids.len, false, &back, &err), PL_OK);
        assert_int_equal(back.len, sizeof text - 1);
        assert_memory_equal(back.data, text, back.len);
        pl_ids_free(&ids);
        pl_buf_free(&back);
        pl_tokenizer_close(tok);
    }
}

static void control_ids_that_collide(void **state)
{
    (void)state;
    pl_config c = {.vocab_size = 400, .bos = 5, .eos = 5, .pad = -1, .noise_token = 5, .image_token = 399};
    pl_tokenizer *tok = make_tokenizer(&c);
    assert_int_equal(pl_tokenizer_find(tok, "<｜begin▁of▁sentence｜>"), 5);
    assert_true(pl_tokenizer_find(tok, "<｜end▁of▁sentence｜>") >= 0);
    assert_true(pl_tokenizer_find(tok, "<｜System｜>") >= 0);
    assert_int_equal(pl_tokenizer_find(tok, "<｜deepseek_image｜>"), 399);
    pl_tokenizer_close(tok);
}

static void tokenizer_too_small(void **state)
{
    (void)state;
    pl_config c = {.vocab_size = 279, .bos = 0, .eos = 1, .pad = 2, .noise_token = 3, .image_token = -1};
    pl_buf text;
    pl_error err;
    pl_buf_init(&text, 1 << 20, "tokenizer");
    assert_fails(PL_EFORMAT, &err, pl__synth_tokenizer(&c, &text, &err));
    assert_string_equal(err.param, "text_config.vocab_size");
    pl_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_and_repeats),
        cmocka_unit_test(values_are_sane),
        cmocka_unit_test(other_shapes),
        cmocka_unit_test(refuses_a_folder_in_use),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(tokenizers_of_many_sizes),
        cmocka_unit_test(control_ids_that_collide),
        cmocka_unit_test(tokenizer_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
