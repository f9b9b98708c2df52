// The engine against reference.mjs on random checkpoints.
//
//   node compare.mjs PROGRAM FOLDER [SEED] [CONFIGS] [LONGEST]
//
// For each checkpoint: every layer of the whole run, each from the engine's own streams before it; one layer of
// `trace --layer` from ours; the logits from the engine's last streams, and the last ones again in plain C, bit for
// bit; what the drafter proposes from the engine's taps. What is made in FOLDER is removed. PEER_VERBOSE=1 tells of
// every check, not only of those that fail.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openModel } from './checkpoint.mjs';
import { dice, makeConfig, makePrompt, pushWeights } from './configs.mjs';
import { fromBf16, shake, toBf16 } from './numbers.mjs';
import { finish, forward, ingest, propose } from './reference.mjs';

const [program, folder, seedText, countText, longestText] = process.argv.slice(2);
const firstSeed = Number(seedText || Date.now() % 1e9), count = Number(countText ?? 12);
const longest = Number(longestText ?? 300);
const work = join(folder, 'peer-reference'), checkpoint = join(work, 'checkpoint');
const loud = process.env.PEER_VERBOSE;
const SHAKES = 40, NEAR_DRAFT = 0.01;
let passed = 0, failed = 0;
const seen = { layers: 0, rows: 0, edge: 0, elements: 0, unequal: 0, notNumbers: 0, drafts: 0, draftEdge: 0 };
const worst = { places: 0, pre: 0, logit: 0, noise: 0, draft: 0 }; // of what counts as near

function run(...args) {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 24,
        env: { ...process.env, PACELINE_CACHE_DIR: join(work, 'cache') } });
}

const bytes = (path) => new Uint8Array(readFileSync(path)).buffer;

function flatten(rows) {
    const out = new Float32Array(rows.reduce((n, row) => n + row.length, 0));
    let at = 0;
    for (const row of rows) {
        out.set(row, at);
        at += row.length;
    }
    return out;
}

function cut(flat, rows) {
    const n = flat.length / rows;
    return Array.from({ length: rows }, (_, i) => flat.subarray(i * n, (i + 1) * n));
}

// h.bf16 and pre.f32 of a folder, per layer.
function readStreams(dir, layers, rows) {
    const h = cut(fromBf16(new Uint16Array(bytes(join(dir, 'h.bf16')))), layers);
    const pre = cut(new Float32Array(bytes(join(dir, 'pre.f32'))), layers);
    return h.map((v, layer) => ({ h: cut(v, rows), pre: cut(pre[layer], rows) }));
}

const difference = (a, b) => (a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : Math.abs(a - b) || Infinity);
const largest = (x) => x.reduce((a, v) => Math.max(a, Math.abs(v)), 0);

// One row of streams: the largest difference in units of the row's last bfloat16 place, how many elements are unequal.
function rowDistance(mine, theirs, i) {
    const row = mine.h[i], other = theirs.h[i], place = largest(row) * 2 ** -8 || 1;
    let places = 0, unequal = 0, pre = 0;
    row.forEach((v, k) => {
        const d = difference(v, other[k]);
        unequal += d !== 0;
        places = Math.max(places, d / place || 0);
    });
    mine.pre[i].forEach((v, k) => (pre = Math.max(pre, difference(v, theirs.pre[i][k]))));
    return { places, unequal, share: unequal / row.length, pre };
}

const near = (d) => d.places <= 1 && d.share <= 0.05 && d.pre <= 1e-3;

function apart(a, b) {
    let most = 0, sum = 0;
    a.forEach((v, i) => {
        const d = difference(v, b[i]);
        most = Math.max(most, d);
        sum += d;
    });
    return { most, mean: sum / a.length };
}

function check(good, what) {
    good ? passed++ : failed++;
    if (!good || loud)
        console.log(`${good ? '    ' : 'DIFFERENT'} ${what}`);
    return good;
}

// Our layers once more, in another order of summation each time.
function* shakes(d, again) {
    for (let turn = 0; turn < SHAKES; turn++) {
        const noise = dice(d.below(2 ** 31));
        shake({ lanes: [1, 16, 2, 32, 4, 8, 3, 5][turn % 8], roll: () => noise.below(2 ** 24) / 2 ** 24 });
        const result = again();
        shake(null);
        yield result;
    }
}

// A layer of ours beside the engine's, and the rows that are not near.
function lay(name, at, mine, theirs) {
    const rows = mine.h.map((_, i) => rowDistance(mine, theirs, i)), good = rows.filter(near);
    seen.layers++;
    seen.rows += rows.length;
    seen.edge += rows.length - good.length;
    for (const r of good) {
        seen.elements += mine.h[0].length;
        seen.unequal += r.unequal;
        worst.places = Math.max(worst.places, r.places);
        worst.pre = Math.max(worst.pre, r.pre);
    }
    seen.notNumbers += mine.h.reduce((n, row) => n + row.filter(Number.isNaN).length, 0);
    const left = rows.map((now, i) => ({ i, now, spread: 0, pre: 0 })).filter(({ now }) => !near(now));
    return { name, at, mine, theirs, rows: rows.length, edge: left.length, left };
}

// May the row be as far off as it is, seeing where it went in another order?
function excused(layer, row, other) {
    const moved = rowDistance(layer.mine, other, row.i);
    row.spread = Math.max(row.spread, moved.places);
    row.pre = Math.max(row.pre, moved.pre);
    return near(rowDistance(other, layer.theirs, row.i)) ||
        (row.now.places <= 2 * row.spread + 1 && row.now.pre <= 2 * row.pre + 1e-3);
}

function tell({ i, now, spread }, { mine }) {
    return `row ${i} ${now.places.toFixed(1)} places, ${now.unequal} elements, pre ${now.pre.toExponential(1)}, ` +
        `spread ${spread.toFixed(1)}, choice by ${mine.margin[i].toExponential(1)}`;
}

// Hold layers against the engine's. A row may be far from ours only where it is as far from itself when the order of
// summation changes (a rounding, an expert or an entry on the edge). `again` gives rows of our layers in the order now
// set.
function checkLayers(layers, again, d) {
    const waiting = () => [...new Set(layers.flatMap((layer) => layer.left.map((row) => row.i)))];
    if (waiting().length)
        for (const others of shakes(d, () => again(waiting()))) {
            for (const layer of layers)
                layer.left = layer.left.filter((row) => !excused(layer, row, others[layer.at]));
            if (!waiting().length)
                break;
        }
    for (const layer of layers)
        check(!layer.left.length, [`${layer.name}: ${layer.edge} of ${layer.rows} rows on an edge`,
            ...layer.left.slice(0, 4).map((row) => tell(row, layer))].join('\n    '));
}

function compareLayers(model, ids, d) {
    const out = join(work, 'trace'), args = ['trace', '-m', checkpoint, '--ids', ids.join(','), '--out', out];
    run(...args);
    const theirs = readStreams(out, model.layers, ids.length), mine = forward(model, ids, { rows: [], given: theirs });
    checkLayers(mine.layers.map((layer, i) => lay(`layer ${i}`, i, layer, theirs[i])),
        (only) => forward(model, ids, { rows: [], given: theirs, only }).layers, d);
    const free = forward(model, ids), one = d.below(model.layers), h = join(work, 'h'), pre = join(work, 'pre');
    writeFileSync(h, toBf16(flatten(free.layers.map((l) => flatten(l.h)))));
    writeFileSync(pre, flatten(free.layers.map((l) => flatten(l.pre))));
    run(...args, '--layer', `${one}`, '--h', h, '--pre', pre);
    checkLayers([lay(`layer ${one} alone`, one, free.layers[one], readStreams(out, 1, ids.length)[0])],
        (only) => forward(model, ids, { rows: [], given: free.layers, only }).layers, d);
    return { theirs, taps: mine.taps, free };
}

function compareLogits(model, ids, { theirs, free }) {
    const file = join(work, 'logits'), args = ['logits', '-m', checkpoint, '--ids', ids.join(','), '--out', file];
    run(...args, '--isa', 'scalar', '--threads', '1');
    const last = readFileSync(file);
    run(...args, '--all');
    const all = readFileSync(file), logits = new Float32Array(bytes(file));
    check(last.equals(all.subarray(all.length - last.length)), 'the last logits alone, in plain C on one thread');
    const exact = flatten(finish(model, theirs.at(-1), ids.map((_, i) => i)));
    const size = Math.sqrt(exact.reduce((a, v) => a + v * v, 0) / exact.length);
    const here = apart(exact, logits), whole = apart(flatten(free.logits), logits);
    worst.logit = Math.max(worst.logit, here.most / (size || 1));
    worst.noise = Math.max(worst.noise, whole.mean / (size || 1));
    check(here.most <= 0.02 * size, `logits, ${size.toFixed(2)} wide: ${here.most.toExponential(1)} apart at most; ` +
        `from our own streams ${whole.most.toExponential(1)}, mean ${whole.mean.toExponential(1)}`);
}

// Margins of the drafted tokens over the next best.
function margins({ logits, ids }) {
    const next = (row, id) => row.reduce((a, v, i) => (i === id ? a : Math.max(a, v)), -Infinity);
    return logits.map((row, r) => row[ids[r]] - next(row, ids[r]));
}

// How far proposals are apart, up to the first token where they part; that one's margin counts as distance.
function draftDistance(mine, theirs) {
    let most = 0;
    for (let r = 0; r < mine.ids.length; r++) {
        most = Math.max(most, Math.abs(mine.confidence[r] - theirs.confidence[r]));
        if (mine.ids[r] !== theirs.ids[r])
            return Math.max(most, mine.margins[r], theirs.margins[r]);
        most = Math.max(most, Math.abs(mine.margins[r] - theirs.margins[r]));
    }
    return most;
}

function compareDrafts(model, ids, { taps, theirs: given }, d) {
    if (!model.text.num_nextn_predict_layers)
        return;
    for (const length of new Set([ids.length, 1 + d.below(ids.length)])) {
        const anchor = d.below(model.text.vocab_size), prefix = ids.slice(0, length).join(',');
        const said = JSON.parse(run('drafts', '-m', checkpoint, '--ids', prefix, '--anchor', `${anchor}`, '--json'));
        const theirs = { ids: said.drafts, confidence: said.confidence, margins: said.margins };
        const make = (from) => {
            const made = propose(model, ingest(model, { taps: from }), length - 1, anchor);
            return { ...made, margins: margins(made) };
        };
        const mine = make(taps), far = draftDistance(mine, theirs);
        let spread = 0, good = far <= NEAR_DRAFT;
        if (good)
            worst.draft = Math.max(worst.draft, far);
        const again = () => make(forward(model, ids, { rows: [], given, only: [] }).taps);
        for (const other of good ? [] : shakes(d, again)) {
            spread = Math.max(spread, draftDistance(mine, other));
            good = far <= 2 * spread || draftDistance(other, theirs) <= NEAR_DRAFT;
            if (good)
                break;
        }
        seen.drafts++;
        seen.draftEdge += far > NEAR_DRAFT;
        check(good, `drafts after ${length}: ${far.toExponential(1)} apart, spread ${spread.toExponential(1)}`);
    }
}

function brief({ text_config: t }, ids, pushed) {
    return [`${ids.length} tokens`, `${t.hc_mult} streams of ${t.hidden_size}`, `ratios ${t.compress_ratios.join('')}`,
        `index ${t.index_source_layer_ids} x${t.index_n_heads} top ${t.index_topk}`,
        `candidates ${t.candidate_source_layer_id ?? '-'} ${t.candidate_topk_blocks}x${t.candidate_block_size}`,
        `window ${t.sliding_window}`, `heads ${t.num_attention_heads}/${t.o_groups} of ${t.head_dim}`,
        `rope ${t.qk_rope_head_dim}${t.rope_scaling ? ' yarn' : ''}`,
        `experts ${t.n_routed_experts}/${t.num_experts_per_tok}`,
        `engram ${t.engram_layer_ids.join('+') || '-'} n${t.engram_max_ngram_size}`,
        `${t.num_nextn_predict_layers} stages`, ...pushed].join(', ');
}

function compareOne(seed) {
    const d = dice(seed), config = makeConfig(d), file = join(work, 'config.json'), before = failed;
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    writeFileSync(file, JSON.stringify(config));
    run('synth', '--config', file, '--seed', `${seed}`, '--out', checkpoint);
    const pushed = pushWeights(d, checkpoint), model = openModel(checkpoint), ids = makePrompt(d, config, longest);
    const streams = compareLayers(model, ids, d);
    compareLogits(model, ids, streams);
    compareDrafts(model, ids, streams, d);
    if (failed > before || loud)
        console.log(`seed ${seed}: ${brief(config, ids, pushed)}`);
}

console.log(`seed ${firstSeed}`);
for (let i = 0; i < count; i++)
    compareOne(firstSeed + i);
rmSync(work, { recursive: true, force: true });
const list = (counts, show) => Object.entries(counts).map(([name, v]) => `${name} ${show(v)}`).join(', ');
console.log(`${count} checkpoints: ${list(seen, String)}; worst: ${list(worst, (v) => v.toExponential(1))}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
