/* config.json: what is read, what is derived, and what contradicts what. */
#include "base/check.h"

#include "base/file.h"
#include "checkpoint/config.h"

#include <jansson.h>

static void load(pl_config *c, const char *path)
{
    pl_error err = {0};
    if (pl_config_load(c, path, &err) != PL_OK)
        fail_msg("%s", err.message);
}

static void release_config(void **state)
{
    (void)state;
    pl_config c;
    load(&c, "tests/vectors/release/config.json");
    assert_int_equal(c.vocab_size, 129280);
    assert_int_equal(c.hidden, 5120);
    assert_int_equal(c.layers, 40);
    assert_int_equal(c.experts, 384);
    assert_int_equal(c.stages, 3);
    assert_true(c.yarn && c.has_vision && c.norm_topk);
    assert_true(c.norm_eps == 1e-20f && c.hc_eps == 1e-6f && c.gate_temp == 1);
    assert_int_equal(c.image_token, 129264);
    assert_int_equal(c.candidate_layer, 20);
    /* model spec 1.1, derived ownership */
    for (int i = 0; i < 43; i++) {
        int kv = i < 2 || i > 39 ? -1 : i < 8 ? 2 : i < 14 ? 8 : i < 20 ? 14 : 20;
        int index = kv < 20 ? kv : i < 24 ? 20 : i < 28 ? 24 : i < 32 ? 28 : i < 36 ? 32 : 36;
        assert_int_equal(c.kv_owner[i], kv);
        assert_int_equal(c.index_owner[i], index);
        assert_int_equal(pl_config_owns_kv(&c, i), kv == i);
        assert_int_equal(pl_config_owns_index(&c, i), index == i);
        assert_int_equal(pl_config_engram_at(&c, i), i == 1 ? 0 : i == 14 ? 1 : -1);
    }
}

static void engram_primes(void **state)
{
    (void)state;
    /* model spec 3.6 */
    static const uint32_t last[2][24] = {{57,  79,  81,  97,  121, 129, 133, 183, 189, 207, 211, 253,
                                          277, 289, 307, 321, 339, 381, 393, 399, 403, 409, 447, 463},
                                         {477, 487, 499, 507, 511, 573, 609, 627, 667, 669, 693, 697,
                                          711, 729, 759, 769, 781, 799, 813, 819, 841, 877, 879, 889}};
    pl_config c;
    load(&c, "tests/vectors/release/config.json");
    for (int layer = 0; layer < 2; layer++) {
        uint32_t prime[24];
        pl_config_engram_primes(&c, layer, prime);
        for (int i = 0; i < 24; i++)
            assert_int_equal(prime[i], 16000000 + last[layer][i]);
    }
}

static void small_configs(void **state)
{
    (void)state;
    pl_config c;
    load(&c, "tests/vectors/tiny-a/model/config.json");
    assert_int_equal(c.stages, 2);
    assert_int_equal(c.engram_rows[1], 864);
    assert_false(c.has_vision);
    load(&c, "models/nano/config.json"); /* spells rope_scaling's key "type" */
    assert_true(c.yarn && c.yarn_original == 512);
    assert_int_equal(c.noise_token, 8136);
    load(&c, "tests/checkpoint/small.json");
    assert_int_equal(c.kv_owner[3], 2);
    assert_int_equal(c.index_owner[3], 3);
}

/* Put the JSON value (NULL: nothing) at a path of keys, "text_config/rope_scaling/factor". */
static void put(json_t *root, const char *path, const char *value)
{
    char part[128];
    snprintf(part, sizeof part, "%s", path);
    char *key = part;
    for (char *slash; (slash = strchr(key, '/')); key = slash + 1) {
        *slash = 0;
        root = json_object_get(root, key);
        assert_non_null(root);
    }
    if (!value)
        assert_int_equal(json_object_del(root, key), 0);
    else
        assert_int_equal(json_object_set_new(root, key, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
}

static pl_status parse_edited(pl_config *c, const char *const edits[4], pl_error *err)
{
    json_t *root = json_load_file("tests/checkpoint/small.json", 0, NULL);
    assert_non_null(root);
    for (int i = 0; i < 4 && edits[i]; i += 2)
        put(root, edits[i], strcmp(edits[i + 1], "absent") == 0 ? NULL : edits[i + 1]);
    char *text = json_dumps(root, 0);
    pl_status status = pl_config_parse(c, text, strlen(text), "small.json", err);
    free(text);
    json_decref(root);
    return status;
}

#define T "text_config/"
static const struct {
    const char *edits[4]; /* path, value, path, value */
    const char *param, *message;
} contradictions[] = {
    {{"model_type", "\"deepseek_v4\""}, "model_type", "expected \"deepseek_v41\", found \"deepseek_v4\""},
    {{"model_type", "absent"}, "model_type", "found nothing"},
    {{"text_config", "[]"}, "text_config", "expected an object"},
    {{T "model_type", "\"x\""}, "text_config.model_type", "deepseek_v41_text"},
    {{T "hidden_size", "\"64\""}, "text_config.hidden_size", "found \"64\""},
    {{T "hidden_size", "64.0"}, "text_config.hidden_size", "expected an integer"},
    {{T "hidden_size", "1000000000"}, "text_config.hidden_size", "65536"},
    {{T "hidden_size", "72"}, "text_config.hidden_size", "a multiple of 32"},
    {{T "hidden_size", "-64"}, "text_config.hidden_size", "found -64"},
    {{T "vocab_size", "absent"}, "text_config.vocab_size", "found nothing"},
    {{T "num_hidden_layers", "513"}, "text_config.num_hidden_layers", "512"},
    {{T "num_hidden_layers", "5"}, "text_config.compress_ratios", "expected 6 entries"},
    {{T "num_attention_heads", "3"}, "text_config.num_attention_heads", "a multiple of 2 (o_groups), found 3"},
    {{T "head_dim", "48"}, "text_config.head_dim", "a multiple of 32"},
    {{T "qk_rope_head_dim", "34"}, "text_config.qk_rope_head_dim", "at most head_dim (32)"},
    {{T "qk_rope_head_dim", "15"}, "text_config.qk_rope_head_dim", "a multiple of 2"},
    {{T "qk_rope_head_dim", "48", T "head_dim", "64"}, "text_config.index_head_dim", "at least qk_rope_head_dim (48)"},
    {{T "q_lora_rank", "40"}, "text_config.q_lora_rank", "a multiple of 32"},
    {{T "o_lora_rank", "24"}, "text_config.o_groups x o_lora_rank", "a multiple of 32"},
    {{T "num_attention_heads", "4096", T "head_dim", "4096"}, NULL, NULL}, /* 2^24: allowed */
    {{T "sliding_window", "0"}, "text_config.sliding_window", "from 1"},
    {{T "moe_intermediate_size", "48"}, "text_config.moe_intermediate_size", "a multiple of 32"},
    {{T "num_experts_per_tok", "3"}, "text_config.num_experts_per_tok", "at most n_routed_experts (2)"},
    {{T "n_shared_experts", "2"}, "text_config.n_shared_experts", "found 2"},
    {{T "n_routed_experts", "0"}, "text_config.n_routed_experts", "found 0"},
    {{T "num_key_value_heads", "2"}, "text_config.num_key_value_heads", "found 2"},
    {{T "scoring_func", "\"sigmoid\""}, "text_config.scoring_func", "sqrtsoftplus"},
    {{T "attention_bias", "true"}, "text_config.attention_bias", "expected false"},
    {{T "tie_word_embeddings", "true"}, "text_config.tie_word_embeddings", "expected false"},
    {{T "norm_topk_prob", "1"}, "text_config.norm_topk_prob", "true or false"},
    {{T "hc_mult", "9"}, "text_config.hc_mult", "8"},
    {{T "rms_norm_eps", "\"x\""}, "text_config.rms_norm_eps", "a number"},
    {{T "rope_theta", "0"}, "text_config.rope_theta", "a number"},
    {{T "rope_scaling/rope_type", "\"linear\""}, "text_config.rope_scaling.rope_type", "\"yarn\""},
    {{T "rope_scaling/rope_type", "absent"}, "text_config.rope_scaling.type", "found nothing"},
    {{T "rope_scaling/type", "\"linear\""}, "text_config.rope_scaling.type", "\"yarn\""},
    {{T "rope_scaling/beta_slow", "64"}, "text_config.rope_scaling.beta_fast", "at least beta_slow"},
    {{T "rope_scaling", "absent", T "rope_parameters", "{}"}, "text_config.rope_parameters", "rope_scaling instead"},
    {{T "rope_scaling", "null"}, NULL, NULL},
    {{T "compress_ratios", "[0,2,1,4,0]"}, "text_config.compress_ratios", "from 0 to 2, found 4"},
    {{T "compress_ratios", "[0,2,1,1]"},
     "text_config.compress_ratios",
     "expected 5 entries (4 layers and 1 draft stages)"},
    {{T "compress_ratios", "[0,2,1,1,1]"}, "text_config.compress_ratios", "0 for draft stage 0"},
    {{T "compress_ratios", "[0,2,1,2,0]"}, "text_config.compress_ratios", "expected 1 at layer 3"},
    {{T "compress_ratios", "[2,2,1,1,0]"}, "text_config.kv_source_layer_ids", "at or before layer 0"},
    {{T "compress_ratios", "[0,0,1,1,0]"}, "text_config.kv_source_layer_ids", "found 1"},
    {{T "kv_source_layer_ids", "[2,1]"}, "text_config.kv_source_layer_ids", "a layer after 2"},
    {{T "kv_source_layer_ids", "[1,2,4]"}, "text_config.kv_source_layer_ids", "below num_hidden_layers (4)"},
    {{T "kv_source_layer_ids", "[]"}, "text_config.kv_source_layer_ids", "at or before layer 1"},
    {{T "index_source_layer_ids", "[1,3]"}, "text_config.index_source_layer_ids", "from layer 2 to layer 2"},
    {{T "index_source_layer_ids", "[0,1,2,3]"}, "text_config.index_source_layer_ids", "found 0"},
    {{T "index_head_dim", "48"}, "text_config.index_head_dim", "a multiple of 32"},
    {{T "index_topk", "0"}, "text_config.index_topk", "found 0"},
    {{T "index_n_heads", "absent"}, "text_config.index_n_heads", "found nothing"},
    {{T "candidate_source_layer_id", "0"}, "text_config.candidate_source_layer_id", "one of index_source_layer_ids"},
    {{T "candidate_source_layer_id", "1"}, "text_config.candidate_source_layer_id", "layer 2 reads too"},
    {{T "candidate_source_layer_id", "null"}, NULL, NULL},
    {{T "candidate_block_size", "1048576", T "candidate_topk_blocks", "1048576"},
     "text_config.candidate_topk_blocks x candidate_block_size",
     "at most"},
    {{T "engram_layer_ids", "[4]"}, "text_config.engram_layer_ids", "below num_hidden_layers"},
    {{T "engram_layer_ids", "[0,1]"}, "text_config.engram_num_embeddings", "expected 2 entries"},
    {{T "engram_num_embeddings", "[70]"}, "text_config.engram_num_embeddings", "expected 68 for layer 1"},
    {{T "engram_vocab_size", "32"}, "text_config.engram_num_embeddings", "expected 78 for layer 1"},
    {{T "engram_head_dim", "40"}, "text_config.engram_head_dim", "a multiple of 32"},
    {{T "engram_pad_token_id", "320"}, "text_config.engram_pad_token_id", "below vocab_size (320)"},
    {{T "engram_compressed_vocab_size", "321"}, "text_config.engram_compressed_vocab_size", "at most vocab_size"},
    {{T "engram_max_ngram_size", "9"}, "text_config.engram_max_ngram_size", "from 2 to 8"},
    {{T "engram_layer_ids", "[]", T "engram_num_embeddings", "[]"}, NULL, NULL},
    {{T "dspark_target_layer_ids", "[]"}, "text_config.dspark_target_layer_ids", "at least one layer"},
    {{T "dspark_target_layer_ids", "[3,2]"}, "text_config.dspark_target_layer_ids", "a layer after 3"},
    {{T "dspark_target_layer_ids", "[2,4]"}, "text_config.dspark_target_layer_ids", "below num_hidden_layers"},
    {{T "dspark_noise_token_id", "320"}, "text_config.dspark_noise_token_id", "below vocab_size"},
    {{T "dspark_block_size", "17"}, "text_config.dspark_block_size", "from 1 to 16"},
    {{T "dspark_num_experts_per_tok", "3"},
     "text_config.dspark_num_experts_per_tok",
     "at most dspark_n_routed_experts"},
    {{T "num_nextn_predict_layers", "0", T "compress_ratios", "[0,2,1,1]"}, NULL, NULL},
    {{"bos_token_id", "320"}, "bos_token_id", "below text_config.vocab_size (320), found 320"},
    {{"eos_token_id", "-1"}, "eos_token_id", "from 0"},
    {{"pad_token_id", "absent", "image_token_id", "absent"}, NULL, NULL},
    {{"image_token_id", "999"}, "image_token_id", "found 999"},
    {{"quantization_config", "absent"}, "quantization_config", "expected an object"},
    {{"quantization_config/quant_method", "\"gptq\""}, "quantization_config.quant_method", "\"fp8\""},
    {{"quantization_config/weight_block_size", "[128,128]"}, "quantization_config.weight_block_size", "[32,32]"},
    {{"quantization_config/expert_dtype", "\"fp8\""}, "quantization_config.expert_dtype", "\"fp4\""},
    {{"vision_config", "{}"}, "vision_config.num_hidden_layers", "found nothing"},
    {{T "n_routed_experts", "8192", T "num_hidden_layers", "500"}, "text_config.compress_ratios", "501"},
};

static void contradicting_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        pl_config c;
        pl_error err = {0};
        pl_status status = parse_edited(&c, contradictions[i].edits, &err);
        const char *param = contradictions[i].param;
        if (!param && status == PL_OK)
            continue;
        if (!param || status != PL_EFORMAT || strcmp(err.param, param) != 0 ||
            !strstr(err.message, contradictions[i].message) || !strstr(err.message, "small.json"))
            fail_msg("%s = %s: status %d, parameter \"%s\": %s", contradictions[i].edits[0], contradictions[i].edits[1],
                     (int)status, err.param, err.message);
    }
}

static void too_many_tensors(void **state)
{
    (void)state;
    json_t *root = json_load_file("tests/checkpoint/small.json", 0, NULL);
    json_t *ratios = json_array();
    for (int i = 0; i < 300; i++)
        json_array_append_new(ratios, json_integer(0));
    put(root, T "num_hidden_layers", "299");
    put(root, T "n_routed_experts", "8192");
    put(root, T "kv_source_layer_ids", "[]");
    put(root, T "index_source_layer_ids", "[]");
    put(root, T "candidate_source_layer_id", "null");
    json_object_set_new(json_object_get(root, "text_config"), "compress_ratios", ratios);
    char *text = json_dumps(root, 0);
    pl_config c;
    pl_error err;
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, text, strlen(text), "big", &err));
    assert_string_equal(err.param, "text_config.n_routed_experts");
    free(text);
    json_decref(root);
}

static void broken_text(void **state)
{
    (void)state;
    pl_config c;
    pl_error err;
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, "", 0, "x", &err));
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, NULL, 0, "x", &err));
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, "[]", 2, "x", &err));
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, "{\"a\":1,\"a\":2}", 13, "x", &err));
    assert_fails(PL_EFORMAT, &err, pl_config_parse(&c, "{\"a\":123456789012345678901234567890}", 36, "x", &err));
    assert_fails(PL_ELIMIT, &err, pl_config_parse(&c, "{}", PL_MAX_CONFIG_BYTES + 1, "x", &err));
    assert_fails(PL_ENOTFOUND, &err, pl_config_load(&c, "/nonexistent/config.json", &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(release_config),       cmocka_unit_test(engram_primes),    cmocka_unit_test(small_configs),
        cmocka_unit_test(contradicting_fields), cmocka_unit_test(too_many_tensors), cmocka_unit_test(broken_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
