// Number formats and products of the model specification, in plain doubles and float32 (section 3.0).
//
// bfloat16 and float32 values live in Float32Array, dequantised FP8 and FP4 weights in Float64Array (exact there).
// A matrix product is summed in double and rounded once, as the official vectors were made; `shake` sums in float32 in
// some other order instead, which tells what hangs on the last bit.

export const f32 = Math.fround;

// null, or {lanes, roll}: how many accumulators, and a generator of numbers in 0..1 for the functions' last bits.
let order = null;

export function shake(next) {
    order = next;
}

// A product summed in the order set by `shake`.
function shaken(x, y, at, n) {
    const part = new Float32Array(order.lanes);
    for (let k = 0; k < n; k++)
        part[k % order.lanes] += f32(x[k] * y[at + k]);
    return part.reduce((a, b) => f32(a + b), 0);
}

function nudged(x) {
    return f32(order ? x * (1 + (order.roll() - 0.5) * 2 ** -20) : x);
}

const word = new Uint32Array(1);
const single = new Float32Array(word.buffer);

export function bits(x) {
    single[0] = x;
    return word[0];
}

// Nearest bfloat16, ties to even. Takes a double: it is rounded to float32 first, as a float32 result would be.
export function bf(x) {
    single[0] = order ? nudged(x) : x;
    const b = word[0];
    if ((b & 0x7f800000) === 0x7f800000)
        return single[0];
    word[0] = (b + 0x7fff + ((b >>> 16) & 1)) & 0xffff0000;
    return single[0];
}

export function fromBf16(halves) {
    const out = new Float32Array(halves.length);
    const asBits = new Uint32Array(out.buffer);
    for (let i = 0; i < halves.length; i++)
        asBits[i] = halves[i] << 16;
    return out;
}

export function toBf16(values) {
    const asBits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    return Uint16Array.from(asBits, (b) => b >>> 16);
}

// The smallest power of two >= t (a positive normal float32), from its bits.
function powerAbove(t) {
    const b = bits(t);
    return E8M0_TABLE[(b >>> 23) + ((b & 0x7fffff) !== 0 ? 1 : 0)];
}

function roundEven(x) {
    const low = Math.floor(x), rest = x - low;
    return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low;
}

// Nearest E4M3 value, ties to even, saturating at 448. Below 2^-6 the step is 2^-9.
export function e4m3(x) {
    const a = Math.min(Math.abs(x), 448);
    const step = a < 0.015625 ? 0.001953125 : E8M0_TABLE[(bits(a) >>> 23) - 3];
    const v = Math.min(roundEven(a / step) * step, 448);
    return x < 0 ? -v : v;
}

const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

// Nearest E2M1 value; at the middle the neighbour with the even code.
export function e2m1(x) {
    const a = Math.min(Math.abs(x), 6);
    let code = 0;
    while (code < 7) {
        const middle = (E2M1[code] + E2M1[code + 1]) / 2;
        if (a < middle || (a === middle && code % 2 === 0))
            break;
        code++;
    }
    return x < 0 ? -E2M1[code] : E2M1[code];
}

export const E4M3_TABLE = Float64Array.from({ length: 256 }, (_, code) => {
    const e = (code >> 3) & 15, m = code & 7;
    const v = (code & 127) === 127 ? NaN : e ? (8 + m) * 2 ** (e - 10) : m * 2 ** -9;
    return code & 128 ? -v : v;
});
export const E2M1_TABLE = Float64Array.from({ length: 16 }, (_, code) => (code & 8 ? -1 : 1) * E2M1[code & 7]);
export const E8M0_TABLE = Float64Array.from({ length: 256 }, (_, byte) => (byte === 255 ? NaN : 2 ** (byte - 127)));

function inGroups(x, size, group) {
    const out = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += size) {
        let top = 0;
        for (let i = at; i < at + size; i++)
            top = Math.max(top, Math.abs(x[i]));
        group(top, at, out);
    }
    return out;
}

// q8: FP8 with a power-of-two scale per 32 values, written back as value x scale.
export function q8(x) {
    return inGroups(x, 32, (top, at, out) => {
        const s = powerAbove(f32(Math.max(top, f32(1e-4)) * f32(1 / 448)));
        for (let i = at; i < at + 32; i++)
            out[i] = e4m3(f32(x[i] / s)) * s;
    });
}

// q4e8 (index queries and keys): FP4 with a power-of-two scale per 32 values.
export function q4e8(x) {
    return inGroups(x, 32, (top, at, out) => {
        const s = powerAbove(f32(Math.max(top, 6 * 2 ** -126) * f32(1 / 6)));
        for (let i = at; i < at + 32; i++)
            out[i] = bf(e2m1(f32(x[i] / s)) * s);
    });
}

// q4e4 (compressed KV): FP4 with an E4M3 scale per 16 values.
export function q4e4(x) {
    return inGroups(x, 16, (top, at, out) => {
        const s = e4m3(f32(Math.max(top, 6 * 2 ** -9) / 6));
        for (let i = at; i < at + 16; i++)
            out[i] = bf(e2m1(f32(x[i] / s)) * s);
    });
}

// A matrix is {rows, cols, data}, data a Float64Array; result float32, or bfloat16 for linb.
export function lin32(x, w) {
    const { rows, cols, data } = w, from = new Float64Array(x), out = new Float32Array(rows);
    if (order)
        return out.map((_, r) => shaken(from, data, r * cols, cols));
    for (let r = 0, at = 0; r < rows; r++) {
        let sum = 0;
        for (let k = 0; k < cols; k++, at++)
            sum += from[k] * data[at];
        out[r] = sum;
    }
    return out;
}

export function dot(x, y) {
    if (order)
        return shaken(x, y, 0, x.length);
    let sum = 0;
    for (let k = 0; k < x.length; k++)
        sum += x[k] * y[k];
    return f32(sum);
}

export const linb = (x, w) => lin32(x, w).map(bf);

// lin8 and lin4 differ in how the weights were stored, which reading has already undone.
export const linq = (x, w) => linb(q8(x), w);

export function inverseRoot(x, eps) {
    return f32(1 / Math.sqrt(f32(f32(dot(x, x) / x.length) + eps)));
}

export function rmsnorm(x, gain, eps) {
    const r = inverseRoot(x, eps);
    return x.map((v, i) => bf(f32(gain[i] * f32(v * r))));
}

export const exp = (x) => nudged(Math.exp(x));
export const sigmoid = (x) => nudged(1 / (1 + Math.exp(-x)));
export const silu = (x) => nudged(x / (1 + Math.exp(-x)));
export const softplus = (x) => (x > 20 ? x : nudged(Math.log1p(Math.exp(x))));

// The k best of `score`, the lower index on ties, best first. Entries of -Infinity are never taken.
export function best(score, k) {
    const order = [];
    for (let i = 0; i < score.length; i++)
        if (score[i] > -Infinity)
            order.push(i);
    order.sort((a, b) => score[b] - score[a] || a - b); // +Infinity twice gives NaN, which falls to the index
    return { ids: order.slice(0, k), margin: order.length > k ? score[order[k - 1]] - score[order[k]] : Infinity };
}

export function argmax(x) {
    let at = 0;
    for (let i = 1; i < x.length; i++)
        if (x[i] > x[at])
            at = i;
    return at;
}

// Frequencies of a rope table (section 1.2 and 8.1). yarn: {factor, fast, slow, original} or null.
export function frequencies(dims, theta, yarn) {
    const out = new Float32Array(dims / 2);
    for (let i = 0; i < out.length; i++)
        out[i] = 1 / f32(Math.pow(theta, f32((2 * i) / dims)));
    if (!yarn)
        return out;
    const at = (turns) => (dims * Math.log(yarn.original / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
    const low = Math.max(Math.floor(at(yarn.fast)), 0), high = Math.min(Math.ceil(at(yarn.slow)), dims - 1);
    return out.map((f, i) => {
        const ramp = f32(Math.min(Math.max(f32((i - low) / f32(Math.max(high - low, 0.001))), 0), 1));
        const smooth = f32(1 - ramp);
        return f32(f32(f32(f / yarn.factor) * f32(1 - smooth)) + f32(f * smooth));
    });
}

// Rotate the last 2 x freq.length values of x, in place; sign -1 rotates back.
export function rope(x, freq, position, sign = 1) {
    const at = x.length - 2 * freq.length;
    for (let i = 0; i < freq.length; i++) {
        const angle = f32(position * freq[i]);
        const c = f32(Math.cos(angle)), s = f32(sign * Math.sin(angle));
        const a = x[at + 2 * i], b = x[at + 2 * i + 1];
        x[at + 2 * i] = bf(f32(f32(a * c) - f32(b * s)));
        x[at + 2 * i + 1] = bf(f32(f32(a * s) + f32(b * c)));
    }
    return x;
}
