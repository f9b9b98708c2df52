// What is tokenized in the comparison.

// The ids of DeepSeek's vocabulary for what each rule of the splits does.
export const consequences = [
    ['  x', [223, 1527]], ['x \n y', [90, 539, 383]], ['x   ', [90, 361]], ['\t\tx', [200, 51669]],
    ['.foo', [4658, 6379]], ['..foo', [426, 40897]], ['_foo', [65, 40897]],
    ['x !\r\n\r\ny', [90, 4050, 204, 201, 204, 201, 91]], ["'s", [734]], ["I don't", [43, 2090, 1664]],
    ['1.5e10', [19, 16, 23, 71, 553]], ['123456789012345', [6895, 18009, 25744, 16993, 18014]],
    ['你好，世界', [30594, 303, 3427]], ['你好abc123世界', [30594, 32372, 6895, 3427]],
    ['한국어 텍스트', [5634, 17564, 9227, 61291, 238, 45652]], ['\u3400', [162, 241, 225]],
    ['\u{20000}', [175, 257, 225, 225]], ['々', [32286]],
    ['半角ｶﾅ ①②③', [3160, 2877, 5879, 117, 55241, 230, 223, 104894, 21686]], ['a\u200db', [67, 46088, 68]],
    ['x\0y', [90, 191, 91]], ['\ufeffbom', [15251, 68, 316]], ['e\u0301', [71, 17793]], [' \u0301x', [223, 17793, 90]],
    [' '.repeat(130), [69933, 262]], [' '.repeat(130) + 'x', [69933, 223, 1527]], ['\n'.repeat(20), [93614, 13318]],
    ['', []], ['<|User|>', [30, 94, 6756, 94, 32]], ['<\uff5cUser\uff5c>Hello', [128803, 19923]],
    ['Hello! 毕老师！1 + 1 = 2', [19923, 3, 223, 5464, 5008, 1175, 19, 940, 223, 19, 438, 223, 20]],
    ['</\uff5cDSML\uff5c calls>\n', [1718, 128825, 10699, 1018]],
];

export function codePointTexts() {
    const out = [], both = (c) => out.push(`a${c}b ${c}${c} ${c}!`, `1${c}\n${c}你${c}カ.${c}x`);
    for (let cp = 0; cp < 0x20000; cp++)
        if (cp < 0xd800 || cp > 0xdfff)
            both(String.fromCodePoint(cp));
    for (let cp = 0x20000; cp < 0x110000; cp += cp < 0x32400 || (cp >= 0xe0000 && cp < 0xe0200) ? 1 : 61)
        both(String.fromCodePoint(cp));
    return out;
}

// A small generator with a printed seed (mulberry32).
function generator(seed) {
    let a = seed >>> 0;
    return (n) => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
        return Math.floor(((t ^ (t >>> 14)) >>> 0) / 4294967296 * n);
    };
}

const RANGES = [ // scripts, marks, digits, punctuation, symbols, spaces, formats; wide ones are met often enough anyway
    [0x20, 0x7e], [0x20, 0x7e], [0x61, 0x7a], [0x61, 0x7a], [0x30, 0x39], [0x21, 0x2f], [0x00, 0x1f], [0x80, 0xff],
    [0x100, 0x24f], [0x300, 0x36f], [0x370, 0x3ff], [0x400, 0x4ff], [0x590, 0x5ff], [0x600, 0x6ff], [0x660, 0x669],
    [0x900, 0x97f], [0xe00, 0xe7f], [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x2000, 0x206f], [0x2070, 0x20bf],
    [0x2100, 0x22ff], [0x2460, 0x24ff], [0x2500, 0x27bf], [0x3000, 0x30ff], [0x3040, 0x30ff], [0x4e00, 0x9fff],
    [0x4e00, 0x4eff], [0x9f90, 0x9fbf], [0xac00, 0xd7a3], [0xe000, 0xe00f], [0xfe00, 0xfe0f], [0xff00, 0xffef],
    [0x10000, 0x103ff], [0x1d400, 0x1d7ff], [0x1f300, 0x1faff], [0x20000, 0x2a6df], [0xe0100, 0xe01ef],
];
const WORDS = ['the', ' The', 'hello', "don't", ' I\'ll', 'e10', '  ', '\n\n', '\r\n', ' \n', '\t', '\u00a0', '\u3000',
    '\u0085', '\u2028', '.', '..', '...', ' .', '!\n', '?)\r\n', '—', '「', '，', '12345', '3.14', '１２３', '½', 'e\u0301',
    '👩‍👩‍👧', 'カタカナ', 'ひらがな', '・', '世界', '々', 'ſ', 'İ', 'def f(x):\n    return x', '<|', '<｜', '｜>', '\ufffd', '\0'];

export function randomTexts(count, seed, added) {
    const next = generator(seed);
    const point = ([low, high]) => String.fromCodePoint(low + next(high - low + 1));
    return Array.from({ length: count }, () => {
        let text = '';
        for (let parts = 1 + next(12); parts > 0; parts--) {
            const kind = next(10);
            if (kind < 3) {
                text += WORDS[next(WORDS.length)];
            } else if (kind === 3) {
                const token = added[next(added.length)];
                text += next(3) ? token : token.slice(next(3), 1 + next(token.length));
            } else {
                const range = RANGES[next(RANGES.length)];
                for (let n = 1 + next(8); n > 0; n--)
                    text += point(next(4) ? range : RANGES[next(RANGES.length)]);
            }
        }
        return text;
    });
}

export function* longRuns() {
    const million = 1 << 20;
    for (const [name, unit] of [['a', 'a'], ['spaces', ' '], ['newlines', '\n'], ['digits', '0123456789'], ['dots', '.'],
        ['ab', 'ab'], ['han', '世'], ['kana', 'アイ'], ['blank lines', ' \n'], ['marks', 'e\u0301']])
        yield [`1 MiB of ${name}`, unit.repeat(million / Buffer.byteLength(unit))];
    yield ['1 MiB of spaces and a word', ' '.repeat(million) + 'x'];
}
