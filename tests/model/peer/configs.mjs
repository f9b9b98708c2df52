// Random checkpoint shapes, weights pushed to extremes, and prompts: everything from one seed.

import { openSync, readSync, writeSync, closeSync } from 'node:fs';
import { listTensors } from './checkpoint.mjs';
import { bits } from './numbers.mjs';

// A generator of numbers below n, and what hangs on it.
export function dice(seed) {
    let state = seed >>> 0;
    const next = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let x = Math.imul(state ^ (state >>> 15), state | 1);
        x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
        return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
    };
    return {
        below: (n) => Math.floor(next() * n),
        from: (low, high) => low + Math.floor(next() * (high - low + 1)),
        pick: (list) => list[Math.floor(next() * list.length)],
        chance: (p) => next() < p,
        some: (list, p) => list.filter(() => next() < p),
    };
}

const gcd = (a, b) => (b ? gcd(b, a % b) : a);

function primesFrom(start, count) {
    const out = [];
    for (let n = start; out.length < count; n++) {
        let d = 2;
        while (d * d <= n && n % d)
            d++;
        if (d * d > n)
            out.push(n);
    }
    return out;
}

// Layers that compress, their owners, and perhaps a layer that publishes candidates.
function compression(d, layers, stages) {
    const kind = d.pick(['none', 'one', 'one', 'two', 'mixed', 'mixed', 'mixed', 'two then one']);
    const ratios = [], kv = [], index = [];
    let ratio = 0;
    for (let layer = 0; layer < layers; layer++) {
        const idle = kind === 'none' || (layer === 0 && layers > 1 && d.chance(0.4)) || d.chance(0.1);
        if (idle) {
            ratios.push(0);
            continue;
        }
        if (!ratio || d.chance(kind === 'mixed' ? 0.3 : 0.15)) {
            ratio = kind === 'one' ? 1 : kind === 'two' ? 2 : kind === 'mixed' ? d.from(1, 2) : kv.length ? 1 : 2;
            kv.push(layer);
            index.push(layer);
        } else if (d.chance(0.5))
            index.push(layer);
        ratios.push(ratio);
    }
    const own = (layer) => Math.max(...kv.filter((k) => k <= layer));
    const able = index.filter((layer) => own(layer) === kv.at(-1));
    const out = { compress_ratios: ratios.concat(Array(stages).fill(0)), kv_source_layer_ids: kv,
        index_source_layer_ids: index, index_n_heads: d.pick([1, 2, 3, 5, 8, 16]),
        index_topk: d.pick([1, 2, 5, 8, 16, 33, 64, 500]) };
    if (able.length && d.chance(0.75))
        Object.assign(out, { candidate_source_layer_id: d.chance(0.7) ? able[0] : d.pick(able),
            candidate_topk_blocks: d.pick([1, 2, 3, 8]), candidate_block_size: d.pick([1, 2, 3, 4, 8]) });
    return out;
}

function engrams(d, layers, vocab) {
    const ids = d.chance(0.7) ? d.some([...Array(layers).keys()].slice(0, 8), 0.4) : [];
    const ngram = d.chance(0.1) ? d.from(6, 8) : d.from(2, 5), heads = d.from(1, 4), start = d.from(5, 900);
    const columns = (ngram - 1) * heads, primes = primesFrom(start, columns * ids.length);
    const rows = ids.map((_, i) => primes.slice(i * columns, (i + 1) * columns).reduce((a, b) => a + b));
    return {
        engram_layer_ids: ids, engram_max_ngram_size: ngram, engram_n_heads: heads,
        engram_head_dim: d.pick([32, 32, 64]), engram_vocab_size: start, engram_num_embeddings: rows,
        engram_pad_token_id: d.pick([2, vocab - 1 - d.below(200)]),
        engram_compressed_vocab_size: 200, // synth puts the tokenizer's count there
    };
}

function rope(d, dims) {
    const yarn = { [d.pick(['type', 'rope_type'])]: 'yarn', factor: d.pick([1, 2.5, 4, 16, 40]),
        beta_fast: d.pick([32, 8, 2]), beta_slow: d.pick([1, 0.5]),
        original_max_position_embeddings: d.pick([16, 64, 500, 65536]) };
    return { qk_rope_head_dim: dims, rope_theta: d.pick([10000, 10000, 100, 500000]),
        compress_rope_theta: d.pick([160000, 160000, 2000, 50]), rope_scaling: d.chance(0.25) ? null : yarn };
}

function drafter(d, layers, vocab, many) {
    const taps = d.some([...Array(layers).keys()].slice(-8), 0.4);
    const experts = d.pick([1, 2, 4, 7, many]);
    return {
        dspark_block_size: d.chance(0.2) ? d.pick([1, 2, 9, 16]) : d.from(3, 7),
        dspark_noise_token_id: d.below(vocab), dspark_markov_rank: d.pick([1, 8, 32, 50]),
        dspark_target_layer_ids: taps.length ? taps : [layers - 1],
        dspark_n_routed_experts: experts, dspark_num_experts_per_tok: Math.min(experts, d.from(1, 4)),
    };
}

export function makeConfig(d) {
    const layers = d.pick([1, 2, 3, 4, 5, 7]), stages = d.from(0, 3), vocab = d.from(280, 700);
    const groups = d.from(1, 9), heads = groups * d.from(1, Math.max(1, Math.floor(9 / groups)));
    const headDim = 32 * d.pick([1, 1, 2, 2, 3, 4]), indexDim = 32 * d.from(1, 3);
    const dims = Math.min(headDim, indexDim, d.pick([2, 16, 16, 30, 32, 32, 48, 64, 64]));
    const experts = d.chance(0.15) ? d.from(100, 300) : d.from(5, 24), big = experts >= 100;
    const packed = compression(d, layers, stages);
    return {
        architectures: ['DeepseekV41ForCausalLM'], model_type: 'deepseek_v41', dtype: 'bfloat16',
        bos_token_id: 0, eos_token_id: 1, pad_token_id: 2, ...(d.chance(0.7) ? { image_token_id: vocab - 5 } : {}),
        quantization_config: { quant_method: 'fp8', activation_scheme: 'dynamic', weight_block_size: [32, 32],
            scale_fmt: 'ue8m0', expert_dtype: 'fp4' },
        text_config: {
            model_type: 'deepseek_v41_text', vocab_size: vocab, num_hidden_layers: layers, num_attention_heads: heads,
            hidden_size: 32 * (big ? d.from(1, 3) : d.pick([1, 2, 3, 4, 5, 7])), num_key_value_heads: 1,
            head_dim: headDim, q_lora_rank: 32 * d.from(1, 4), o_groups: groups,
            o_lora_rank: (32 / gcd(32, groups)) * d.pick([1, 1, 2, 3]), index_head_dim: indexDim,
            moe_intermediate_size: 32 * (big ? 1 : d.from(1, 4)), hidden_act: 'silu', max_position_embeddings: 4096,
            swiglu_limit: d.pick([10, 1, 0.3]), rms_norm_eps: d.pick([1e-20, 1e-20, 1e-6, 0.01]),
            sliding_window: d.pick([1, 2, 5, 16, 31, 64, 128, 400]), ...rope(d, dims),
            n_routed_experts: experts, n_shared_experts: 1,
            num_experts_per_tok: d.pick([1, 2, 3, 5, Math.min(8, experts)]),
            scoring_func: 'sqrtsoftplus', topk_method: 'noaux_tc', norm_topk_prob: d.chance(0.75),
            routed_scaling_factor: d.pick([1.5, 1, 0.7, 2.5]),
            ...(d.chance(0.3) ? { gate_temp: d.pick([0.5, 1.7, 3]) } : {}),
            hc_mult: d.pick([1, 2, 3, 4, 4, 5, 8]), hc_sinkhorn_iters: d.pick([20, 20, 1, 2, 7]),
            hc_eps: d.pick([1e-6, 1e-6, 1e-3]), ...packed, ...engrams(d, layers, vocab),
            num_nextn_predict_layers: stages, ...drafter(d, layers, vocab, experts),
        },
    };
}

// Change a tensor of the folder in place; `change` gets and returns a number (for E8M0 the byte).
function rewrite(tensor, change) {
    const file = openSync(tensor.path, 'r+'), raw = Buffer.alloc(tensor.bytes);
    readSync(file, raw, 0, raw.length, tensor.at);
    if (tensor.type === 'F32')
        for (let at = 0; at < raw.length; at += 4)
            raw.writeFloatLE(change(raw.readFloatLE(at), at / 4), at);
    else if (tensor.type === 'BF16')
        for (let at = 0; at < raw.length; at += 2) {
            const v = Buffer.alloc(4);
            v.writeUInt16LE(raw.readUInt16LE(at), 2);
            raw.writeUInt16LE(bits(change(v.readFloatLE(0), at / 2)) >>> 16, at);
        }
    else
        raw.forEach((v, at) => (raw[at] = change(v, at)));
    writeSync(file, raw, 0, raw.length, tensor.at);
    closeSync(file);
}

// [what it does, which tensors, how]
const EXTREMES = [
    ['large sinks', /attn_sink$/, (v, i) => v * 25 + (i % 3 === 0 ? 90 : 0)],
    ['small sinks', /attn_sink$/, (v) => v - 60],
    ['large activations', /^embed\.weight$/, (v) => v * 3000],
    ['small activations', /^embed\.weight$/, (v) => v * 2 ** -14],
    ['quantiser floor', /(attn|ffn)_norm\.weight$/, (v) => v * 2 ** -31],
    ['zero columns', /(attn|ffn)_norm\.weight$/, (v, i) => (i % 64 < 32 ? 0 : v)],
    ['outliers', /(attn_norm|ffn_norm|q_norm|kv_norm)\.weight$/, (v, i) => (i % 37 === 5 ? v * 200 : v)],
    ['wide mixes', /hc_(attn|ffn)_(fn|base)$/, (v) => v * 12],
    ['wide latents', /compressor\.norm\.weight$/, (v, i) => (i % 16 === 3 ? v * 300 : v * 2 ** -7)],
    ['wide index weights', /indexer\.(weights_proj|k_norm)\.weight$/, (v) => v * 40],
    ['equal index keys', /indexer\.weights_proj\.weight$/, () => 0],
    ['strong bias', /ffn\.gate\.bias$/, (v, i) => v * 10 + (i % 4 === 0 ? 2 : 0)],
    ['equal routes', /ffn\.gate\.(weight|bias)$/, () => 0],
    ['loud routers', /ffn\.gate\.weight$/, (v) => v * 30],
    ['loud experts', /experts\.\d*[02468]\.w[13]\.scale$/, (v) => v + 3],
    ['loud engram', /engram\.(embed|wkv)\.scale$/, (v, i) => v + (i % 2 ? 2 : 0)],
    ['uneven scales', /attn\.w.*\.scale$/, (v, i) => v + (i % 5) - 2],
    ['high scales', /attn\.(wq_a|wkv)\.scale$/, (v) => v + 40],
    ['high expert scales', /experts\.\d*[13579]\.w[13]\.scale$/, (v) => v + 40],
    ['subnormal activations', /^embed\.weight$/, (v) => v * 2 ** -127],
    ['wide scales', /(attn\.w.*|experts.*)\.scale$/, (v, i) => (i % 11 === 4 ? 1 : v)],
];

// Apply some of the extremes to the folder; returns their names.
export function pushWeights(d, folder) {
    const chosen = d.chance(0.35) ? [] : d.some(EXTREMES, 0.12), tensors = listTensors(folder);
    for (const [, pattern, change] of chosen)
        for (const [name, tensor] of tensors)
            if (pattern.test(name))
                rewrite(tensor, change);
    return chosen.map(([name]) => name);
}

export function makePrompt(d, config, longest) {
    const { vocab_size: vocab } = config.text_config, image = config.image_token_id, few = d.chance(0.3) ? 6 : vocab;
    const some = d.from(4, 40), lengths = [1, 2, 3, some, some, some, d.from(41, 120), d.from(121, 300)];
    const length = Math.min(longest, d.pick(lengths));
    const ids = Array.from({ length }, () => (image !== undefined && d.chance(0.06) ? image : d.below(few)));
    if (image !== undefined && length > 4 && d.chance(0.3))
        ids.fill(image, length >> 1, (length >> 1) + 3);
    return ids;
}
