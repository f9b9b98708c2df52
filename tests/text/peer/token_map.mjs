// The Engram token map by the reference library's own normalisers.
const letters = (() => { // the byte alphabet of byte-level BPE
    const out = [];
    for (let b = 0, next = 0x100; b < 256; b++) {
        const shown = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        out.push(String.fromCodePoint(shown ? b : next++));
    }
    return out;
})();

export const spell = (text) => [...Buffer.from(text, 'utf8')].map((b) => letters[b]).join('');
export const letterOf = (byte) => letters[byte];

export function normaliser(peer) {
    const steps = peer.sequenceNormalizer(
        [peer.nfkcNormalizer(), peer.nfdNormalizer(), peer.stripAccentsNormalizer(), peer.lowercase()]);
    const ends = peer.stripNormalizer(true, true);
    return (text) => {
        const folded = steps.normalizeString(text).replace(/[ \t\r\n]+/g, ' ');
        return ends.normalizeString(folded === ' ' ? '\ue000' : folded).replaceAll('\ue000', ' ');
    };
}

export async function classes(json, tokenizer, normal) {
    const spelling = [];
    for (const [text, id] of Object.entries(json.model.vocab))
        spelling[id] = text;
    for (const t of json.added_tokens)
        spelling[t.id] = t.content;
    const texts = await tokenizer.decodeBatch(spelling.map((_, id) => [id]), false);
    const seen = new Map();
    return spelling.map((raw, id) => {
        const key = texts[id].includes('\ufffd') ? raw : normal(texts[id]) || texts[id];
        if (!seen.has(key))
            seen.set(key, seen.size);
        return seen.get(key);
    });
}
