/* Nothing is fixed to a size: random checkpoints of odd shapes run exactly too. Among them more than 256 experts, more
 * than 64 heads, other stream counts, no drafter, no Engram, ratio-1 and ratio-2 owners alone, widths that are no power
 * of two. */
#include "model/exact.h"

#include "base/buf.h"
#include "checkpoint/primes.h"

typedef struct shape {
    const char *name;
    int hidden, layers, heads, head_dim, rope, q_lora, groups, o_lora, inter, experts, per_token, streams, window;
    const char *ratios; /* of the layers and stages */
    const char *kv, *index;
    int candidate, blocks, block, index_heads, index_dim, topk;
    const char *engram_layers; /* NULL: none */
    int ngram, engram_heads;
    int stages, draft_block, draft_experts, draft_per_token;
    const char *taps;
    bool norm;
} shape;

static const shape shapes[] = {
    {"many experts", 96, 4, 6, 64, 32, 64, 3,   32, 64, 300, 7, 4,   8, "0,2,1,1,0", "1,2",
     "1,2,3",        2,  4, 4, 4,  32, 8,  "1", 4,  2,  1,   5, 260, 5, "2,3",       true},
    {"many heads", 160, 3, 72, 32, 32, 96, 9,     32, 32, 5, 1, 2, 5, "2,2,0,0,0", "0",
     "0,1",        -1,  0, 0,  6,  64, 6,  "0,2", 3,  1,  2, 3, 3, 1, "0,2",       true},
    {"ratio one, no engram",
     64,
     4,
     2,
     96,
     16,
     32,
     1,
     64,
     96,
     4,
     3,
     3,
     12,
     "1,1,1,1",
     "0",
     "0,2",
     0,
     3,
     2,
     2,
     32,
     7,
     NULL,
     4,
     2,
     0,
     5,
     2,
     2,
     "0",
     false},
    {"window only", 64, 2, 4, 32, 32, 32, 2,   32,  32, 6, 6, 4, 3, "0,0,0", "", "", -1, 0, 0, 2, 32, 4,
     "1",           2,  3, 1, 7,  4,  4,  "1", true},
};

static int64_t engram_sum(int cols, uint32_t *next)
{
    int64_t sum = 0;
    for (int i = 0; i < cols; i++) {
        uint32_t p = pl_next_prime(*next);
        *next = p + 1;
        sum += p;
    }
    return sum;
}

static void write_config(const shape *s, pl_buf *out)
{
    pl_error err;
    char rows[64] = "";
    uint32_t next = 53;
    int engrams = s->engram_layers ? 1 + (strchr(s->engram_layers, ',') != NULL) : 0;
    for (int i = 0; i < engrams; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%s%lld", i ? "," : "",
                 (long long)engram_sum((s->ngram - 1) * s->engram_heads, &next));
    char candidate[160] = "";
    if (s->candidate >= 0)
        snprintf(candidate, sizeof candidate,
                 "\"candidate_source_layer_id\":%d,\"candidate_topk_blocks\":%d,\"candidate_block_size\":%d,",
                 s->candidate, s->blocks, s->block);
    assert_int_equal(
        pl_buf_addf(
            out, &err,
            "{\"architectures\":[\"DeepseekV41ForCausalLM\"],\"model_type\":\"deepseek_v41\",\"dtype\":\"bfloat16\","
            "\"bos_token_id\":0,\"eos_token_id\":1,\"pad_token_id\":2,\"image_token_id\":380,"
            "\"quantization_config\":{\"quant_method\":\"fp8\",\"activation_scheme\":\"dynamic\",\"weight_block_size\":"
            "[32,32],"
            "\"scale_fmt\":\"ue8m0\",\"expert_dtype\":\"fp4\"},\"text_config\":{\"model_type\":\"deepseek_v41_text\","
            "\"vocab_size\":400,\"hidden_size\":%d,\"num_hidden_layers\":%d,\"num_attention_heads\":%d,"
            "\"num_key_value_heads\":1,\"head_dim\":%d,\"qk_rope_head_dim\":%d,\"q_lora_rank\":%d,\"o_groups\":%d,"
            "\"o_lora_rank\":%d,\"moe_intermediate_size\":%d,\"n_routed_experts\":%d,\"n_shared_experts\":1,"
            "\"num_experts_per_tok\":%d,\"scoring_func\":\"sqrtsoftplus\",\"topk_method\":\"noaux_tc\","
            "\"norm_topk_prob\":%s,\"routed_scaling_factor\":1.5,\"swiglu_limit\":10.0,\"hidden_act\":\"silu\","
            "\"hc_mult\":%d,\"hc_sinkhorn_iters\":20,\"hc_eps\":1e-06,\"rms_norm_eps\":1e-20,\"rope_theta\":10000,"
            "\"compress_rope_theta\":160000,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":16,\"beta_fast\":32,\"beta_"
            "slow\":1,"
            "\"original_max_position_embeddings\":64},\"max_position_embeddings\":4096,\"sliding_window\":%d,"
            "\"index_n_heads\":%d,\"index_head_dim\":%d,\"index_topk\":%d,\"compress_ratios\":[%s],"
            "\"kv_source_layer_ids\":[%s],\"index_source_layer_ids\":[%s],%s",
            s->hidden, s->layers, s->heads, s->head_dim, s->rope, s->q_lora, s->groups, s->o_lora, s->inter, s->experts,
            s->per_token, s->norm ? "true" : "false", s->streams, s->window, s->index_heads, s->index_dim, s->topk,
            s->ratios, s->kv, s->index, candidate),
        PL_OK);
    assert_int_equal(
        pl_buf_addf(out, &err,
                    "\"engram_layer_ids\":[%s],\"engram_num_embeddings\":[%s],\"engram_max_ngram_size\":%d,"
                    "\"engram_vocab_size\":53,\"engram_n_heads\":%d,\"engram_head_dim\":32,\"engram_pad_token_id\":2,"
                    "\"engram_compressed_vocab_size\":400,\"num_nextn_predict_layers\":%d,\"dspark_block_size\":%d,"
                    "\"dspark_noise_token_id\":399,\"dspark_target_layer_ids\":[%s],\"dspark_markov_rank\":32,"
                    "\"dspark_n_routed_experts\":%d,\"dspark_num_experts_per_tok\":%d}}",
                    s->engram_layers ? s->engram_layers : "", rows, s->ngram, s->engram_heads, s->stages,
                    s->draft_block, s->taps, s->draft_experts, s->draft_per_token),
        PL_OK);
}

static uint64_t seed;

static void odd_shapes_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char dir[64];
        pl_buf config;
        pl_buf_init(&config, 1 << 16, "config");
        make_folder(dir);
        write_config(&shapes[i], &config);
        make_checkpoint(dir, config.data, config.len, shapes[i].name, seed);
        print_message("%s\n", shapes[i].name);
        int32_t tokens[70];
        for (int t = 0; t < 70; t++)
            tokens[t] = (int32_t)(next_random(&seed) % 400);
        check_exact(dir, tokens, 70, &seed);
        remove_folder(dir);
        pl_buf_free(&config);
    }
}

int main(void)
{
    seed = print_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(odd_shapes_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
