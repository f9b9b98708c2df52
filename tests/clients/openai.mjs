// The OpenAI SDK against a server on the embedded model: what its users call, and what it makes of our answers.
//
//   node openai.mjs PROGRAM FOLDER-WITH-NODE_MODULES
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const [program, folder] = process.argv.slice(2).map((p) => resolve(p));
const require = createRequire(resolve(folder, "package.json"));
const { OpenAI } = require("openai");
const cases = JSON.parse(readFileSync("tests/vectors/nano/cases.json", "utf8"));
const question = [{ role: "user", content: 'What does the word "harbour" mean?' }];
const story = [{ role: "user", content: "Write a paragraph of a story." }];
const answer = 'The noun "harbour" means: a small harbor.';

function sha(ids) {
    const bytes = Buffer.alloc(4 * ids.length);
    ids.forEach((id, i) => bytes.writeInt32LE(id, 4 * i));
    return createHash("sha256").update(bytes).digest("hex");
}

async function startServer(...flags) {
    const child = spawn(program, ["serve", "--port", "0", "--threads", "1", ...flags], { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = await new Promise((done, fail) => {
        createInterface({ input: child.stdout }).once("line", (l) => done([l]));
        child.once("exit", (code) => fail(new Error(`the server ended with ${code}`)));
    });
    const base = /^listening on (http:\/\/127\.0\.0\.1:[0-9]+)$/.exec(line)[1];
    while ((await fetch(`${base}/health`)).status !== 200) await new Promise((r) => setTimeout(r, 20));
    return { child, base };
}

const { child, base } = await startServer("--queue", "2", "--parallel", "1");
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "any", maxRetries: 0 });

async function collect(stream) {
    const out = { text: "", chunks: [], finish: null };
    for await (const chunk of stream) {
        out.chunks.push(chunk);
        out.text += chunk.choices[0]?.delta?.content ?? chunk.choices[0]?.text ?? "";
        out.finish = chunk.choices[0]?.finish_reason ?? out.finish;
    }
    return out;
}

/** The call must fail with this status, parameter and code. */
async function refused(call, status, param, code) {
    try {
        await call;
    } catch (e) {
        assert.ok(e instanceof OpenAI.APIError, String(e));
        assert.deepEqual([e.status, e.param, e.code], [status, param, code]);
        return e;
    }
    assert.fail("not refused");
}

const tests = {
    async "models.list and models.retrieve"() {
        const list = await client.models.list();
        assert.deepEqual(list.data.map((m) => m.id), ["nano"]);
        assert.equal(list.data[0].context_length, 8192);
        assert.equal((await client.models.retrieve("nano")).object, "model");
    },
    async "a chat, whole"() {
        const got = await client.chat.completions.create({ model: "nano", messages: question, temperature: 0 });
        assert.equal(got.choices[0].message.content, answer);
        assert.equal(got.choices[0].finish_reason, "stop");
        assert.equal(got.token_sha, sha(cases.chat_harbour.greedy));
        assert.equal(got.usage.prompt_tokens, cases.chat_harbour.ids.length);
        assert.equal(got.usage.completion_tokens, cases.chat_harbour.greedy.length);
    },
    async "a chat, streamed"() {
        const got = await collect(
            await client.chat.completions.create({
                model: "nano", messages: question, temperature: 0, stream: true, stream_options: { include_usage: true },
            }),
        );
        assert.equal(got.text, answer);
        assert.equal(got.finish, "stop");
        assert.equal(got.chunks[0].choices[0].delta.role, "assistant");
        const last = got.chunks.at(-1);
        assert.deepEqual(last.choices, []);
        assert.equal(last.usage.completion_tokens, cases.chat_harbour.greedy.length);
        assert.equal(last.token_sha, sha(cases.chat_harbour.greedy));
    },
    async "the stream helper"() {
        const stream = client.chat.completions.stream({ model: "nano", messages: question, temperature: 0 });
        let deltas = "";
        stream.on("content", (delta) => (deltas += delta));
        const final = await stream.finalChatCompletion();
        assert.equal(final.choices[0].message.content, answer);
        assert.equal(deltas, answer);
    },
    async "thinking comes as reasoning_content"() {
        const params = { model: "nano", messages: [{ role: "user", content: "What is 23 + 45?" }], temperature: 0, thinking: true };
        const whole = (await client.chat.completions.create(params)).choices[0].message;
        assert.match(whole.reasoning_content, /add the tens/);
        assert.equal(whole.content, "23 + 45 = 68");
        const got = await collect(await client.chat.completions.create({ ...params, stream: true }));
        const reasoning = got.chunks.map((c) => c.choices[0]?.delta?.reasoning_content ?? "").join("");
        assert.deepEqual([reasoning, got.text], [whole.reasoning_content, whole.content]);
    },
    async "logprobs"() {
        const params = { model: "nano", messages: question, temperature: 0, logprobs: true, top_logprobs: 2 };
        const whole = (await client.chat.completions.create(params)).choices[0].logprobs.content;
        const got = await collect(await client.chat.completions.create({ ...params, stream: true }));
        assert.deepEqual(got.chunks.flatMap((c) => c.choices[0].logprobs?.content ?? []), whole);
        assert.equal(whole.map((i) => i.token).join(""), answer);
    },
    async "completions, whole and streamed"() {
        for (const name of ["raw_code", "raw_prose", "code_factorial"]) {
            const params = { model: "nano", prompt: cases[name].ids, temperature: 0, max_tokens: 12 };
            const whole = await client.completions.create(params);
            assert.equal(whole.token_sha, sha(cases[name].greedy.slice(0, 12)), name);
            const got = await collect(await client.completions.create({ ...params, stream: true }));
            assert.equal(got.text, whole.choices[0].text);
            assert.equal(got.finish, "length");
        }
    },
    async "sampled, twice the same; n choices"() {
        const params = { model: "nano", messages: story, temperature: 1.4, seed: 11, max_tokens: 16 };
        const one = await client.chat.completions.create(params);
        assert.equal((await client.chat.completions.create(params)).token_sha, one.token_sha);
        const two = await client.chat.completions.create({ ...params, n: 2 });
        assert.equal(two.choices[0].token_sha, one.token_sha);
        assert.notEqual(two.choices[1].token_sha, one.token_sha);
    },
    async "stop strings"() {
        const got = await client.chat.completions.create({ model: "x", messages: question, temperature: 0, stop: [" means"] });
        assert.equal(got.choices[0].message.content, 'The noun "harbour"');
    },
    async "errors arrive as APIError with status, param and code"() {
        const create = (p) => client.chat.completions.create({ model: "nano", messages: question, ...p });
        const e = await refused(create({ temperature: 9 }), 400, "temperature", null);
        assert.ok(e instanceof OpenAI.BadRequestError);
        assert.equal(e.type, "invalid_request_error");
        await refused(create({ response_format: { type: "json_object" } }), 400, "response_format", "unsupported_value");
        await refused(create({ messages: [{ role: "user", content: "word ".repeat(9000) }] }), 400, "messages",
                      "context_length_exceeded");
        await refused(client.completions.create({ model: "nano", prompt: [99999] }), 400, "prompt", null);
        const missing = await refused(client.get("/nothing"), 404, null, "not_found");
        assert.ok(missing instanceof OpenAI.NotFoundError);
    },
    async "aborting frees the engine; a full queue is 429"() {
        const aborts = [];
        const streams = [];
        for (let i = 0; i < 3; i++) {
            aborts.push(new AbortController());
            streams.push(
                await client.chat.completions.create(
                    { model: "nano", messages: story, ignore_eos: true, max_tokens: 8000, temperature: 0, stream: true },
                    { signal: aborts[i].signal },
                ),
            );
            // The first runs, two wait: the queue is full only then.
            for (let k = 0; k < 200; k++) {
                const h = await (await fetch(`${base}/health`)).json();
                if (h.running + h.waiting === i + 1 && h.running === 1) break;
                await new Promise((r) => setTimeout(r, 10));
            }
        }
        const e = await refused(client.chat.completions.create({ model: "nano", messages: question }), 429, null, "queue_full");
        assert.ok(e instanceof OpenAI.RateLimitError);
        aborts.forEach((a) => a.abort());
        const got = await client.chat.completions.create({ model: "nano", messages: question, temperature: 0 }, { maxRetries: 5 });
        assert.equal(got.choices[0].message.content, answer);
    },
    async "without /v1 in the base address"() {
        const other = new OpenAI({ baseURL: base, apiKey: "any", maxRetries: 0 });
        const got = await other.chat.completions.create({ model: "deepseek-chat", messages: question, temperature: 0 });
        assert.equal(got.choices[0].message.content, answer);
    },
};

let passed = 0;
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
    try {
        await test();
        passed++;
    } catch (e) {
        failed++;
        console.log(`failed: ${name}\n${e.stack}`);
    }
}
const ended = new Promise((done) => child.once("exit", done));
child.kill("SIGTERM");
const code = await ended;
if (code === 0) passed++;
else {
    failed++;
    console.log(`failed: the server ended with ${code}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
