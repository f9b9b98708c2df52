// Tokenizer files for the comparison: DeepSeek-V3's made into V4.1's, and one with a token for every code point.
import { letterOf, spell } from './token_map.mjs';

// V4.1 keeps V3's vocabulary and merges; its added tokens fill 128000..129279. Names that are not public are invented:
// they only have to differ.
export function patchDeepSeek(json) {
    const named = {
        '<\uff5cSystem\uff5c>': 128799, '<think>': 128821, '</think>': 128822, '\uff5cDSML\uff5c': 128825,
        '<\uff5clatest_reminder\uff5c>': 128828, '<\uff5cdeepseek_image\uff5c>': 129264,
    };
    const used = new Set(Object.values(named));
    const added = json.added_tokens.filter((t) => t.id !== 128799 && t.id < 128815 && !(t.content in named));
    const token = (id, content, special) => ({
        id, content, single_word: false, lstrip: false, rstrip: false, normalized: !special, special });
    for (const [content, id] of Object.entries(named))
        added.push(token(id, content, false));
    for (let id = 128815; id < 129280; id++)
        if (!used.has(id))
            added.push(token(id, `<|place_holder_mm_span_${String(id - 128826).padStart(4, '0')}|>`, true));
    added.sort((a, b) => a.id - b.id); // the library numbers them in this order
    return { ...json, added_tokens: added };
}

function byteLevel(vocab, merges) {
    const split = (Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
    const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
    return {
        version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
        pre_tokenizer: { type: 'Sequence', pretokenizers: [
            split('\\p{N}{1,3}'), split('[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+'),
            split('[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+'
                + '| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+'), bytes] },
        post_processor: null, decoder: { ...bytes, add_prefix_space: true, use_regex: true },
        model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
            fuse_unk: false, byte_fallback: false, vocab, merges },
    };
}

// A token for every code point: its token map shows how each of them is normalised.
export function everyCodePoint() {
    const vocab = {}, points = [];
    for (let b = 0; b < 256; b++) {
        vocab[letterOf(b)] = b;
        points.push(b < 0x80 ? b : -1);
    }
    for (let cp = 0x80; cp < 0x20000; cp++)
        if (cp < 0xd800 || cp > 0xdfff) {
            vocab[spell(String.fromCodePoint(cp))] = points.length;
            points.push(cp);
        }
    return { points, json: byteLevel(vocab, []) };
}

// Any two bytes that meet inside a piece merge, in no natural order: nearly every cut shows in the ids.
export function everyPair() {
    const vocab = {}, merges = [];
    for (let b = 0; b < 256; b++)
        vocab[letterOf(b)] = b;
    for (let i = 0; i < 65536; i++) {
        const pair = i * 40503 % 65536, a = letterOf(pair >> 8), b = letterOf(pair & 255);
        vocab[a + b] = 256 + i;
        merges.push([a, b]);
    }
    return byteLevel(vocab, merges);
}
