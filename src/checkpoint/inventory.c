#include "checkpoint/inventory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A walk in progress. The first failure sticks; everything after it is skipped. */
typedef struct walk {
    const pl_config *config;
    pl_item_fn *fn;
    void *arg;
    pl_error *err;
    pl_status status;
    int shard;
    char prefix[64]; /* "layers.3." */
} walk;

typedef struct parts {
    pl_part experts, attention, shared, gate, hc, norms;
} parts;

static const parts layer_parts = {.experts = PL_PART_EXPERTS,
                                  .attention = PL_PART_ATTENTION,
                                  .shared = PL_PART_SHARED_EXPERTS,
                                  .gate = PL_PART_GATE,
                                  .hc = PL_PART_HC,
                                  .norms = PL_PART_NORMS};
static const parts stage_parts = {.experts = PL_PART_DRAFT_EXPERTS,
                                  .attention = PL_PART_DRAFT_BLOCKS,
                                  .shared = PL_PART_DRAFT_BLOCKS,
                                  .gate = PL_PART_DRAFT_BLOCKS,
                                  .hc = PL_PART_DRAFT_BLOCKS,
                                  .norms = PL_PART_DRAFT_BLOCKS};

int pl_dtype_size(pl_dtype dtype)
{
    return dtype == PL_F32 ? 4 : dtype == PL_BF16 ? 2 : 1;
}

const char *pl_dtype_name(pl_dtype dtype)
{
    static const char *const name[] = {"BF16", "F32", "F8_E4M3", "F8_E8M0", "I8"};
    return name[dtype];
}

/* Emit one tensor. cols 0 makes a vector of `rows` values. */
static void emit(walk *w, pl_part part, pl_role role, pl_dtype dtype, int64_t rows, int64_t cols, int in,
                 const char *name, const char *suffix)
{
    if (w->status != PL_OK)
        return;
    pl_item item = {.dtype = dtype, .rank = cols ? 2 : 1, .dim = {rows, cols}, .part = part, .role = role, .in = in};
    snprintf(item.name, sizeof item.name, "%s%s%s", w->prefix, name, suffix);
    item.bytes = (uint64_t)rows * (uint64_t)(cols ? cols : 1) * (uint64_t)pl_dtype_size(dtype);
    item.optional = part == PL_PART_VISION || strcmp(name, "ffn.gate.bias_vl") == 0;
    item.shard = w->shard;
    w->status = w->fn(w->arg, &item, w->err);
}

static void vector(walk *w, pl_part part, pl_role role, pl_dtype dtype, int64_t n, const char *name)
{
    emit(w, part, role, dtype, n, 0, 0, name, "");
}

static void gain(walk *w, pl_part part, int64_t n, const char *name)
{
    vector(w, part, PL_ROLE_GAIN, PL_BF16, n, name);
}

static void bf16(walk *w, pl_part part, int64_t out, int in, const char *name)
{
    emit(w, part, PL_ROLE_MATRIX, PL_BF16, out, in, in, name, ".weight");
}

/* FP8 with a scale per 32 x 32 block. */
static void fp8(walk *w, pl_part part, int64_t out, int in, const char *name)
{
    emit(w, part, PL_ROLE_MATRIX, PL_F8_E4M3, out, in, in, name, ".weight");
    emit(w, part, PL_ROLE_SCALE_BLOCK, PL_F8_E8M0, (out + 31) / 32, (in + 31) / 32, in, name, ".scale");
}

/* FP4, two values a byte, with a scale per row and 32 inputs. */
static void fp4(walk *w, pl_part part, int64_t out, int in, const char *name)
{
    emit(w, part, PL_ROLE_MATRIX, PL_I8, out, in / 2, in, name, ".weight");
    emit(w, part, PL_ROLE_SCALE_ROW, PL_F8_E8M0, out, in / 32, in, name, ".scale");
}

static void hyper(walk *w, const parts *p, const char *which)
{
    const pl_config *c = w->config;
    int mix = 2 * c->hc_mult + c->hc_mult * c->hc_mult, in = c->hc_mult * c->hidden;
    char name[32];
    snprintf(name, sizeof name, "hc_%s_fn", which);
    emit(w, p->hc, PL_ROLE_MATRIX, PL_F32, mix, in, in, name, "");
    snprintf(name, sizeof name, "hc_%s_base", which);
    vector(w, p->hc, PL_ROLE_HC_BASE, PL_F32, mix, name);
    snprintf(name, sizeof name, "hc_%s_scale", which);
    vector(w, p->hc, PL_ROLE_HC_SCALE, PL_F32, 3, name);
}

static void attention(walk *w, const parts *p)
{
    const pl_config *c = w->config;
    int width = c->heads * c->head_dim, low = c->o_groups * c->o_lora;
    fp8(w, p->attention, c->q_lora, c->hidden, "attn.wq_a");
    gain(w, p->attention, c->q_lora, "attn.q_norm.weight");
    fp8(w, p->attention, width, c->q_lora, "attn.wq_b");
    fp8(w, p->attention, c->head_dim, c->hidden, "attn.wkv");
    gain(w, p->attention, c->head_dim, "attn.kv_norm.weight");
    vector(w, p->attention, PL_ROLE_SINK, PL_F32, c->heads, "attn.attn_sink");
    fp8(w, p->attention, low, width / c->o_groups, "attn.wo_a");
    fp8(w, p->attention, c->hidden, low, "attn.wo_b");
}

static void moe(walk *w, const parts *p, int experts)
{
    const pl_config *c = w->config;
    emit(w, p->gate, PL_ROLE_MATRIX, PL_BF16, experts, c->hidden, c->hidden, "ffn.gate", ".weight");
    vector(w, p->gate, PL_ROLE_BIAS, PL_F32, experts, "ffn.gate.bias");
    vector(w, p->gate, PL_ROLE_BIAS, PL_F32, experts, "ffn.gate.bias_vl");
    fp8(w, p->shared, c->moe_inter, c->hidden, "ffn.shared_experts.w1");
    fp8(w, p->shared, c->hidden, c->moe_inter, "ffn.shared_experts.w2");
    fp8(w, p->shared, c->moe_inter, c->hidden, "ffn.shared_experts.w3");
    for (int e = 0; e < experts && w->status == PL_OK; e++) {
        char name[40];
        for (int part = 1; part <= 3; part++) {
            snprintf(name, sizeof name, "ffn.experts.%d.w%d", e, part);
            fp4(w, p->experts, part == 2 ? c->hidden : c->moe_inter, part == 2 ? c->moe_inter : c->hidden, name);
        }
    }
}

static void block(walk *w, const parts *p, int experts)
{
    gain(w, p->norms, w->config->hidden, "attn_norm.weight");
    gain(w, p->norms, w->config->hidden, "ffn_norm.weight");
    hyper(w, p, "attn");
    hyper(w, p, "ffn");
    attention(w, p);
    moe(w, p, experts);
}

static void layer(walk *w, int index)
{
    const pl_config *c = w->config;
    snprintf(w->prefix, sizeof w->prefix, "layers.%d.", index);
    block(w, &layer_parts, c->experts);
    if (pl_config_owns_kv(c, index)) {
        bf16(w, PL_PART_COMPRESSOR, c->head_dim, c->hidden, "attn.compressor.wkv");
        if (c->ratio[index] == 2)
            bf16(w, PL_PART_COMPRESSOR, c->head_dim, c->hidden, "attn.compressor.wgate");
        gain(w, PL_PART_COMPRESSOR, c->head_dim, "attn.compressor.norm.weight");
        bf16(w, PL_PART_COMPRESSOR, c->index_dim, c->head_dim, "attn.indexer.wk");
        gain(w, PL_PART_COMPRESSOR, c->index_dim, "attn.indexer.k_norm.weight");
    }
    if (pl_config_owns_index(c, index)) {
        fp8(w, PL_PART_COMPRESSOR, (int64_t)c->index_heads * c->index_dim, c->q_lora, "attn.indexer.wq_b");
        bf16(w, PL_PART_COMPRESSOR, c->index_heads, c->hidden, "attn.indexer.weights_proj");
    }
}

static void stage(walk *w, int index)
{
    const pl_config *c = w->config;
    snprintf(w->prefix, sizeof w->prefix, "mtp.%d.", index);
    if (index == 0) {
        fp8(w, PL_PART_DRAFT_HEADS, c->hidden, c->taps * c->hidden, "main_proj");
        gain(w, PL_PART_DRAFT_HEADS, c->hidden, "main_norm.weight");
    }
    block(w, &stage_parts, c->draft_experts);
    if (index != c->stages - 1)
        return;
    int conf = c->hidden + c->markov_rank;
    gain(w, PL_PART_DRAFT_HEADS, c->hidden, "norm.weight");
    emit(w, PL_PART_DRAFT_HEADS, PL_ROLE_EMBEDDING, PL_BF16, c->vocab_size, c->markov_rank, c->markov_rank,
         "markov_head.embed", ".weight");
    bf16(w, PL_PART_DRAFT_HEADS, c->vocab_size, c->markov_rank, "markov_head.head");
    bf16(w, PL_PART_DRAFT_HEADS, 1, conf, "confidence_head.proj");
}

static void engram(walk *w, int index)
{
    const pl_config *c = w->config;
    int in = (c->engram_ngram - 1) * c->engram_heads * c->engram_dim;
    int64_t out = (int64_t)(c->hc_mult + 1) * c->hidden;
    snprintf(w->prefix, sizeof w->prefix, "layers.%d.engram.", c->engram_layer[index]);
    emit(w, PL_PART_ENGRAM_TABLES, PL_ROLE_TABLE, PL_F8_E4M3, c->engram_rows[index], c->engram_dim, in, "embed",
         ".weight");
    emit(w, PL_PART_ENGRAM_TABLES, PL_ROLE_TABLE_SCALE, PL_F8_E8M0, c->engram_rows[index], c->engram_dim / 32, in,
         "embed", ".scale");
    fp8(w, PL_PART_ENGRAM, out, in, "wkv");
    emit(w, PL_PART_ENGRAM, PL_ROLE_GAIN, PL_BF16, c->hc_mult, c->hidden, 0, "q_weight", "");
    emit(w, PL_PART_ENGRAM, PL_ROLE_GAIN, PL_BF16, c->hc_mult, c->hidden, 0, "k_weight", "");
}

static void with_bias(walk *w, int64_t out, int in, const char *name)
{
    emit(w, PL_PART_VISION, PL_ROLE_MATRIX, PL_BF16, out, in, in, name, ".weight");
    emit(w, PL_PART_VISION, PL_ROLE_BIAS, PL_BF16, out, 0, 0, name, ".bias");
}

static void vision(walk *w)
{
    const pl_config *c = w->config;
    int h = c->vision_hidden;
    for (int i = 0; i < c->vision_layers; i++) {
        snprintf(w->prefix, sizeof w->prefix, "vision.blocks.%d.", i);
        with_bias(w, 3 * h, h, "attn.wqkv");
        with_bias(w, h, h, "attn.wo");
        bf16(w, PL_PART_VISION, 2 * c->vision_inter, h, "mlp.w1");
        bf16(w, PL_PART_VISION, h, c->vision_inter, "mlp.w2");
        gain(w, PL_PART_VISION, h, "norm1.weight");
        gain(w, PL_PART_VISION, h, "norm2.weight");
    }
    w->prefix[0] = 0;
    gain(w, PL_PART_VISION, h, "vision.norm.weight");
    with_bias(w, h, 3 * c->vision_patch * c->vision_patch, "vision.patch_embed.proj");
    with_bias(w, c->hidden, h * c->vision_downsample * c->vision_downsample, "aligner.w1");
    with_bias(w, c->hidden, c->hidden, "aligner.w2");
}

static void embed(walk *w)
{
    const pl_config *c = w->config;
    w->prefix[0] = 0;
    emit(w, PL_PART_EMBED, PL_ROLE_EMBEDDING, PL_BF16, c->vocab_size, c->hidden, c->hidden, "embed", ".weight");
    if (!c->has_vision)
        return;
    vector(w, PL_PART_VISION, PL_ROLE_EMBEDDING, PL_BF16, c->hidden, "image_start");
    vector(w, PL_PART_VISION, PL_ROLE_EMBEDDING, PL_BF16, c->hidden, "image_end");
    vector(w, PL_PART_VISION, PL_ROLE_EMBEDDING, PL_BF16, c->hidden, "image_newline");
}

pl_status pl_inventory_each(const pl_config *config, pl_item_fn *fn, void *arg, pl_error *err)
{
    walk w = {.config = config, .fn = fn, .arg = arg, .err = err, .status = PL_OK};
    if (config->has_vision) {
        vision(&w);
        w.shard++;
    }
    embed(&w);
    w.shard++;
    for (int i = 0; i < config->layers && w.status == PL_OK; i++, w.shard++)
        layer(&w, i);
    w.prefix[0] = 0;
    gain(&w, PL_PART_NORMS, config->hidden, "norm.weight");
    bf16(&w, PL_PART_HEAD, config->vocab_size, config->hidden, "head");
    w.shard++;
    for (int i = 0; i < config->stages && w.status == PL_OK; i++, w.shard++)
        stage(&w, i);
    for (int i = 0; i < config->engrams && w.status == PL_OK; i++, w.shard++)
        engram(&w, i);
    return w.status;
}

int pl_inventory_shards(const pl_config *config)
{
    return config->has_vision + 1 + config->layers + 1 + config->stages + config->engrams;
}

int64_t pl_inventory_count(const pl_config *config)
{
    enum { BLOCK = 30, EXPERT = 6, VISION_BLOCK = 8, VISION_REST = 10, ENGRAM = 6, DRAFT_ENDS = 7, GLOBAL = 3 };
    int64_t n = GLOBAL + (int64_t)BLOCK * (config->layers + config->stages) + ENGRAM * config->engrams;
    n += (int64_t)EXPERT * config->experts * config->layers + (int64_t)EXPERT * config->draft_experts * config->stages;
    if (config->has_vision)
        n += VISION_BLOCK * config->vision_layers + VISION_REST;
    if (config->stages)
        n += DRAFT_ENDS;
    for (int i = 0; i < config->layers; i++) {
        if (pl_config_owns_kv(config, i))
            n += config->ratio[i] == 2 ? 5 : 4;
        if (pl_config_owns_index(config, i))
            n += 3;
    }
    return n;
}

bool pl_inventory_ignores(const char *name)
{
    if (strncmp(name, "vision.", 7) == 0 || strncmp(name, "aligner.", 8) == 0 || strncmp(name, "image_", 6) == 0)
        return true;
    if (strncmp(name, "mtp.", 4) != 0)
        return false;
    const char *p = name + 4 + strspn(name + 4, "0123456789");
    return p > name + 4 && (strncmp(p, ".embed.", 7) == 0 || strncmp(p, ".head.", 6) == 0);
}

static const struct {
    const char *name, *key;
} part_names[PL_PARTS] = {
    [PL_PART_EXPERTS] = {"routed experts", "routed_experts"},
    [PL_PART_ENGRAM_TABLES] = {"Engram tables", "engram_tables"},
    [PL_PART_ENGRAM] = {"Engram projections", "engram_projections"},
    [PL_PART_ATTENTION] = {"attention", "attention"},
    [PL_PART_COMPRESSOR] = {"compressors and indexers", "compressors_indexers"},
    [PL_PART_SHARED_EXPERTS] = {"shared experts", "shared_experts"},
    [PL_PART_GATE] = {"routers", "routers"},
    [PL_PART_HC] = {"hyper-connections", "hyper_connections"},
    [PL_PART_NORMS] = {"norms", "norms"},
    [PL_PART_EMBED] = {"embedding", "embedding"},
    [PL_PART_HEAD] = {"output head", "output_head"},
    [PL_PART_DRAFT_EXPERTS] = {"drafter: routed experts", "drafter_experts"},
    [PL_PART_DRAFT_BLOCKS] = {"drafter: rest of the stages", "drafter_stages"},
    [PL_PART_DRAFT_HEADS] = {"drafter: projection, Markov, confidence", "drafter_heads"},
    [PL_PART_VISION] = {"vision (never read)", "vision"},
    [PL_PART_UNUSED] = {"others that are never read", "unused"},
};

const char *pl_part_name(pl_part part)
{
    return part_names[part].name;
}

const char *pl_part_key(pl_part part)
{
    return part_names[part].key;
}

void pl_tally_add(pl_tally *tally, pl_part part, uint64_t bytes)
{
    tally->tensors[part]++;
    tally->bytes[part] += bytes;
    tally->total_tensors++;
    tally->total_bytes += bytes;
}

static pl_status add_item(void *arg, const pl_item *item, pl_error *err)
{
    (void)err;
    pl_tally_add(arg, item->part, item->bytes);
    return PL_OK;
}

void pl_tally_config(const pl_config *config, pl_tally *tally)
{
    *tally = (pl_tally){0};
    (void)pl_inventory_each(config, add_item, tally, NULL); /* add_item cannot fail */
}
