/* What an open checkpoint gives. */
#include "checkpoint/fixture.h"

#include "checkpoint/inventory.h"

#include <sys/stat.h>

static void both_in_the_repository(void **state)
{
    (void)state;
    static const struct {
        const char *dir;
        size_t shards, tensors;
        uint64_t bytes;
    } known[] = {{"models/nano", 2, 1542, 29993516}, {"tests/vectors/tiny-a/model", 3, 939, 4097108}};
    for (size_t i = 0; i < 2; i++) {
        pl_checkpoint_info info;
        pl_checkpoint *c = fx_open(known[i].dir);
        pl_checkpoint_info_get(c, &info);
        assert_int_equal(info.shards, known[i].shards);
        assert_int_equal(info.tensors, known[i].tensors);
        assert_int_equal(info.bytes, known[i].bytes);
        assert_true(info.mapped > info.bytes);
        assert_string_equal(pl_checkpoint_dir(c), known[i].dir);
        pl_checkpoint_close(c);
    }
    pl_checkpoint_close(NULL);
}

static void tensors_and_matrices(void **state)
{
    (void)state;
    pl_error err;
    pl_tensor t;
    pl_mat m;
    pl_checkpoint *c = fx_open("models/nano");
    assert_int_equal(pl_checkpoint_tensor(c, "embed.weight", &t, &err), PL_OK);
    assert_int_equal(t.dtype, PL_BF16);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dim[0], 8192);
    assert_int_equal(t.bytes, 8192 * 256 * 2);

    assert_int_equal(pl_checkpoint_mat(c, "layers.3.ffn.experts.15.w2", &m, &err), PL_OK);
    assert_true(m.format == PL_FMT_FP4 && m.out == 256 && m.in == 128 && m.scale && !m.wide);
    assert_int_equal(pl_checkpoint_tensor(c, "layers.3.ffn.experts.15.w2.scale", &t, &err), PL_OK);
    assert_ptr_equal(t.data, m.scale);
    assert_int_equal(pl_checkpoint_mat(c, "layers.0.attn.wq_b", &m, &err), PL_OK);
    assert_true(m.format == PL_FMT_FP8 && m.out == 512 && m.in == 128 && m.scale);
    assert_int_equal(pl_checkpoint_mat(c, "head", &m, &err), PL_OK);
    assert_true(m.format == PL_FMT_BF16 && m.out == 8192 && m.in == 256 && !m.scale);
    assert_int_equal(pl_checkpoint_mat(c, "layers.0.hc_attn_fn", &m, &err), PL_OK);
    assert_true(m.format == PL_FMT_F32 && m.out == 24 && m.in == 1024);
    assert_int_equal(pl_checkpoint_mat(c, "layers.0.attn_norm", &m, &err), PL_OK);
    assert_true(m.format == PL_FMT_BF16 && m.out == 1 && m.in == 256);

    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_mat(c, "layers.10.attn.wq_b", &m, &err));
    assert_string_equal(err.param, "layers.10.attn.wq_b");
    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_tensor(c, "head", &t, &err));
    assert_fails(PL_EINVAL, &err, pl_checkpoint_mat(c, "layers.1.engram.embed", &m, &err));
    assert_fails(PL_EINVAL, &err, pl_checkpoint_mat(c, "layers.0.attn.wq_b.scale", &m, &err));
    char name[600];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_mat(c, name, &m, &err));
    pl_checkpoint_close(c);
}

static pl_status is_there(void *arg, const pl_item *item, pl_error *err)
{
    pl_tensor t;
    PL_TRY(pl_checkpoint_tensor(arg, item->name, &t, err));
    assert_int_equal(t.bytes, item->bytes);
    assert_int_equal((uintptr_t)t.data % (uintptr_t)pl_dtype_size(t.dtype), 0);
    return PL_OK;
}

static void every_tensor_is_found(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_checkpoint *c = fx_open("models/nano");
    assert_int_equal(pl_inventory_each(pl_checkpoint_config(c), is_there, c, &err), PL_OK);
    pl_checkpoint_close(c);
}

static void single_file(void **state)
{
    (void)state;
    fx f;
    fx_small(&f);
    fx_write(&f, &(fx_layout){.single = true});
    pl_checkpoint *c = fx_open(f.dir);
    pl_checkpoint_info info;
    pl_checkpoint_info_get(c, &info);
    assert_int_equal(info.shards, 1);
    assert_int_equal(info.tensors, f.tensors);
    pl_checkpoint_close(c);
    fx_free(&f);
}

/* Tensors that the model never reads may be missing, or be there in any type and shape. */
static void unused_tensors(void **state)
{
    (void)state;
    fx f;
    fx_small(&f);
    fx_drop(&f, "layers.0.ffn.gate.bias_vl");
    fx_drop(&f, "mtp.0.ffn.gate.bias_vl");
    fx_add(&f, "mtp.0.embed.weight", "F16", 2, 3, 4, 24);
    fx_add(&f, "mtp.0.head.weight", "F64", 1, 2, 0, 16);
    fx_add(&f, "vision.norm.weight", "F32", 1, 2, 0, 8);
    fx_add(&f, "aligner.x", "I64", 1, 1, 0, 8);
    fx_add(&f, "image_end", "BF16", 1, 64, 0, 128);
    fx_write(&f, NULL);
    pl_checkpoint *c = fx_open(f.dir);
    pl_error err;
    pl_tensor t;
    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_tensor(c, "mtp.0.embed.weight", &t, &err));
    assert_fails(PL_ENOTFOUND, &err, pl_checkpoint_tensor(c, "layers.0.ffn.gate.bias_vl", &t, &err));
    assert_int_equal(pl_checkpoint_tensor(c, "layers.1.ffn.gate.bias_vl", &t, &err), PL_OK);
    pl_tally tally;
    pl_tally_checkpoint(c, &tally);
    assert_int_equal(tally.tensors[PL_PART_UNUSED], 5);
    assert_int_equal(tally.bytes[PL_PART_UNUSED], 24 + 16 + 8 + 8 + 128);
    assert_int_equal(tally.total_tensors, f.tensors);
    pl_checkpoint_close(c);
    fx_free(&f);
}

/* A header whose length is no multiple of 8 is legal: values that kernels load as such are copied, bytes are not. */
static void unaligned_shard(void **state)
{
    (void)state;
    fx f;
    fx_small(&f);
    fx_write(&f, &(fx_layout){.unaligned = true});
    pl_checkpoint *c = fx_open(f.dir);
    for (size_t i = 0; i < f.tensors; i++) {
        pl_tensor t;
        pl_error err = {0};
        assert_int_equal(pl_checkpoint_tensor(c, f.tensor[i].name, &t, &err), PL_OK);
        assert_int_equal((uintptr_t)t.data % (uintptr_t)pl_dtype_size(t.dtype), 0);
        assert_memory_equal(t.data, f.tensor[i].data, t.bytes);
    }
    pl_checkpoint_info info;
    pl_checkpoint_info_get(c, &info);
    assert_in_range(info.heap, info.bytes / 4, info.bytes);
    pl_checkpoint_close(c);
    fx_free(&f);
}

/* snapshots/REVISION/SHARD -> ../../blobs/HASH, as the Hugging Face tools keep downloads. */
static void download_cache(void **state)
{
    (void)state;
    fx f;
    char root[64], dir[128], path[256], target[256];
    fx_small(&f);
    fx_write(&f, NULL);
    make_folder(root);
    snprintf(path, sizeof path, "%s/blobs", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/snapshots", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(dir, sizeof dir, "%s/snapshots/abc", root);
    assert_int_equal(mkdir(dir, 0700), 0);
    static const char *const names[] = {"config.json", "model.safetensors.index.json",
                                        "model-00001-of-00001.safetensors"};
    for (int i = 0; i < 3; i++) {
        char *from = fx_path(&f, names[i]);
        snprintf(target, sizeof target, "%s/blobs/%d", root, i);
        assert_int_equal(rename(from, target), 0);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        snprintf(target, sizeof target, "../../blobs/%d", i);
        assert_int_equal(symlink(target, path), 0);
        free(from);
    }
    pl_checkpoint_close(fx_open(dir));
    fx_remove_folder(dir);
    snprintf(path, sizeof path, "%s/blobs", root);
    fx_remove_folder(path);
    snprintf(path, sizeof path, "%s/snapshots", root);
    rmdir(path);
    rmdir(root);
    fx_free(&f);
}

static void table_bytes_are_foretold(void **state)
{
    (void)state;
    pl_checkpoint_info info;
    pl_checkpoint *c = fx_open("models/nano");
    pl_checkpoint_info_get(c, &info);
    assert_int_equal(info.heap, pl_checkpoint_table_bytes(pl_checkpoint_config(c)));
    pl_checkpoint_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_in_the_repository), cmocka_unit_test(tensors_and_matrices),
        cmocka_unit_test(every_tensor_is_found),  cmocka_unit_test(single_file),
        cmocka_unit_test(unused_tensors),         cmocka_unit_test(unaligned_shard),
        cmocka_unit_test(download_cache),         cmocka_unit_test(table_bytes_are_foretold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
