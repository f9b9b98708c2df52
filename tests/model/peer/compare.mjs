// The engine against reference.mjs on random checkpoints.
//
//   node compare.mjs PROGRAM FOLDER [SEED] [CONFIGS] [LONGEST]
//
// For each checkpoint: every layer of the whole run, each from the engine's own streams before it; one layer of
// `trace --layer` from ours; the logits from the engine's last streams and, with room for noise, from our own; what the
// drafter proposes from the engine's taps. FOLDER is emptied of what is made there.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openModel } from './checkpoint.mjs';
import { dice, makeConfig, makePrompt, pushWeights } from './configs.mjs';
import { fromBf16, shake, toBf16 } from './numbers.mjs';
import { finish, forward, ingest, propose } from './reference.mjs';

const [program, folder, seedText, countText, longestText] = process.argv.slice(2);
const firstSeed = Number(seedText ?? Date.now() % 1e9), count = Number(countText ?? 12), longest = Number(longestText ?? 300);
const work = join(folder, 'peer-reference'), checkpoint = join(work, 'checkpoint');
const loud = process.env.PEER_VERBOSE;
const SHAKES = 40, CLOSE_DRAFT = 0.01;
let passed = 0, failed = 0;
const seen = { layers: 0, rows: 0, edge: 0, drafts: 0, draftEdge: 0 };
const worst = { share: 0, places: 0, pre: 0, logit: 0, noise: 0, draft: 0 };

function run(...args) {
    const env = { ...process.env, PACELINE_CACHE_DIR: join(work, 'cache') };
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 24, env });
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

const same = (a, b) => a === b || (Number.isNaN(a) && Number.isNaN(b));

// One row of streams: the largest difference in units of the row's last bfloat16 place, the share of unequal elements.
function rowDistance(mine, theirs, i) {
    const row = mine.h[i], other = theirs.h[i], place = row.reduce((a, v) => Math.max(a, Math.abs(v)), 0) * 2 ** -8 || 1;
    let places = 0, unequal = 0, pre = 0;
    row.forEach((v, k) => {
        if (same(v, other[k]))
            return;
        unequal++;
        places = Math.max(places, Math.abs(v - other[k]) / place || Infinity);
    });
    mine.pre[i].forEach((v, k) => (pre = Math.max(pre, same(v, theirs.pre[i][k]) ? 0 : Math.abs(v - theirs.pre[i][k]) || Infinity)));
    return { places, unequal, share: unequal / row.length, pre };
}

const close = (d) => d.places <= 1 && d.share <= 0.05 && d.pre <= 1e-3;

function apart(a, b) {
    let most = 0, sum = 0;
    a.forEach((v, i) => {
        const d = same(v, b[i]) ? 0 : Math.abs(v - b[i]) || Infinity;
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

// Hold layers against the engine's. A row may be far from ours only where it is as far from itself when the order of
// summation changes (a rounding, an expert or an entry on the edge). `again` gives our layers in the order now set.
function checkLayers(named, again, d) {
    const open = [];
    for (const { name, at, mine, theirs } of named) {
        const rows = mine.h.map((_, i) => rowDistance(mine, theirs, i)), far = rows.map((_, i) => i).filter((i) => !close(rows[i]));
        const share = rows.reduce((a, r) => a + r.unequal, 0) / mine.h.length / mine.h[0].length;
        seen.layers++;
        seen.rows += rows.length;
        seen.edge += far.length;
        for (const r of rows.filter(close)) {
            worst.places = Math.max(worst.places, r.places);
            worst.pre = Math.max(worst.pre, r.pre);
        }
        worst.share = Math.max(worst.share, share);
        open.push({ name, at, mine, theirs, share, rows, far, left: far.map((i) => ({ i, spread: 0, pre: 0 })), near: 0 });
    }
    if (open.some((o) => o.left.length))
        for (const layers of shakes(d, () => again([...new Set(open.flatMap((o) => o.left.map((row) => row.i)))]))) {
            for (const o of open)
                o.left = o.left.filter((row) => {
                    const moved = rowDistance(o.mine, layers[o.at], row.i), rest = rowDistance(layers[o.at], o.theirs, row.i);
                    row.spread = Math.max(row.spread, moved.places);
                    row.pre = Math.max(row.pre, moved.pre);
                    const now = o.rows[row.i];
                    return !close(rest) && !(now.places <= 2 * row.spread + 1 && now.pre <= 2 * row.pre + 1e-3);
                });
            if (!open.some((o) => o.left.length))
                break;
        }
    for (const o of open) {
        const say = (i) => `row ${i} ${o.rows[i].places.toFixed(1)} places, ${(100 * o.rows[i].share).toFixed(0)} %, pre ${o.rows[i].pre.toExponential(1)}`;
        check(o.left.length === 0, `${o.name}: ${(100 * o.share).toFixed(2)} % unequal, ${o.far.length} of ${o.rows.length} rows on an edge` +
            `${o.left.length ? `, ${o.left.length} NOT: ${o.left.slice(0, 4).map((r) => `${say(r.i)} (spread ${r.spread.toFixed(1)})`).join('; ')}` : ''}`);
    }
}

function compareLayers(model, ids, d) {
    const list = ids.join(','), out = join(work, 'trace');
    run('trace', '-m', checkpoint, '--ids', list, '--out', out);
    const theirs = readStreams(out, model.layers, ids.length);
    const mine = forward(model, ids, { rows: [], given: theirs });
    checkLayers(mine.layers.map((layer, i) => ({ name: `layer ${i}`, at: i, mine: layer, theirs: theirs[i] })),
        (only) => forward(model, ids, { rows: [], given: theirs, only }).layers, d);
    const free = forward(model, ids), one = d.below(model.layers);
    writeFileSync(join(work, 'h'), toBf16(flatten(free.layers.map((l) => flatten(l.h)))));
    writeFileSync(join(work, 'pre'), flatten(free.layers.map((l) => flatten(l.pre))));
    run('trace', '-m', checkpoint, '--ids', list, '--out', out, '--layer', `${one}`, '--h', join(work, 'h'), '--pre', join(work, 'pre'));
    checkLayers([{ name: `layer ${one} alone`, at: one, mine: free.layers[one], theirs: readStreams(out, 1, ids.length)[0] }],
        (only) => forward(model, ids, { rows: [], given: free.layers, only }).layers, d);
    return { theirs, given: mine, free };
}

function compareLogits(model, ids, { theirs, free }) {
    run('logits', '-m', checkpoint, '--ids', ids.join(','), '--all', '--out', join(work, 'logits'));
    const logits = new Float32Array(bytes(join(work, 'logits')));
    const exact = flatten(finish(model, theirs.at(-1), ids.map((_, i) => i)));
    const size = Math.sqrt(exact.reduce((a, v) => a + v * v, 0) / exact.length);
    const near = apart(exact, logits), noise = apart(flatten(free.logits), logits);
    worst.logit = Math.max(worst.logit, near.most / size);
    worst.noise = Math.max(worst.noise, noise.mean / size);
    check(near.most <= 0.02 * size, `logits: ${near.most.toExponential(1)} apart at most, mean ${near.mean.toExponential(1)}, size ${size.toFixed(2)}; ` +
        `from our own streams ${noise.most.toExponential(1)}, mean ${noise.mean.toExponential(1)}`);
}

// Margins of the drafted tokens over the next best.
function margins({ logits, ids }) {
    return logits.map((row, r) => row[ids[r]] - row.reduce((a, v, i) => (i === ids[r] ? a : Math.max(a, v)), -Infinity));
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

function compareDrafts(model, ids, { given, theirs: streams }, d) {
    if (!model.text.num_nextn_predict_layers)
        return;
    for (const length of new Set([ids.length, 1 + d.below(ids.length)])) {
        const anchor = d.below(model.text.vocab_size);
        const said = JSON.parse(run('drafts', '-m', checkpoint, '--ids', ids.slice(0, length).join(','), '--anchor', `${anchor}`, '--json'));
        const theirs = { ids: said.drafts, confidence: said.confidence, margins: said.margins };
        const make = (taps) => {
            const made = propose(model, ingest(model, { taps }), length - 1, anchor);
            return { ...made, margins: margins(made) };
        };
        const mine = make(given.taps), far = draftDistance(mine, theirs), parts = mine.ids.filter((v, r) => v !== theirs.ids[r]).length;
        let spread = 0, good = far <= CLOSE_DRAFT;
        if (!good)
            for (const shaken of shakes(d, () => make(forward(model, ids, { rows: [], given: streams, only: [] }).taps))) {
                spread = Math.max(spread, draftDistance(mine, shaken));
                good = far <= 2 * spread || draftDistance(shaken, theirs) <= CLOSE_DRAFT;
                if (good)
                    break;
            }
        else
            worst.draft = Math.max(worst.draft, far);
        seen.drafts++;
        seen.draftEdge += far > CLOSE_DRAFT;
        check(good, `drafts after ${length}: ${parts} of ${mine.ids.length} differ, ${far.toExponential(1)} apart, spread ${spread.toExponential(1)}`);
    }
}

function brief({ text_config: t }) {
    return `streams ${t.hc_mult}, hidden ${t.hidden_size}, ratios ${t.compress_ratios.join('')}, index ${t.index_source_layer_ids}` +
        ` x${t.index_n_heads} top ${t.index_topk}, candidates ${t.candidate_source_layer_id ?? '-'}:${t.candidate_topk_blocks ?? ''}x` +
        `${t.candidate_block_size ?? ''}, window ${t.sliding_window}, heads ${t.num_attention_heads}/${t.o_groups} of ${t.head_dim}, rope ` +
        `${t.qk_rope_head_dim}${t.rope_scaling ? ' yarn' : ''}, experts ${t.n_routed_experts}/${t.num_experts_per_tok}, engram ` +
        `${t.engram_layer_ids.join('+') || '-'} n${t.engram_max_ngram_size}, stages ${t.num_nextn_predict_layers}`;
}

for (let i = 0; i < count; i++) {
    const seed = firstSeed + i, d = dice(seed);
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    const config = makeConfig(d);
    writeFileSync(join(work, 'config.json'), JSON.stringify(config));
    run('synth', '--config', join(work, 'config.json'), '--seed', `${seed}`, '--out', checkpoint);
    const pushed = pushWeights(d, checkpoint), model = openModel(checkpoint), ids = makePrompt(d, config, longest);
    const before = failed;
    const streams = compareLayers(model, ids, d);
    compareLogits(model, ids, streams);
    compareDrafts(model, ids, streams, d);
    if (failed > before || loud)
        console.log(`seed ${seed}: ${ids.length} tokens, ${brief(config)}${pushed.length ? `; ${pushed.join(', ')}` : ''}`);
}
rmSync(work, { recursive: true, force: true });
console.log(`seeds ${firstSeed}..${firstSeed + count - 1}: ${seen.layers} layers, ${seen.rows} rows (${seen.edge} on an edge), ${seen.drafts} proposals (${seen.draftEdge}); worst: ` +
    Object.entries(worst).map(([k, v]) => `${k} ${v.toExponential(1)}`).join(', '));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
