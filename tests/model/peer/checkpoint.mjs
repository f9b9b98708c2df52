// A checkpoint folder in the release layout (section 2), and what its config implies (sections 1, 3.6).

import { openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { E2M1_TABLE, E4M3_TABLE, E8M0_TABLE, f32, frequencies, fromBf16 } from './numbers.mjs';

// name -> {type, shape, file, at, bytes}
export function listTensors(folder) {
    const index = JSON.parse(readFileSync(join(folder, 'model.safetensors.index.json'), 'utf8'));
    const tensors = new Map();
    for (const shard of new Set(Object.values(index.weight_map))) {
        const file = openSync(join(folder, shard));
        const length = Buffer.alloc(8);
        readSync(file, length, 0, 8, 0);
        const header = Buffer.alloc(Number(length.readBigUInt64LE()));
        readSync(file, header, 0, header.length, 8);
        for (const [name, t] of Object.entries(JSON.parse(header.toString('utf8'))))
            if (name !== '__metadata__')
                tensors.set(name, { type: t.dtype, shape: t.shape, file, path: join(folder, shard),
                    at: 8 + header.length + t.data_offsets[0], bytes: t.data_offsets[1] - t.data_offsets[0] });
    }
    return tensors;
}

class Weights {
    constructor(folder) {
        this.tensors = listTensors(folder);
        this.kept = new Map();
    }

    bytes(name) {
        const t = this.tensors.get(name);
        if (!t)
            throw new Error(`no tensor ${name}`);
        const raw = new Uint8Array(new ArrayBuffer(t.bytes));
        readSync(t.file, raw, 0, t.bytes, t.at);
        return { raw, ...t };
    }

    keep(key, make) {
        if (!this.kept.has(key))
            this.kept.set(key, make());
        return this.kept.get(key);
    }

    // A BF16 or F32 tensor as a flat array.
    vector(name) {
        return this.keep(name, () => {
            const t = this.bytes(name);
            return t.type === 'BF16' ? fromBf16(new Uint16Array(t.raw.buffer)) : new Float32Array(t.raw.buffer);
        });
    }

    // The same as a matrix.
    matrix(name) {
        const [rows, cols] = this.tensors.get(name).shape;
        return this.keep(`matrix ${name}`, () => ({ rows, cols, data: new Float64Array(this.vector(name)) }));
    }

    // FP8 with a scale per 32x32 block, or FP4 with a scale per row and 32 inputs, dequantised.
    quantised(name) {
        return this.keep(name, () => {
            const w = this.bytes(`${name}.weight`), s = this.bytes(`${name}.scale`);
            const fp4 = w.type === 'I8', rows = w.shape[0], cols = w.shape[1] * (fp4 ? 2 : 1);
            const data = new Float64Array(rows * cols);
            for (let r = 0; r < rows; r++)
                for (let c = 0; c < cols; c++) {
                    const at = r * cols + c;
                    const code = fp4 ? (w.raw[at >> 1] >> (at % 2 ? 4 : 0)) & 15 : w.raw[at];
                    const scale = s.raw[(fp4 ? r : r >> 5) * s.shape[1] + (c >> 5)];
                    data[at] = (fp4 ? E2M1_TABLE : E4M3_TABLE)[code] * E8M0_TABLE[scale];
                }
            return { rows, cols, data };
        });
    }

    // One row of an Engram table: FP8 with a scale per row and 32 columns.
    tableRow(name, row) {
        const w = this.keep(`${name}.weight`, () => this.bytes(`${name}.weight`));
        const s = this.keep(`${name}.scale`, () => this.bytes(`${name}.scale`));
        const cols = w.shape[1];
        return Float32Array.from({ length: cols },
            (_, c) => E4M3_TABLE[w.raw[row * cols + c]] * E8M0_TABLE[s.raw[row * s.shape[1] + (c >> 5)]]);
    }
}

// The bytes a byte-level token string stands for; null where a character is no byte's.
function byteLetters() {
    const letters = new Map();
    let next = 256;
    for (let b = 0; b < 256; b++) {
        const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        letters.set(String.fromCodePoint(printable ? b : next++), b);
    }
    return letters;
}

function normalise(text) {
    const folded = text.normalize('NFKC').normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
    const spaced = folded.replace(/[ \t\r\n]+/g, ' ');
    return (spaced === ' ' ? '\ue000' : spaced).trim().replaceAll('\ue000', ' ') || text;
}

// The class of every token id, and how many there are.
export function tokenMap(folder) {
    const t = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8'));
    const letters = byteLetters(), decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    const raw = new Map(Object.entries(t.model.vocab).map(([string, id]) => [id, { string }]));
    for (const added of t.added_tokens)
        raw.set(added.id, { string: added.content, text: added.content });
    const map = new Uint32Array(Math.max(...raw.keys()) + 1), numbers = new Map();
    for (let id = 0; id < map.length; id++) {
        const { string, text: whole } = raw.get(id);
        const text = whole ?? decoder.decode(Uint8Array.from([...string], (c) => letters.get(c)));
        const key = text.includes('\ufffd') ? string : normalise(text);
        if (!numbers.has(key))
            numbers.set(key, numbers.size);
        map[id] = numbers.get(key);
    }
    return { map, classes: numbers.size };
}

const M32 = 0xffffffffn, M64 = (1n << 64n) - 1n, M128 = (1n << 128n) - 1n;

// numpy's SeedSequence(seed).generate_state(4, uint64), for a seed below 2^32.
function seedSequence(seed) {
    let hash = 0x43b0d7e5n;
    const stir = (v, factor) => {
        v ^= hash;
        hash = (hash * factor) & M32;
        v = (v * hash) & M32;
        return v ^ (v >> 16n);
    };
    const pool = [BigInt(seed), 0n, 0n, 0n].map((v) => stir(v, 0x931e8875n));
    for (let from = 0; from < 4; from++)
        for (let to = 0; to < 4; to++)
            if (from !== to) {
                const v = (pool[to] * 0xca01f9ddn - stir(pool[from], 0x931e8875n) * 0x4973f715n) & M32;
                pool[to] = v ^ (v >> 16n);
            }
    hash = 0x8b51f9ddn;
    const half = Array.from({ length: 8 }, (_, i) => stir(pool[i % 4], 0x58f38dedn));
    return [0, 2, 4, 6].map((i) => half[i] | (half[i + 1] << 32n));
}

// `count` draws of numpy's default_rng(seed).integers(0, bound), bound > 2^32 (PCG64, Lemire's rejection).
function draws(seed, bound, count) {
    const [a, b, c, d] = seedSequence(seed);
    const increment = ((((c << 64n) | d) << 1n) | 1n) & M128;
    let state = 0n;
    const step = () => (state = (state * 0x2360ed051fc65da44385df649fccf645n + increment) & M128);
    step();
    state = (state + ((a << 64n) | b)) & M128;
    step();
    const next = () => {
        step();
        const x = ((state >> 64n) ^ state) & M64, turn = state >> 122n;
        return ((x >> turn) | (x << (64n - turn))) & M64;
    };
    return Array.from({ length: count }, () => {
        let product = next() * bound;
        while ((product & M64) < (1n << 64n) % bound)
            product = next() * bound;
        return product >> 64n;
    });
}

function isPrime(n) {
    for (let d = 2; d * d <= n; d++)
        if (n % d === 0)
            return false;
    return n > 1;
}

// Per Engram layer: primes and offsets in column order, multipliers.
export function engramConstants(text, classes) {
    const columns = (text.engram_max_ngram_size - 1) * text.engram_n_heads;
    const bound = ((1n << 63n) - 1n) / BigInt(classes) / 2n;
    let prime = text.engram_vocab_size - 1;
    return text.engram_layer_ids.map((layer) => {
        const primes = [], offsets = [];
        let rows = 0;
        for (let i = 0; i < columns; i++) {
            do
                prime++;
            while (!isPrime(prime));
            primes.push(BigInt(prime));
            offsets.push(BigInt(rows));
            rows += prime;
        }
        const multipliers = draws(10007 * layer, bound, text.engram_max_ngram_size).map((v) => 2n * v + 1n);
        return { layer, primes, offsets, multipliers, rows };
    });
}

// The frequency tables of the release's rope size come from a GPU, whose powf differs in the last bit here and there
// (section 8.1). They are used where theta and YaRN are the release's as well.
function gpuTable(kind) {
    const raw = readFileSync(new URL(`../../vectors/tiny-a/unit/rope.${kind}.freq_gpu.f32`, import.meta.url));
    return new Float32Array(new Uint8Array(raw).buffer);
}

function ropeTables(text) {
    const dims = text.qk_rope_head_dim, y = text.rope_scaling;
    const packedTheta = text.compress_rope_theta ?? text.rope_theta;
    const yarn = y && { factor: f32(y.factor), fast: y.beta_fast, slow: y.beta_slow,
        original: y.original_max_position_embeddings };
    const released = yarn && packedTheta === 160000 && yarn.factor === 16 && yarn.original === 65536 &&
        yarn.fast === 32 && yarn.slow === 1;
    return {
        plain: dims === 64 && text.rope_theta === 10000 ? gpuTable('plain') : frequencies(dims, text.rope_theta, null),
        packed: dims === 64 && released ? gpuTable('yarn') : frequencies(dims, packedTheta, yarn),
    };
}

// The last source at or before each layer, for layers that compress; -1 for the others.
function owners(sources, ratios, layers) {
    return Array.from({ length: layers }, (_, layer) =>
        ratios[layer] ? Math.max(...(sources ?? []).filter((s) => s <= layer)) : -1);
}

export function openModel(folder, options = {}) {
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    const text = config.text_config, layers = text.num_hidden_layers;
    const model = { config, text, layers, weights: new Weights(folder), rope: ropeTables(text) };
    model.kvOwner = owners(text.kv_source_layer_ids, text.compress_ratios, layers);
    model.indexOwner = owners(text.index_source_layer_ids, text.compress_ratios, layers);
    model.engrams = [];
    if (text.engram_layer_ids?.length) {
        const { map, classes } = options.map ? { map: options.map, classes: text.engram_compressed_vocab_size }
            : tokenMap(folder);
        if (classes !== text.engram_compressed_vocab_size)
            throw new Error(`${classes} token classes, the config says ${text.engram_compressed_vocab_size}`);
        model.map = map;
        model.engrams = engramConstants(text, classes);
        model.engrams.forEach((e, i) => {
            if (e.rows !== text.engram_num_embeddings[i])
                throw new Error(`${e.rows} Engram rows, the config says ${text.engram_num_embeddings[i]}`);
        });
    }
    return model;
}
