/* config.json -> pl_config: reading the fields. What they may say together is checked in config_check.c. */
#include "checkpoint/config.h"

#include "base/file.h"
#include "checkpoint/config_check.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const json_t *object;
    const char *prefix; /* "text_config." or "" */
    const char *where;
    pl_error *err;
} reader;

/* An integer or number field that lands in a field of pl_config. */
typedef struct int_field {
    const char *key;
    size_t at; /* offset of the int in pl_config */
    int min, max;
} int_field;

/* The value in one short line of plain text, for messages. */
static void describe(const json_t *value, char out[64])
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    snprintf(out, 64, "%.60s", text ? text : value ? "(too deep)" : "nothing");
    if (text && strlen(text) > 60)
        memcpy(out + 57, "...", 4);
    free(text);
}

static pl_status bad(const reader *r, const char *key, const char *expected, const json_t *found)
{
    char param[128], text[64];
    snprintf(param, sizeof param, "%s%s", r->prefix, key);
    describe(found, text);
    return pl_fail_param(r->err, PL_EFORMAT, param, "%s: %s: expected %s, found %s", r->where, param, expected, text);
}

static const json_t *field(const reader *r, const char *key)
{
    const json_t *value = json_object_get(r->object, key);
    return json_is_null(value) ? NULL : value;
}

static pl_status read_long(const reader *r, const char *key, int64_t min, int64_t max, int64_t *out)
{
    const json_t *value = field(r, key);
    if (json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max) {
        *out = json_integer_value(value);
        return PL_OK;
    }
    char expected[80];
    snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)min, (long long)max);
    return bad(r, key, expected, value);
}

static pl_status read_int(const reader *r, const char *key, int min, int max, int *out)
{
    int64_t value = 0;
    PL_TRY(read_long(r, key, min, max, &value));
    *out = (int)value;
    return PL_OK;
}

static pl_status read_ints(const reader *r, pl_config *config, const int_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        PL_TRY(read_int(r, fields[i].key, fields[i].min, fields[i].max, (int *)((char *)config + fields[i].at)));
    return PL_OK;
}

/* A number in [min, max]. */
static pl_status read_number(const reader *r, const char *key, double min, double max, double *out)
{
    const json_t *value = field(r, key);
    double number = json_number_value(value);
    if (json_is_number(value) && isfinite(number) && number >= min && number <= max) {
        *out = number;
        return PL_OK;
    }
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    return bad(r, key, expected, value);
}

static pl_status read_float(const reader *r, const char *key, double min, double max, float *out)
{
    double number = 0;
    PL_TRY(read_number(r, key, min, max, &number));
    *out = (float)number;
    return PL_OK;
}

/* A list of at most max integers in [0, top]; absent counts as empty. *n tells how many. */
static pl_status read_list(const reader *r, const char *key, int max, int64_t top, int64_t *out, int *n)
{
    *n = 0;
    const json_t *list = field(r, key);
    if (!list)
        return PL_OK;
    char expected[96];
    snprintf(expected, sizeof expected, "a list of at most %d integers from 0 to %lld", max, (long long)top);
    if (!json_is_array(list) || json_array_size(list) > (size_t)max)
        return bad(r, key, expected, list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 || json_integer_value(item) > top)
            return bad(r, key, expected, item);
        out[(*n)++] = json_integer_value(item);
    }
    return PL_OK;
}

/* A field that has one legal text. When `required` is false it may be absent. */
static pl_status must_be(const reader *r, const char *key, const char *text, bool required)
{
    const json_t *value = field(r, key);
    if (!value && !required)
        return PL_OK;
    if (json_is_string(value) && strcmp(json_string_value(value), text) == 0)
        return PL_OK;
    char expected[80];
    snprintf(expected, sizeof expected, "\"%s\"", text);
    return bad(r, key, expected, value);
}

static pl_status must_be_false(const reader *r, const char *key)
{
    const json_t *value = field(r, key);
    return !value || json_is_false(value) ? PL_OK : bad(r, key, "false", value);
}

/* A token id of the root object, -1 when it is absent. The vocabulary's size is checked later. */
static pl_status read_id(const reader *r, const char *key, int *out)
{
    *out = -1;
    return field(r, key) ? read_int(r, key, 0, INT_MAX, out) : PL_OK;
}

static pl_status read_object(const reader *r, const char *key, bool required, const json_t **out)
{
    *out = field(r, key);
    if (json_is_object(*out) || (!*out && !required))
        return PL_OK;
    return bad(r, key, "an object", *out);
}

static pl_status read_quantization(const reader *root)
{
    const json_t *object;
    PL_TRY(read_object(root, "quantization_config", true, &object));
    reader r = *root;
    r.object = object;
    r.prefix = "quantization_config.";
    PL_TRY(must_be(&r, "quant_method", "fp8", true));
    PL_TRY(must_be(&r, "activation_scheme", "dynamic", false));
    PL_TRY(must_be(&r, "scale_fmt", "ue8m0", false));
    PL_TRY(must_be(&r, "expert_dtype", "fp4", false));
    PL_TRY(must_be(&r, "fmt", "e4m3", false));
    const json_t *block = field(&r, "weight_block_size");
    if (!json_is_array(block) || json_array_size(block) != 2 || json_integer_value(json_array_get(block, 0)) != 32 ||
        json_integer_value(json_array_get(block, 1)) != 32)
        return bad(&r, "weight_block_size", "[32,32]", block);
    return PL_OK;
}

static pl_status read_vision(const reader *root, pl_config *config)
{
    static const int_field fields[] = {
        {"num_hidden_layers", offsetof(pl_config, vision_layers), 1, PL_MAX_LAYERS},
        {"hidden_size", offsetof(pl_config, vision_hidden), 1, PL_MAX_HIDDEN},
        {"intermediate_size", offsetof(pl_config, vision_inter), 1, 1 << 17},
        {"patch_size", offsetof(pl_config, vision_patch), 1, 1024},
        {"downsample_ratio", offsetof(pl_config, vision_downsample), 1, 64},
    };
    const json_t *object;
    PL_TRY(read_object(root, "vision_config", false, &object));
    config->has_vision = object != NULL;
    if (!object)
        return PL_OK;
    reader r = *root;
    r.object = object;
    r.prefix = "vision_config.";
    return read_ints(&r, config, fields, sizeof fields / sizeof *fields);
}

static pl_status read_rope(const reader *text, pl_config *config)
{
    PL_TRY(read_number(text, "rope_theta", 1, 1e12, &config->rope_theta));
    config->compress_rope_theta = config->rope_theta;
    if (field(text, "compress_rope_theta"))
        PL_TRY(read_number(text, "compress_rope_theta", 1, 1e12, &config->compress_rope_theta));
    const json_t *object;
    PL_TRY(read_object(text, "rope_scaling", false, &object));
    /* A newer spelling that we do not know must not silently switch YaRN off. */
    if (!object && field(text, "rope_parameters"))
        return bad(text, "rope_parameters", "rope_theta and rope_scaling instead", field(text, "rope_parameters"));
    if (!object)
        return PL_OK;
    reader r = *text;
    r.object = object;
    r.prefix = "text_config.rope_scaling.";
    PL_TRY(must_be(&r, "type", "yarn", !field(&r, "rope_type")));
    PL_TRY(must_be(&r, "rope_type", "yarn", false));
    config->yarn = true;
    PL_TRY(read_number(&r, "factor", 1, 1e6, &config->yarn_factor));
    PL_TRY(read_number(&r, "beta_fast", 1e-6, 1e6, &config->yarn_beta_fast));
    PL_TRY(read_number(&r, "beta_slow", 1e-6, 1e6, &config->yarn_beta_slow));
    return read_int(&r, "original_max_position_embeddings", 1, 1 << 26, &config->yarn_original);
}

static pl_status read_shapes(const reader *r, pl_config *config)
{
    static const int_field fields[] = {
        {"vocab_size", offsetof(pl_config, vocab_size), 4, 1 << 22},
        {"hidden_size", offsetof(pl_config, hidden), 32, PL_MAX_HIDDEN},
        {"num_hidden_layers", offsetof(pl_config, layers), 1, PL_MAX_LAYERS},
        {"num_attention_heads", offsetof(pl_config, heads), 1, 4096},
        {"head_dim", offsetof(pl_config, head_dim), 32, 4096},
        {"qk_rope_head_dim", offsetof(pl_config, rope_dim), 2, 4096},
        {"q_lora_rank", offsetof(pl_config, q_lora), 32, 65536},
        {"o_groups", offsetof(pl_config, o_groups), 1, 4096},
        {"o_lora_rank", offsetof(pl_config, o_lora), 1, 65536},
        {"sliding_window", offsetof(pl_config, window), 1, 65536},
        {"max_position_embeddings", offsetof(pl_config, max_positions), 1, 1 << 26},
        {"moe_intermediate_size", offsetof(pl_config, moe_inter), 32, 1 << 17},
        {"n_routed_experts", offsetof(pl_config, experts), 1, 8192},
        {"num_experts_per_tok", offsetof(pl_config, experts_per_tok), 1, 256},
        {"n_shared_experts", offsetof(pl_config, shared_experts), 1, 1},
        {"hc_mult", offsetof(pl_config, hc_mult), 1, PL_MAX_STREAMS},
        {"hc_sinkhorn_iters", offsetof(pl_config, hc_iters), 1, 1000},
    };
    PL_TRY(must_be(r, "model_type", "deepseek_v41_text", true));
    PL_TRY(read_ints(r, config, fields, sizeof fields / sizeof *fields));
    int one = 1;
    if (field(r, "num_key_value_heads"))
        PL_TRY(read_int(r, "num_key_value_heads", 1, 1, &one));
    PL_TRY(must_be(r, "scoring_func", "sqrtsoftplus", true));
    PL_TRY(must_be(r, "topk_method", "noaux_tc", false));
    PL_TRY(must_be(r, "hidden_act", "silu", false));
    PL_TRY(must_be_false(r, "attention_bias"));
    PL_TRY(must_be_false(r, "tie_word_embeddings"));
    const json_t *norm = field(r, "norm_topk_prob");
    if (!json_is_boolean(norm))
        return bad(r, "norm_topk_prob", "true or false", norm);
    config->norm_topk = json_is_true(norm);
    PL_TRY(read_float(r, "rms_norm_eps", 0, 1, &config->norm_eps));
    PL_TRY(read_float(r, "hc_eps", 0, 1, &config->hc_eps));
    PL_TRY(read_float(r, "routed_scaling_factor", 1e-6, 1e6, &config->route_scale));
    PL_TRY(read_float(r, "swiglu_limit", 1e-6, 1e6, &config->swiglu_limit));
    config->gate_temp = 1;
    return field(r, "gate_temp") ? read_float(r, "gate_temp", 1e-6, 1e6, &config->gate_temp) : PL_OK;
}

/* compress_ratios, the owners and, when some layer compresses, the indexer. */
static pl_status read_compression(const reader *r, pl_config *config, pl__config_lists *lists)
{
    static const int_field index_fields[] = {
        {"index_n_heads", offsetof(pl_config, index_heads), 1, 1024},
        {"index_head_dim", offsetof(pl_config, index_dim), 32, 4096},
        {"index_topk", offsetof(pl_config, index_topk), 1, 1 << 20},
    };
    static const int_field candidate_fields[] = {
        {"candidate_topk_blocks", offsetof(pl_config, candidate_blocks), 1, 1 << 20},
        {"candidate_block_size", offsetof(pl_config, candidate_block), 1, 1 << 20},
    };
    PL_TRY(read_list(r, "compress_ratios", PL_MAX_LAYERS, 2, lists->ratio, &lists->ratios));
    PL_TRY(read_list(r, "kv_source_layer_ids", PL_MAX_LAYERS, PL_MAX_LAYERS, lists->kv, &lists->kvs));
    PL_TRY(read_list(r, "index_source_layer_ids", PL_MAX_LAYERS, PL_MAX_LAYERS, lists->index, &lists->indexes));
    bool any = lists->kvs > 0;
    for (int i = 0; i < lists->ratios; i++)
        any = any || lists->ratio[i];
    if (any)
        PL_TRY(read_ints(r, config, index_fields, sizeof index_fields / sizeof *index_fields));
    config->candidate_layer = -1;
    if (!field(r, "candidate_source_layer_id"))
        return PL_OK;
    PL_TRY(read_int(r, "candidate_source_layer_id", 0, PL_MAX_LAYERS, &config->candidate_layer));
    return read_ints(r, config, candidate_fields, sizeof candidate_fields / sizeof *candidate_fields);
}

static pl_status read_engram(const reader *r, pl_config *config, pl__config_lists *lists)
{
    static const int_field fields[] = {
        {"engram_max_ngram_size", offsetof(pl_config, engram_ngram), 2, PL_MAX_NGRAM},
        {"engram_n_heads", offsetof(pl_config, engram_heads), 1, PL_MAX_ENGRAM_HEADS},
        {"engram_head_dim", offsetof(pl_config, engram_dim), 32, 4096},
        {"engram_pad_token_id", offsetof(pl_config, engram_pad), 0, INT_MAX},
        {"engram_compressed_vocab_size", offsetof(pl_config, engram_classes), 1, INT_MAX},
    };
    int64_t layer[PL_MAX_ENGRAMS];
    PL_TRY(read_list(r, "engram_layer_ids", PL_MAX_ENGRAMS, PL_MAX_LAYERS, layer, &config->engrams));
    PL_TRY(read_list(r, "engram_num_embeddings", PL_MAX_ENGRAMS, INT_MAX, config->engram_rows, &lists->engram_rows));
    for (int i = 0; i < config->engrams; i++)
        config->engram_layer[i] = (int)layer[i];
    if (!config->engrams)
        return PL_OK;
    PL_TRY(read_ints(r, config, fields, sizeof fields / sizeof *fields));
    return read_long(r, "engram_vocab_size", 2, 1 << 30, &config->engram_vocab);
}

static pl_status read_drafter(const reader *r, pl_config *config)
{
    static const int_field fields[] = {
        {"dspark_block_size", offsetof(pl_config, block), 1, PL_MAX_BLOCK},
        {"dspark_noise_token_id", offsetof(pl_config, noise_token), 0, INT_MAX},
        {"dspark_markov_rank", offsetof(pl_config, markov_rank), 1, 65536},
        {"dspark_n_routed_experts", offsetof(pl_config, draft_experts), 1, 8192},
        {"dspark_num_experts_per_tok", offsetof(pl_config, draft_experts_per_tok), 1, 256},
    };
    config->noise_token = -1;
    PL_TRY(read_int(r, "num_nextn_predict_layers", 0, PL_MAX_LAYERS, &config->stages));
    int64_t tap[PL_MAX_TAPS];
    PL_TRY(read_list(r, "dspark_target_layer_ids", PL_MAX_TAPS, PL_MAX_LAYERS, tap, &config->taps));
    for (int i = 0; i < config->taps; i++)
        config->tap_layer[i] = (int)tap[i];
    return config->stages ? read_ints(r, config, fields, sizeof fields / sizeof *fields) : PL_OK;
}

static pl_status read_root(const reader *root, pl_config *config)
{
    PL_TRY(must_be(root, "model_type", "deepseek_v41", true));
    const json_t *object;
    PL_TRY(read_object(root, "text_config", true, &object));
    reader text = *root;
    text.object = object;
    text.prefix = "text_config.";
    pl__config_lists lists = {0};
    PL_TRY(read_shapes(&text, config));
    PL_TRY(read_rope(&text, config));
    PL_TRY(read_compression(&text, config, &lists));
    PL_TRY(read_engram(&text, config, &lists));
    PL_TRY(read_drafter(&text, config));
    PL_TRY(read_quantization(root));
    PL_TRY(read_vision(root, config));
    PL_TRY(read_id(root, "bos_token_id", &config->bos));
    PL_TRY(read_id(root, "eos_token_id", &config->eos));
    PL_TRY(read_id(root, "pad_token_id", &config->pad));
    PL_TRY(read_id(root, "image_token_id", &config->image_token));
    return pl__config_check(config, &lists, root->where, root->err);
}

pl_status pl_config_parse(pl_config *config, const char *json, size_t len, const char *where, pl_error *err)
{
    *config = (pl_config){0};
    if (len > PL_MAX_CONFIG_BYTES)
        return pl_fail(err, PL_ELIMIT, "%s: %zu bytes, the cap is %d", where, len, PL_MAX_CONFIG_BYTES);
    json_error_t problem;
    json_t *root = json_loadb(json ? json : "", len, JSON_REJECT_DUPLICATES, &problem);
    if (!root && problem.line < 0)
        return pl_fail(err, PL_ENOMEM, "%s: no memory to read it", where); /* the reader gives no other sign of it */
    if (!root)
        return pl_fail_at(err, PL_EFORMAT, problem.position, "%s: line %d: %s", where, problem.line, problem.text);
    pl_status status;
    if (json_is_object(root)) {
        reader r = {.object = root, .prefix = "", .where = where, .err = err};
        status = read_root(&r, config);
    } else
        status = pl_fail(err, PL_EFORMAT, "%s: expected a JSON object", where);
    json_decref(root);
    return status;
}

pl_status pl_config_load(pl_config *config, const char *path, pl_error *err)
{
    pl_buf text;
    const char *name = pl_input_name(path);
    pl_buf_init(&text, PL_MAX_CONFIG_BYTES, name);
    pl_status status = pl_file_read(&text, path, err);
    if (status == PL_OK)
        status = pl_config_parse(config, text.data, text.len, name, err);
    pl_buf_free(&text);
    return status;
}
