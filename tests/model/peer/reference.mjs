// A second implementation of the target's forward pass and of the drafter, written from docs/model.md alone, for whole
// sequences: no cache, no chunks, nothing shared with src/. compare.mjs holds the engine against it.
//
// A stream is one Float32Array per position (hc_mult x hidden, stream-major); `pre` one of hc_mult values.

import { argmax, best, bf, dot, exp, f32, inverseRoot, lin32, linb, linq, q4e4, q4e8, q8, rmsnorm, rope, sigmoid, silu,
    softplus } from './numbers.mjs';

// The top of a stream: `copies` copies of the embedding, and (1, 0, 0, ...).
function embed(model, ids) {
    const { hc_mult: copies, hidden_size: dim } = model.text, table = model.weights.vector('embed.weight');
    const h = ids.map((id) => {
        const out = new Float32Array(copies * dim);
        for (let j = 0; j < copies; j++)
            out.set(table.subarray(id * dim, (id + 1) * dim), j * dim);
        return out;
    });
    return { h, pre: ids.map(() => Float32Array.from({ length: copies }, (_, j) => (j ? 0 : 1))) };
}

// ---- hyper-connections (section 3.2)

function sinkhorn(m, n, rounds, eps) {
    const divide = (at, step, plus) => {
        let sum = 0;
        for (let i = 0; i < n; i++)
            sum = f32(sum + m[at + i * step]);
        for (let i = 0; i < n; i++)
            m[at + i * step] = m[at + i * step] / f32(sum + plus);
    };
    for (let i = 0; i < n; i++) {
        const top = Math.max(...m.subarray(i * n, (i + 1) * n));
        for (let k = 0; k < n; k++)
            m[i * n + k] = exp(f32(m[i * n + k] - top));
        divide(i * n, 1, 0);
        for (let k = 0; k < n; k++)
            m[i * n + k] += eps;
    }
    for (let round = 0; round < rounds; round++) {
        for (let i = 0; round && i < n; i++)
            divide(i * n, 1, eps);
        for (let k = 0; k < n; k++)
            divide(k, n, eps);
    }
    return m;
}

function coefficients(model, prefix, which, h) {
    const { hc_mult: n, hc_sinkhorn_iters: rounds } = model.text, eps = f32(model.text.hc_eps);
    const w = model.weights, fn = w.matrix(`${prefix}hc_${which}_fn`), base = w.vector(`${prefix}hc_${which}_base`);
    const scale = w.vector(`${prefix}hc_${which}_scale`), r = inverseRoot(h, model.eps);
    const mix = lin32(h, fn).map((v, i) => {
        const s = scale[i < n ? 0 : i < 2 * n ? 1 : 2];
        return f32(f32(f32(v * r) * s) + base[i]);
    });
    return {
        pre: mix.subarray(0, n).map((v) => f32(sigmoid(v) + eps)),
        post: mix.subarray(n, 2 * n).map((v) => 2 * sigmoid(v)),
        comb: sinkhorn(mix.slice(2 * n), n, rounds, eps),
    };
}

function collapse(h, a) {
    const dim = h.length / a.length;
    return Float32Array.from({ length: dim }, (_, d) => {
        let sum = 0;
        for (let j = 0; j < a.length; j++)
            sum = f32(sum + f32(a[j] * h[j * dim + d]));
        return bf(sum);
    });
}

function expand(y, h, { post, comb }) {
    const n = post.length, dim = y.length, out = new Float32Array(h.length);
    for (let k = 0; k < n; k++)
        for (let d = 0; d < dim; d++) {
            let sum = 0;
            for (let i = 0; i < n; i++)
                sum = f32(sum + f32(comb[i * n + k] * h[i * dim + d]));
            out[k * dim + d] = bf(f32(f32(post[k] * y[d]) + sum));
        }
    return out;
}

// ---- attention (section 3.3)

function queries(model, prefix, x, position, freq) {
    const { num_attention_heads: heads, head_dim: dim } = model.text, w = model.weights;
    const qr = rmsnorm(linq(x, w.quantised(`${prefix}wq_a`)), w.vector(`${prefix}q_norm.weight`), model.eps);
    const q = linq(qr, w.quantised(`${prefix}wq_b`));
    for (let head = 0; head < heads; head++)
        rope(q.subarray(head * dim, (head + 1) * dim), freq, position);
    return { qr, q };
}

function windowKey(model, prefix, x, position, freq) {
    const w = model.weights;
    const k = rmsnorm(linq(x, w.quantised(`${prefix}wkv`)), w.vector(`${prefix}kv_norm.weight`), model.eps);
    return q8(rope(k, freq, position));
}

function softmaxSum(q, list, sink, scale) {
    const score = Float64Array.from(list, (k) => f32(dot(q, k) * scale));
    const top = score.reduce((a, s) => Math.max(a, s), -1e30);
    const p = score.map((s) => exp(f32(s - top)));
    let below = 0;
    for (const v of p)
        below += v;
    below = f32(f32(below) + exp(f32(sink - top)));
    const over = new Float64Array(q.length);
    list.forEach((k, i) => {
        const weight = bf(p[i]);
        for (let d = 0; d < q.length; d++)
            over[d] += weight * k[d];
    });
    return Float32Array.from(over, (v) => bf(f32(f32(v) / below)));
}

// One query over its list, and everything after it.
function attend(model, prefix, q, list, position, freq) {
    const { num_attention_heads: heads, head_dim: dim, o_groups: groups } = model.text, w = model.weights;
    const sink = w.vector(`${prefix}attn_sink`), scale = f32(dim ** -0.5), o = new Float32Array(q.length);
    for (let head = 0; head < heads; head++) {
        const out = softmaxSum(q.subarray(head * dim, (head + 1) * dim), list, sink[head], scale);
        o.set(rope(out, freq, position, -1), head * dim);
    }
    const a = w.quantised(`${prefix}wo_a`), rank = a.rows / groups, u = new Float32Array(a.rows);
    for (let g = 0; g < groups; g++) {
        const part = { rows: rank, cols: a.cols, data: a.data.subarray(g * rank * a.cols, (g + 1) * rank * a.cols) };
        u.set(linb(o.subarray(g * a.cols, (g + 1) * a.cols), part), g * rank);
    }
    return linq(u, w.quantised(`${prefix}wo_b`));
}

// ---- compressed entries and index keys (section 3.4)

function pairLatent(kv, gate) {
    return kv[0].map((_, c) => {
        const top = Math.max(gate[0][c], gate[1][c]);
        const a = exp(f32(gate[0][c] - top)), b = exp(f32(gate[1][c] - top)), sum = f32(a + b);
        return bf(f32(f32(f32(a / sum) * kv[0][c]) + f32(f32(b / sum) * kv[1][c])));
    });
}

function compress(model, prefix, ratio, x) {
    const w = model.weights, comp = `${prefix}compressor.`, wkv = w.matrix(`${comp}wkv.weight`), entries = [];
    for (let j = 0; (j + 1) * ratio <= x.length; j++) {
        const pair = x.slice(j * ratio, (j + 1) * ratio);
        const latent = ratio === 1 ? linb(pair[0], wkv) : pairLatent(pair.map((v) => lin32(v, wkv)),
            pair.map((v) => lin32(v, w.matrix(`${comp}wgate.weight`))));
        const normed = rmsnorm(latent, w.vector(`${comp}norm.weight`), model.eps);
        const key = rmsnorm(linb(normed, w.matrix(`${prefix}indexer.wk.weight`)),
            w.vector(`${prefix}indexer.k_norm.weight`), model.eps);
        entries.push({ key: q4e8(rope(key, model.rope.packed, j * ratio)),
            kv: q4e4(rope(normed, model.rope.packed, j * ratio)) });
    }
    return entries;
}

// ---- indexer (section 3.5)

function indexScores(model, prefix, x, qr, position, entries) {
    const { index_n_heads: heads, index_head_dim: dim } = model.text, w = model.weights;
    let q = linq(qr, w.quantised(`${prefix}indexer.wq_b`));
    for (let head = 0; head < heads; head++)
        rope(q.subarray(head * dim, (head + 1) * dim), model.rope.packed, position);
    q = q4e8(q);
    const unit = f32(dim ** -0.5 * heads ** -0.5);
    const weight = linb(x, w.matrix(`${prefix}indexer.weights_proj.weight`)).map((v) => bf(f32(v * unit)));
    return entries.map(({ key }) => {
        let sum = 0;
        for (let head = 0; head < heads; head++)
            sum += bf(f32(Math.max(bf(dot(q.subarray(head * dim, (head + 1) * dim), key)), 0) * weight[head]));
        return bf(f32(sum));
    });
}

// Which entries lie in the kept blocks.
function candidates(model, score) {
    const { candidate_block_size: size, candidate_topk_blocks: keep } = model.text;
    const value = [];
    for (let at = 0; at < score.length; at += size)
        value.push(Math.max(...score.slice(at, at + size)));
    if (value.length)
        value[value.length - 1] = Infinity;
    const { ids, margin } = best(value, keep);
    return { mask: score.map((_, j) => ids.includes(Math.floor(j / size))), margin };
}

// ---- mixture of experts (section 3.7)

function route(model, prefix, x, perToken) {
    const t = model.text, w = model.weights, temperature = f32(t.gate_temp ?? 1);
    const score = lin32(x, w.matrix(`${prefix}gate.weight`)).map((z) => Math.sqrt(softplus(f32(z / temperature))));
    const bias = w.vector(`${prefix}gate.bias`);
    const { ids, margin } = best(score.map((s, e) => s + bias[e]), perToken);
    let sum = 0;
    for (const e of ids)
        sum = f32(sum + score[e]);
    const norm = t.norm_topk_prob && perToken > 1, scale = f32(t.routed_scaling_factor);
    const weight = ids.map((e) => f32((norm ? f32(score[e] / f32(sum + f32(1e-20))) : score[e]) * scale));
    return { ids, weight, margin };
}

function expert(model, name, x, weight) {
    const w = model.weights, limit = f32(model.text.swiglu_limit);
    const a = linq(x, w.quantised(`${name}.w1`)), b = linq(x, w.quantised(`${name}.w3`));
    const t = a.map((v, i) => {
        const product = f32(silu(Math.min(v, limit)) * Math.min(Math.max(b[i], -limit), limit));
        return bf(weight === undefined ? product : f32(weight * product));
    });
    return linq(t, w.quantised(`${name}.w2`));
}

function moe(model, prefix, x, perToken) {
    const { ids, weight, margin } = route(model, prefix, x, perToken), sum = new Float32Array(x.length);
    const chosen = ids.map((e, i) => ({ e, w: weight[i] })).sort((a, b) => a.e - b.e);
    for (const { e, w } of chosen)
        expert(model, `${prefix}experts.${e}`, x, w).forEach((v, d) => (sum[d] += v));
    expert(model, `${prefix}shared_experts`, x).forEach((v, d) => (sum[d] += v));
    return { y: sum.map(bf), margin, ids, weight };
}

// ---- Engram (section 3.6)

export function engramRows(model, engram, ids, position) {
    const t = model.text, image = model.config.image_token_id ?? -1;
    let mixed = 0n, blocked = false;
    const rows = [];
    for (let back = 0; back < t.engram_max_ngram_size; back++) {
        blocked = blocked || back > position || ids[position - back] === image;
        const token = blocked ? t.engram_pad_token_id : ids[position - back];
        mixed ^= BigInt(model.map[token]) * engram.multipliers[back];
        for (let head = 0; back && head < t.engram_n_heads; head++) {
            const column = (back - 1) * t.engram_n_heads + head;
            rows.push(Number((mixed % engram.primes[column]) + engram.offsets[column]));
        }
    }
    return rows;
}

function addEngram(model, engram, ids, h) {
    const t = model.text, dim = t.hidden_size, w = model.weights, prefix = `layers.${engram.layer}.engram.`;
    const qw = w.vector(`${prefix}q_weight`), kw = w.vector(`${prefix}k_weight`), unit = f32(dim ** -0.5);
    return h.map((stream, position) => {
        if (ids[position] === model.config.image_token_id)
            return stream;
        const found = engramRows(model, engram, ids, position).map((row) => w.tableRow(`${prefix}embed`, row));
        const looked = new Float32Array(found.length * t.engram_head_dim);
        found.forEach((row, i) => looked.set(row.map(bf), i * t.engram_head_dim));
        const kv = linq(looked, w.quantised(`${prefix}wkv`)), value = kv.subarray(t.hc_mult * dim);
        const out = new Float32Array(stream.length);
        for (let j = 0; j < t.hc_mult; j++) {
            const part = stream.subarray(j * dim, (j + 1) * dim), key = kv.subarray(j * dim, (j + 1) * dim);
            const weighed = Float64Array.from(part, (v, d) => v * f32(qw[j * dim + d] * kw[j * dim + d]));
            const roots = f32(inverseRoot(part, model.eps) * inverseRoot(key, model.eps));
            const product = f32(f32(dot(weighed, key) * roots) * unit);
            const size = f32(Math.sqrt(Math.max(Math.abs(product), f32(1e-6))));
            const gate = sigmoid(product < 0 || Object.is(product, -0) ? -size : size);
            for (let d = 0; d < dim; d++)
                out[j * dim + d] = bf(f32(part[d] + f32(gate * value[d])));
        }
        return out;
    });
}

// ---- a block, the target, the drafter

// attention(x) takes all normed rows and returns those of `at`; the rest of the block is made for them alone.
function block(model, prefix, { h, pre }, at, perToken, attention) {
    const w = model.weights;
    const x = h.map((v, i) => rmsnorm(collapse(v, pre[i]), w.vector(`${prefix}attn_norm.weight`), model.eps));
    const y = attention(x), out = { h: [], pre: [], routed: [], margin: [] };
    for (const i of at) {
        const first = coefficients(model, prefix, 'attn', h[i]), middle = expand(y[i], h[i], first);
        const second = coefficients(model, prefix, 'ffn', middle);
        const normed = rmsnorm(collapse(middle, first.pre), w.vector(`${prefix}ffn_norm.weight`), model.eps);
        out.routed[i] = moe(model, `${prefix}ffn.`, normed, perToken);
        out.h[i] = expand(out.routed[i].y, middle, second);
        out.pre[i] = second.pre;
        out.margin[i] = out.routed[i].margin;
    }
    return out;
}

// Select this owner's lists for the rows of `at`; `shared` carries what later layers read.
function selectEntries(model, layer, x, at, made, shared) {
    const t = model.text, ratio = t.compress_ratios[layer], prefix = `layers.${layer}.attn.`;
    const source = t.candidate_source_layer_id, within = source != null && layer > source ? shared.candidates : null;
    const publishes = layer === source;
    shared.candidates = publishes ? [] : within;
    shared.lists = [];
    for (const i of at) {
        const visible = shared.entries.slice(0, Math.floor((i + 1) / ratio));
        let score = indexScores(model, prefix, x[i], made[i].qr, i, visible);
        if (publishes)
            shared.candidates[i] = candidates(model, score);
        else if (within)
            score = score.map((s, j) => (within[i].mask[j] ? s : -Infinity));
        const taken = best(score, t.index_topk);
        shared.lists[i] = { list: taken.ids.sort((a, b) => a - b),
            margin: Math.min(within ? within[i].margin : Infinity, taken.margin) };
    }
}

function targetAttention(model, layer, x, at, shared) {
    const t = model.text, ratio = t.compress_ratios[layer], prefix = `layers.${layer}.attn.`;
    const freq = ratio ? model.rope.packed : model.rope.plain, made = [], out = [];
    for (const i of at)
        made[i] = queries(model, prefix, x[i], i, freq);
    const keys = x.map((v, i) => windowKey(model, prefix, v, i, freq));
    if (ratio && model.kvOwner[layer] === layer)
        shared.entries = compress(model, prefix, ratio, x);
    if (ratio && model.indexOwner[layer] === layer)
        selectEntries(model, layer, x, at, made, shared);
    for (const i of at) {
        const list = keys.slice(Math.max(0, i - t.sliding_window + 1), i + 1);
        if (ratio)
            list.push(...shared.lists[i].list.map((j) => shared.entries[j].kv));
        out[i] = attend(model, prefix, made[i].q, list, i, freq);
    }
    return out;
}

// The whole sequence. Returns per layer the streams, `pre` and margins; the taps; logits of the rows asked for.
// With `given` (per layer {h, pre}) every layer starts from what is given of the one before it, so that a difference
// shows in the layer that makes it and nowhere else; then `only` may name the positions that are wanted.
export function forward(model, ids, { rows = ids.map((_, i) => i), given, only } = {}) {
    const t = model.text, shared = {}, layers = [], taps = [], at = only ?? ids.map((_, i) => i);
    model.eps = f32(t.rms_norm_eps);
    let state = embed(model, ids);
    for (let layer = 0; layer < model.layers; layer++) {
        const engram = model.engrams.find((e) => e.layer === layer);
        if (engram)
            state = { h: addEngram(model, engram, ids, state.h), pre: state.pre };
        if (t.dspark_target_layer_ids?.includes(layer))
            taps.push(state.h.map((v) => streamMean(v, t.hc_mult)));
        state = block(model, `layers.${layer}.`, state, at, t.num_experts_per_tok,
            (x) => targetAttention(model, layer, x, at, shared));
        const listed = t.compress_ratios[layer] ? shared.lists : null;
        layers.push({ ...state, entries: shared.entries, lists: listed,
            margin: state.margin.map((m, i) => Math.min(m, listed ? listed[i].margin : Infinity)) });
        if (given)
            state = given[layer];
    }
    return { layers, taps, logits: finish(model, state, rows) };
}

// From the last layer's streams to logits.
export function finish(model, { h, pre }, rows) {
    const norm = model.weights.vector('norm.weight'), head = model.weights.matrix('head.weight');
    return rows.map((i) => lin32(rmsnorm(collapse(h[i], pre[i]), norm, model.eps), head));
}

function streamMean(h, copies) {
    const dim = h.length / copies;
    return Float32Array.from({ length: dim }, (_, d) => {
        let sum = 0;
        for (let j = 0; j < copies; j++)
            sum = f32(sum + h[j * dim + d]);
        return bf(f32(sum / copies));
    });
}

// The drafter's rings for every position of a forward pass: [stage][position] keys.
export function ingest(model, { taps }) {
    const w = model.weights, stages = model.text.num_nextn_predict_layers;
    const rows = taps[0].map((_, i) => {
        const hidden = new Float32Array(taps.length * taps[0][i].length);
        taps.forEach((tap, k) => hidden.set(tap[i], k * tap[i].length));
        return rmsnorm(linq(hidden, w.quantised('mtp.0.main_proj')), w.vector('mtp.0.main_norm.weight'), model.eps);
    });
    return Array.from({ length: stages }, (_, s) =>
        rows.map((x, i) => windowKey(model, `mtp.${s}.attn.`, x, i, model.rope.plain)));
}

// What is drafted after position p, with `anchor` the token chosen for p + 1.
export function propose(model, rings, p, anchor) {
    const t = model.text, w = model.weights, size = t.dspark_block_size, stages = t.num_nextn_predict_layers;
    const rows = Array.from({ length: size }, (_, r) => r);
    let state = embed(model, rows.map((r) => (r ? t.dspark_noise_token_id : anchor)));
    const trail = [];
    for (let s = 0; s < stages; s++) {
        const prefix = `mtp.${s}.attn.`, freq = model.rope.plain;
        state = block(model, `mtp.${s}.`, state, rows, t.dspark_num_experts_per_tok, (x) => {
            const list = rings[s].slice(Math.max(0, p - t.sliding_window + 1), p + 1);
            list.push(...x.map((v, r) => windowKey(model, prefix, v, p + 1 + r, freq)));
            return x.map((v, r) => {
                const { q } = queries(model, prefix, v, p + 1 + r, freq);
                return attend(model, prefix, q, list, p + 1 + r, freq);
            });
        });
        trail.push(state);
    }
    const last = `mtp.${stages - 1}.`, norm = w.vector(`${last}norm.weight`), head = w.matrix('head.weight');
    const embedding = w.matrix(`${last}markov_head.embed.weight`), out = { ids: [], logits: [], confidence: [], trail };
    let token = anchor;
    for (let r = 0; r < size; r++) {
        const x = collapse(state.h[r], state.pre[r]);
        const e = embedding.data.subarray(token * embedding.cols, (token + 1) * embedding.cols);
        const markov = lin32(e, w.matrix(`${last}markov_head.head.weight`));
        const logits = lin32(rmsnorm(x, norm, model.eps), head).map((v, i) => v + markov[i]);
        out.confidence.push(lin32(Float32Array.of(...x, ...e), w.matrix(`${last}confidence_head.proj.weight`))[0]);
        out.logits.push(logits);
        out.ids.push((token = argmax(logits)));
    }
    return out;
}
