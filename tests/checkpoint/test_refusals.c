/* Every way a folder can be wrong, one test each: the message names file, tensor, expected and found. */
#include "checkpoint/fixture.h"

#include <sys/stat.h>

#define SHARD "model-00001-of-00001.safetensors"
#define INDEX "model.safetensors.index.json"

static fx f;

static int setup(void **state)
{
    (void)state;
    fx_small(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fx_free(&f);
    return 0;
}

static void missing_tensor(void **state)
{
    (void)state;
    fx_drop(&f, "layers.1.attn.compressor.wgate.weight");
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, INDEX, "tensor layers.1.attn.compressor.wgate.weight",
               "expected BF16 [32,64], found none", NULL);
}

static void missing_scale(void **state)
{
    (void)state;
    fx_drop(&f, "layers.0.ffn.experts.1.w2.scale");
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "layers.0.ffn.experts.1.w2.scale", "expected F8_E8M0 [64,1], found none", NULL);
}

static void missing_head(void **state)
{
    (void)state;
    snprintf(fx_find(&f, "head.weight")->name, 64, "lm_head.weight");
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "tensor head.weight", "found none", NULL);
}

static void unknown_tensor(void **state)
{
    (void)state;
    fx_add(&f, "layers.0.attn.extra.weight", "BF16", 1, 4, 0, 8);
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, SHARD, "tensor layers.0.attn.extra.weight: the config has no such tensor", NULL);
}

static void tensor_of_a_layer_past_the_last(void **state)
{
    (void)state;
    fx_add(&f, "layers.4.attn_norm.weight", "BF16", 1, 64, 0, 128);
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, SHARD, "layers.4.attn_norm.weight: the config has no such tensor", NULL);
}

static void compressor_of_a_layer_without_one(void **state)
{
    (void)state;
    fx_add(&f, "layers.2.attn.compressor.wgate.weight", "BF16", 2, 32, 64, 4096); /* ratio 1 has no gate */
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "layers.2.attn.compressor.wgate.weight: the config has no such tensor", NULL);
}

static void wrong_type(void **state)
{
    (void)state;
    snprintf(fx_find(&f, "layers.2.attn_norm.weight")->type, 16, "F16");
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, SHARD, "tensor layers.2.attn_norm.weight: expected BF16 [64], found F16 [64]", NULL);
}

static void packed_as_bytes(void **state)
{
    (void)state;
    snprintf(fx_find(&f, "layers.0.ffn.experts.0.w1.weight")->type, 16, "U8");
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "layers.0.ffn.experts.0.w1.weight: expected I8 [32,32], found U8 [32,32]", NULL);
}

static void wrong_shape(void **state)
{
    (void)state;
    fx_tensor *t = fx_find(&f, "layers.0.attn.wq_a.weight"); /* [32,64] */
    t->dim[0] = 64;
    t->dim[1] = 32;
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, SHARD, "layers.0.attn.wq_a.weight: expected F8_E4M3 [32,64], found F8_E4M3 [64,32]",
               NULL);
}

static void wrong_rank(void **state)
{
    (void)state;
    fx_tensor *t = fx_find(&f, "mtp.0.confidence_head.proj.weight"); /* [1,96] */
    t->rank = 1;
    t->dim[0] = 96;
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "expected BF16 [1,96], found BF16 [96]", NULL);
}

static void one_row_too_many(void **state)
{
    (void)state;
    fx_tensor *t = fx_find(&f, "layers.1.engram.embed.weight");
    t->data = realloc(t->data, t->bytes + 33);
    t->dim[0]++;
    t->bytes += 32;
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "layers.1.engram.embed.weight: expected F8_E4M3 [68,32], found F8_E4M3 [69,32]", NULL);
}

static void truncated_shard(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.cut = 1});
    fx_refused(&f, PL_EFORMAT, SHARD, "tensor ", "truncated", NULL);
}

static void bytes_after_the_data(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.extra = 8});
    fx_refused(&f, PL_EFORMAT, SHARD, "bytes of data after the header, found", NULL);
}

static void empty_shard(void **state)
{
    (void)state;
    fx_write(&f, NULL);
    fx_put(&f, SHARD, "", 0);
    fx_refused(&f, PL_EFORMAT, SHARD, "at least 8 bytes, found 0", NULL);
}

static void missing_shard(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.shard = "model-00002-of-00002.safetensors"});
    fx_refused(&f, PL_ENOTFOUND, "model-00002-of-00002.safetensors: No such file", NULL);
}

static void shard_outside(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.shard = "../" SHARD});
    fx_refused(&f, PL_EFORMAT, INDEX, "plain name", "\"../" SHARD "\"", NULL);
}

static void link_that_leaves(void **state)
{
    (void)state;
    char outside[64], *path = fx_path(&f, SHARD), *target;
    make_folder(outside);
    fx_write(&f, NULL);
    target = pl_path_join(outside, "x.safetensors");
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    fx_refused(&f, PL_EFORMAT, SHARD, "a link that leaves it", NULL);
    free(path);
    free(target);
    fx_remove_folder(outside);
}

static void shard_that_is_no_file(void **state)
{
    (void)state;
    char *path = fx_path(&f, SHARD);
    fx_write(&f, NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it would wait for ever */
    fx_refused(&f, PL_EIO, SHARD, "expected a regular file, found a named pipe", NULL);
    free(path);
}

static void index_lists_too_much(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.add = "layers.9.x"});
    fx_refused(&f, PL_EFORMAT, INDEX, "tensor layers.9.x: expected in ", "which does not hold it", NULL);
}

static void index_lists_too_little(void **state)
{
    (void)state;
    fx_write(&f, &(fx_layout){.drop = "norm.weight"});
    fx_refused(&f, PL_EFORMAT, SHARD, "tensor norm.weight", "expected no such tensor, found it here", NULL);
}

static void tensor_in_two_shards(void **state)
{
    (void)state;
    /* The index puts norm.weight in the second shard; the first holds it as well. */
    fx_write(&f, &(fx_layout){.drop = "norm.weight"});
    const char *header = "{\"norm.weight\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
    char shard[128] = {(char)strlen(header)};
    memcpy(shard + 8, header, strlen(header));
    fx_put(&f, "b.safetensors", shard, 8 + strlen(header));
    char *path = fx_path(&f, INDEX), *text = fx_read_text(path);
    pl_buf out;
    pl_buf_init(&out, 1 << 20, "index");
    text[strlen(text) - 2] = 0;
    assert_int_equal(pl_buf_addf(&out, NULL, "%s,\"norm.weight\":\"b.safetensors\"}}", text), PL_OK);
    fx_put(&f, INDEX, out.data, out.len);
    fx_refused(&f, PL_EFORMAT, "tensor norm.weight", "b.safetensors, found it here", NULL);
    pl_buf_free(&out);
    free(path);
    free(text);
}

static void nan_scale(void **state)
{
    (void)state;
    fx_find(&f, "layers.3.ffn.experts.1.w3.scale")->data[17] = 255;
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, SHARD, "tensor layers.3.ffn.experts.1.w3.scale", "found 255 (NaN) at byte 17", NULL);
}

static void nan_scale_of_engram(void **state)
{
    (void)state;
    fx_find(&f, "layers.1.engram.embed.scale")->data[67] = 255;
    fx_write(&f, NULL);
    fx_refused(&f, PL_EFORMAT, "layers.1.engram.embed.scale", "found 255 (NaN) at byte 67", NULL);
}

static void no_config(void **state)
{
    (void)state;
    char *path = fx_path(&f, "config.json");
    fx_write(&f, NULL);
    unlink(path);
    fx_refused(&f, PL_ENOTFOUND, "config.json: No such file", NULL);
    free(path);
}

static void no_weights(void **state)
{
    (void)state;
    fx_put(&f, "config.json", f.config, strlen(f.config));
    fx_refused(&f, PL_ENOTFOUND, "neither " INDEX " nor model.safetensors", NULL);
}

static void no_folder(void **state)
{
    (void)state;
    pl_error err;
    pl_checkpoint *checkpoint;
    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_open(&checkpoint, "/nonexistent", 1, NULL, NULL, &err));
}

static void empty_index(void **state)
{
    (void)state;
    fx_write(&f, NULL);
    fx_put(&f, INDEX, "{\"weight_map\":{}}", 17);
    fx_refused(&f, PL_EFORMAT, "tensor embed.weight", "found none", NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(missing_tensor),
        T(missing_scale),
        T(missing_head),
        T(unknown_tensor),
        T(tensor_of_a_layer_past_the_last),
        T(compressor_of_a_layer_without_one),
        T(wrong_type),
        T(packed_as_bytes),
        T(wrong_shape),
        T(wrong_rank),
        T(one_row_too_many),
        T(truncated_shard),
        T(bytes_after_the_data),
        T(empty_shard),
        T(missing_shard),
        T(shard_outside),
        T(link_that_leaves),
        T(shard_that_is_no_file),
        T(index_lists_too_much),
        T(index_lists_too_little),
        T(tensor_in_two_shards),
        T(nan_scale),
        T(nan_scale_of_engram),
        T(no_config),
        T(no_weights),
        T(no_folder),
        T(empty_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
