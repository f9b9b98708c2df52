/* What the fields of a config may say together. Every message names the field, what was expected and what was found. */
#include "checkpoint/config_check.h"

#include "checkpoint/inventory.h"
#include "checkpoint/primes.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct check {
    pl_config *config;
    const pl__config_lists *lists;
    const char *where;
    pl_error *err;
} check;

/* The failure: `field` of text_config has the value `found`, the text says what it should be. */
static pl_status bad(const check *k, const char *field, long long found, const char *expected, ...)
    __attribute__((format(printf, 4, 5)));

static pl_status bad(const check *k, const char *field, long long found, const char *expected, ...)
{
    char text[200], param[128];
    va_list args;
    va_start(args, expected);
    vsnprintf(text, sizeof text, expected, args);
    va_end(args);
    snprintf(param, sizeof param, "text_config.%s", field);
    return pl_fail_param(k->err, PL_EFORMAT, param, "%s: %s: expected %s, found %lld", k->where, param, text, found);
}

static pl_status multiple_of(const check *k, const char *field, long long value, long long unit, const char *why)
{
    return value % unit == 0 ? PL_OK : bad(k, field, value, "a multiple of %lld (%s)", unit, why);
}

/* Kernels index rows with int, and no launch buffer is sized past this. */
static pl_status width(const check *k, const char *field, long long value)
{
    return value <= 1 << 24 ? PL_OK : bad(k, field, value, "a product of at most %d", 1 << 24);
}

static pl_status check_attention(const check *k)
{
    const pl_config *c = k->config;
    PL_TRY(multiple_of(k, "hidden_size", c->hidden, 32, "FP8 groups"));
    PL_TRY(multiple_of(k, "q_lora_rank", c->q_lora, 32, "FP8 groups"));
    PL_TRY(multiple_of(k, "head_dim", c->head_dim, 32, "FP8 groups of the cache"));
    PL_TRY(multiple_of(k, "qk_rope_head_dim", c->rope_dim, 2, "rotated pairs"));
    if (c->rope_dim > c->head_dim)
        return bad(k, "qk_rope_head_dim", c->rope_dim, "at most head_dim (%d)", c->head_dim);
    PL_TRY(multiple_of(k, "num_attention_heads", c->heads, c->o_groups, "o_groups"));
    PL_TRY(width(k, "num_attention_heads x head_dim", (long long)c->heads * c->head_dim));
    PL_TRY(width(k, "o_groups x o_lora_rank", (long long)c->o_groups * c->o_lora));
    PL_TRY(multiple_of(k, "o_groups x o_lora_rank", (long long)c->o_groups * c->o_lora, 32, "FP8 groups"));
    if (c->yarn && c->yarn_beta_fast < c->yarn_beta_slow)
        return bad(k, "rope_scaling.beta_fast", (long long)c->yarn_beta_fast, "at least beta_slow (%g)",
                   c->yarn_beta_slow);
    return PL_OK;
}

static pl_status check_experts(const check *k)
{
    const pl_config *c = k->config;
    PL_TRY(multiple_of(k, "moe_intermediate_size", c->moe_inter, 32, "FP4 groups"));
    if (c->experts_per_tok > c->experts)
        return bad(k, "num_experts_per_tok", c->experts_per_tok, "at most n_routed_experts (%d)", c->experts);
    return PL_OK;
}

/* A strictly ascending list of layers. */
static pl_status check_layers(const check *k, const char *field, const int64_t *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (list[i] >= k->config->layers)
            return bad(k, field, list[i], "a layer below num_hidden_layers (%d)", k->config->layers);
        if (i && list[i] <= list[i - 1])
            return bad(k, field, list[i], "a layer after %lld, the one listed before", (long long)list[i - 1]);
    }
    return PL_OK;
}

static pl_status check_ratios(const check *k)
{
    pl_config *c = k->config;
    int blocks = c->layers + c->stages;
    if (blocks > PL_MAX_LAYERS)
        return bad(k, "num_hidden_layers + num_nextn_predict_layers", blocks, "at most %d", PL_MAX_LAYERS);
    if (k->lists->ratios != blocks)
        return bad(k, "compress_ratios", k->lists->ratios, "%d entries (%d layers and %d draft stages)", blocks,
                   c->layers, c->stages);
    for (int i = 0; i < blocks; i++) {
        c->ratio[i] = (int)k->lists->ratio[i];
        if (i >= c->layers && c->ratio[i])
            return bad(k, "compress_ratios", c->ratio[i], "0 for draft stage %d", i - c->layers);
    }
    return PL_OK;
}

/* Fill kv_owner and index_owner: a layer reads the last source at or before it. Model spec 1.1. */
static pl_status derive_owners(const check *k)
{
    pl_config *c = k->config;
    const pl__config_lists *l = k->lists;
    int kv = -1, index = -1, next_kv = 0, next_index = 0;
    for (int i = 0; i < c->layers + c->stages; i++) {
        c->kv_owner[i] = c->index_owner[i] = -1;
        bool owns_kv = next_kv < l->kvs && l->kv[next_kv] == i;
        bool owns_index = next_index < l->indexes && l->index[next_index] == i;
        next_kv += owns_kv;
        next_index += owns_index;
        kv = owns_kv ? i : kv;
        index = owns_index ? i : index;
        if (c->ratio[i] == 0) {
            if (owns_kv)
                return bad(k, "kv_source_layer_ids", i, "layers whose compress_ratios entry is 1 or 2");
            if (owns_index)
                return bad(k, "index_source_layer_ids", i, "layers whose compress_ratios entry is 1 or 2");
            continue;
        }
        if (kv < 0)
            return bad(k, "kv_source_layer_ids", l->kvs ? l->kv[0] : -1, "a source at or before layer %d (ratio %d)", i,
                       c->ratio[i]);
        if (c->ratio[kv] != c->ratio[i])
            return bad(k, "compress_ratios", c->ratio[i], "%d at layer %d, the ratio of its source, layer %d",
                       c->ratio[kv], i, kv);
        if (index < kv) /* also when there is none: its list would count another owner's entries */
            return bad(k, "index_source_layer_ids", index, "a source from layer %d to layer %d", kv, i);
        c->kv_owner[i] = kv;
        c->index_owner[i] = index;
    }
    return PL_OK;
}

static pl_status check_compression(const check *k)
{
    const pl_config *c = k->config;
    PL_TRY(check_ratios(k));
    PL_TRY(check_layers(k, "kv_source_layer_ids", k->lists->kv, k->lists->kvs));
    PL_TRY(check_layers(k, "index_source_layer_ids", k->lists->index, k->lists->indexes));
    PL_TRY(derive_owners(k));
    if (!k->lists->kvs)
        return c->candidate_layer < 0
                   ? PL_OK
                   : bad(k, "candidate_source_layer_id", c->candidate_layer, "nothing, as no layer compresses");
    PL_TRY(multiple_of(k, "index_head_dim", c->index_dim, 32, "FP4 groups"));
    if (c->rope_dim > c->index_dim)
        return bad(k, "index_head_dim", c->index_dim, "at least qk_rope_head_dim (%d)", c->rope_dim);
    PL_TRY(width(k, "index_n_heads x index_head_dim", (long long)c->index_heads * c->index_dim));
    if (c->candidate_layer < 0)
        return PL_OK;
    if (!pl_config_owns_index(c, c->candidate_layer))
        return bad(k, "candidate_source_layer_id", c->candidate_layer, "one of index_source_layer_ids");
    for (int i = c->candidate_layer; i < c->layers; i++)
        if (pl_config_owns_index(c, i) && c->kv_owner[i] != c->kv_owner[c->candidate_layer])
            return bad(k, "candidate_source_layer_id", c->candidate_layer,
                       "a layer whose entries layer %d reads too (candidates are blocks of its entries)", i);
    if ((long long)c->candidate_blocks * c->candidate_block > INT_MAX)
        return bad(k, "candidate_topk_blocks x candidate_block_size",
                   (long long)c->candidate_blocks * c->candidate_block, "at most %d", INT_MAX);
    return PL_OK;
}

static pl_status check_engram(const check *k)
{
    const pl_config *c = k->config;
    int64_t layer[PL_MAX_ENGRAMS];
    for (int i = 0; i < c->engrams; i++)
        layer[i] = c->engram_layer[i];
    PL_TRY(check_layers(k, "engram_layer_ids", layer, c->engrams));
    if (k->lists->engram_rows != c->engrams)
        return bad(k, "engram_num_embeddings", k->lists->engram_rows, "%d entries, one for each of engram_layer_ids",
                   c->engrams);
    if (!c->engrams)
        return PL_OK;
    PL_TRY(multiple_of(k, "engram_head_dim", c->engram_dim, 32, "FP8 groups"));
    PL_TRY(width(k, "engram columns", (long long)(c->engram_ngram - 1) * c->engram_heads * c->engram_dim));
    if (c->engram_pad >= c->vocab_size)
        return bad(k, "engram_pad_token_id", c->engram_pad, "an id below vocab_size (%d)", c->vocab_size);
    if (c->engram_classes > c->vocab_size)
        return bad(k, "engram_compressed_vocab_size", c->engram_classes, "at most vocab_size (%d)", c->vocab_size);
    uint32_t prime = (uint32_t)c->engram_vocab - 1;
    for (int i = 0; i < c->engrams; i++) {
        int64_t sum = 0;
        for (int j = 0; j < (c->engram_ngram - 1) * c->engram_heads; j++)
            sum += prime = pl_next_prime(prime + 1);
        if (sum != c->engram_rows[i])
            return bad(k, "engram_num_embeddings", (long long)c->engram_rows[i],
                       "%lld for layer %d (the sum of its primes from engram_vocab_size up)", (long long)sum,
                       c->engram_layer[i]);
    }
    return PL_OK;
}

static pl_status check_drafter(const check *k)
{
    const pl_config *c = k->config;
    if (!c->stages)
        return PL_OK;
    int64_t tap[PL_MAX_TAPS];
    for (int i = 0; i < c->taps; i++)
        tap[i] = c->tap_layer[i];
    if (!c->taps)
        return bad(k, "dspark_target_layer_ids", 0, "at least one layer, as there are draft stages");
    PL_TRY(check_layers(k, "dspark_target_layer_ids", tap, c->taps));
    if (c->noise_token >= c->vocab_size)
        return bad(k, "dspark_noise_token_id", c->noise_token, "an id below vocab_size (%d)", c->vocab_size);
    if (c->draft_experts_per_tok > c->draft_experts)
        return bad(k, "dspark_num_experts_per_tok", c->draft_experts_per_tok, "at most dspark_n_routed_experts (%d)",
                   c->draft_experts);
    return PL_OK;
}

static pl_status check_ids(const check *k)
{
    const pl_config *c = k->config;
    const char *const name[] = {"bos_token_id", "eos_token_id", "pad_token_id", "image_token_id"};
    const int id[] = {c->bos, c->eos, c->pad, c->image_token};
    for (int i = 0; i < 4; i++)
        if (id[i] >= c->vocab_size)
            return pl_fail_param(k->err, PL_EFORMAT, name[i],
                                 "%s: %s: expected an id below text_config.vocab_size (%d), found %d", k->where,
                                 name[i], c->vocab_size, id[i]);
    return PL_OK;
}

pl_status pl__config_check(pl_config *config, const pl__config_lists *lists, const char *where, pl_error *err)
{
    const check k = {.config = config, .lists = lists, .where = where, .err = err};
    PL_TRY(check_attention(&k));
    PL_TRY(check_experts(&k));
    PL_TRY(check_compression(&k));
    PL_TRY(check_engram(&k));
    PL_TRY(check_drafter(&k));
    PL_TRY(check_ids(&k));
    int64_t tensors = pl_inventory_count(config);
    if (tensors > PL_MAX_TENSORS)
        return bad(&k, "n_routed_experts", config->experts, "a model of at most %d tensors, not %lld", PL_MAX_TENSORS,
                   (long long)tensors);
    return PL_OK;
}

bool pl_config_owns_kv(const pl_config *config, int layer)
{
    return layer >= 0 && layer < config->layers && config->kv_owner[layer] == layer;
}

bool pl_config_owns_index(const pl_config *config, int layer)
{
    return layer >= 0 && layer < config->layers && config->index_owner[layer] == layer;
}

int pl_config_engram_at(const pl_config *config, int layer)
{
    for (int i = 0; i < config->engrams; i++)
        if (config->engram_layer[i] == layer)
            return i;
    return -1;
}

void pl_config_engram_primes(const pl_config *config, int index, uint32_t *prime)
{
    int columns = (config->engram_ngram - 1) * config->engram_heads;
    uint32_t p = (uint32_t)config->engram_vocab - 1;
    for (int i = 0; i < columns * (index + 1); i++) {
        p = pl_next_prime(p + 1); /* never one that an earlier layer took */
        if (i >= columns * index)
            prime[i - columns * index] = p;
    }
}
