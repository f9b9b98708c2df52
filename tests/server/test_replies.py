"""What the two completion endpoints answer: the reference's tokens, streamed == whole, the same seed twice, usage, stops,
logprobs, choices."""
import hashlib
import struct

import serve


def sha(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()


class Replies(serve.Case):
    def check_whole(self, reply, kind, prompt_tokens=None):
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(reply.headers["content-type"], "application/json")
        got = reply.json()
        self.assertEqual(got["object"], kind)
        self.assertEqual(got["model"], "nano")
        self.assertIsInstance(got["created"], int)
        usage = got["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(usage["prompt_tokens_details"], {"cached_tokens": 0})
        self.assertEqual(usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"], usage["prompt_tokens"])
        if prompt_tokens is not None:
            self.assertEqual(usage["prompt_tokens"], prompt_tokens)
        self.assertEqual(got["token_sha"], got["choices"][0]["token_sha"])
        self.assertEqual(got["token_sha"], got["paceline"]["token_sha"])
        return got

    def check_stream(self, reply, kind, choices=1, usage=False):
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(reply.headers["content-type"], "text/event-stream; charset=utf-8")
        self.assertEqual(reply.headers["cache-control"], "no-cache")
        events = reply.events()
        self.assertEqual(events.pop(), "[DONE]")
        self.assertEqual(len({(e["id"], e["created"], e["model"], e["object"]) for e in events}), 1)
        self.assertEqual(events[0]["object"], kind)
        if usage:
            self.assertEqual(events[-1]["choices"], [])
            self.assertGreater(events[-1]["usage"]["completion_tokens"], 0)
            self.assertTrue(all(e["usage"] is None for e in events[:-1]))
            self.assertIn("token_sha", events[-1])
        else:
            self.assertTrue(all("usage" not in e for e in events))
        for i in range(choices):
            ends = [e for e in events for c in e["choices"] if c["index"] == i and c["finish_reason"]]
            self.assertEqual(len(ends), 1)
            self.assertRegex(ends[0]["token_sha"], "^[0-9a-f]{64}$")
        return events

    def test_greedy_completions_are_the_reference_s(self):
        exact = 0
        for name, case in serve.CASES.items():
            got = self.check_whole(self.server.text(case["ids"], temperature=0, max_tokens=len(case["greedy"])),
                                   "text_completion", len(case["ids"]))
            self.assertEqual(got["usage"]["completion_tokens"], len(case["greedy"]), name)
            if got["token_sha"] == sha(case["greedy"]):
                self.assertEqual(got["choices"][0]["finish_reason"], "stop" if case["greedy"][-1] == 1 else "length")
                exact += 1
        # One of them passes a near-tie of the reference's own logits (tests/lanes/test_model_target.c looks at the margin).
        self.assertGreaterEqual(exact, len(serve.CASES) - 1)

    def test_a_chat_reply_is_the_reference_s(self):
        case = serve.CASES["chat_harbour"]
        got = self.check_whole(self.server.chat(temperature=0), "chat.completion", len(case["ids"]))
        message = got["choices"][0]["message"]
        self.assertEqual(message, {"role": "assistant", "content": "The noun \"harbour\" means: a small harbor.",
                                   "refusal": None})
        self.assertEqual(got["choices"][0]["finish_reason"], "stop")
        self.assertEqual(got["token_sha"], sha(case["greedy"]))
        self.assertEqual(got["usage"]["completion_tokens"], len(case["greedy"]))  # the end token counts

    def test_thinking_comes_apart_from_the_answer(self):
        case = serve.CASES["think_sum"]
        fields = dict(messages=[{"role": "user", "content": "What is 23 + 45?"}], enable_thinking=True, temperature=0)
        got = self.check_whole(self.server.chat(**fields), "chat.completion", len(case["ids"]))
        message = got["choices"][0]["message"]
        self.assertIn("add the tens", message["reasoning_content"])
        self.assertNotIn("think>", message["reasoning_content"] + message["content"])
        self.assertEqual(message["content"], "23 + 45 = 68")
        events = self.check_stream(self.server.chat(**fields, stream=True, stream_options={"include_usage": True}),
                                   "chat.completion.chunk", usage=True)
        self.assertEqual(serve.joined(events, field="reasoning_content"), message["reasoning_content"])
        self.assertEqual(serve.joined(events), message["content"])
        self.assertEqual(events[-1]["token_sha"], got["token_sha"])
        self.assertEqual(events[-1]["usage"], got["usage"])
        self.assertEqual(got["usage"]["completion_tokens_details"]["reasoning_tokens"], case["greedy"].index(8153) + 1)

    def test_thinking_that_is_cut_stays_reasoning(self):
        fields = dict(messages=[{"role": "user", "content": "What is 23 + 45?"}], thinking={"type": "enabled"},
                      temperature=0, max_tokens=10)
        got = self.check_whole(self.server.chat(**fields), "chat.completion")
        message = got["choices"][0]["message"]
        self.assertEqual((message["content"], got["choices"][0]["finish_reason"]), ("", "length"))
        self.assertTrue(message["reasoning_content"])
        self.assertEqual(got["usage"]["completion_tokens_details"]["reasoning_tokens"], 10)
        events = self.check_stream(self.server.chat(**fields, stream=True), "chat.completion.chunk")
        self.assertEqual(serve.joined(events, field="reasoning_content"), message["reasoning_content"])
        self.assertEqual(serve.joined(events), "")
        # Stop strings are for the answer: one inside the thinking is not looked at.
        got = self.server.chat(**{**fields, "max_tokens": 100}, stop=["tens", "= 68"]).json()["choices"][0]
        self.assertIn("tens", got["message"]["reasoning_content"])
        self.assertEqual(got["message"]["content"], "23 + 45 ")

    def test_an_answer_that_was_begun_goes_on(self):
        messages = serve.QUESTION + [{"role": "assistant", "content": "The noun \"harbour\"", "prefix": True}]
        got = self.check_whole(self.server.chat(messages, temperature=0), "chat.completion")
        self.assertTrue(got["choices"][0]["message"]["content"].startswith(" means"))

    def test_a_stream_begins_with_the_role_and_says_what_the_whole_reply_says(self):
        for fields in ({"temperature": 0, "max_tokens": 25}, {"temperature": 1.3, "seed": 5, "max_tokens": 40},
                       {"temperature": 1, "top_k": 20, "top_p": 0.9, "seed": 6, "max_tokens": 30}):
            whole = self.check_whole(self.server.chat(**fields), "chat.completion")
            events = self.check_stream(self.server.chat(**fields, stream=True), "chat.completion.chunk")
            self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
            self.assertEqual(serve.joined(events), whole["choices"][0]["message"]["content"])
            self.assertEqual(events[-1]["token_sha"], whole["token_sha"])
            self.assertEqual(events[-1]["choices"][0]["delta"], {})
            self.assertEqual(events[-1]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"])
            text = self.check_whole(self.server.text("It was a cold", **fields), "text_completion")
            events = self.check_stream(self.server.text("It was a cold", **fields, stream=True), "text_completion")
            self.assertEqual(serve.joined(events), text["choices"][0]["text"])
            self.assertEqual(events[-1]["token_sha"], text["token_sha"])

    def test_the_same_request_twice_is_the_same_reply(self):
        def ask(**fields):
            return self.check_whole(self.server.chat(serve.STORY, temperature=1.5, max_tokens=30, **fields),
                                    "chat.completion")["token_sha"]

        self.assertEqual(ask(seed=1), ask(seed=1))
        self.assertNotEqual(ask(seed=1), ask(seed=2))
        self.assertEqual(ask(), ask())  # the seed comes from the prompt
        self.assertEqual(ask(seed=9), ask(seed=9, draft=False))
        self.assertEqual(ask(seed=-1), ask(seed=-1, user="x", unknown={"a": 1}))

    def test_choices_draw_with_seeds_in_a_row(self):
        fields = dict(messages=serve.STORY, temperature=1.5, max_tokens=20)
        alone = [self.check_whole(self.server.chat(**fields, seed=100 + i), "chat.completion") for i in range(3)]
        got = self.check_whole(self.server.chat(**fields, seed=100, n=3), "chat.completion")
        self.assertEqual([c["index"] for c in got["choices"]], [0, 1, 2])
        for i in range(3):
            self.assertEqual(got["choices"][i]["token_sha"], alone[i]["token_sha"])
            self.assertEqual(got["choices"][i]["message"], alone[i]["choices"][0]["message"])
        self.assertEqual(got["usage"]["completion_tokens"], sum(a["usage"]["completion_tokens"] for a in alone))
        self.assertEqual(got["usage"]["prompt_tokens"], alone[0]["usage"]["prompt_tokens"])
        events = self.check_stream(self.server.chat(**fields, seed=100, n=3, stream=True), "chat.completion.chunk", 3)
        for i in range(3):
            self.assertEqual(serve.joined(events, i), alone[i]["choices"][0]["message"]["content"])

    def test_several_prompts_have_their_choices_in_order(self):
        prompts = ["It was a cold", "def add(a, b):\n", "The"]
        alone = [self.server.text(p, temperature=0, max_tokens=8).json()["choices"][0] for p in prompts]
        got = self.server.text(prompts, temperature=0, max_tokens=8, n=2).json()
        self.assertEqual([c["index"] for c in got["choices"]], list(range(6)))
        for i, c in enumerate(got["choices"]):
            self.assertEqual((c["text"], c["token_sha"]), (alone[i // 2]["text"], alone[i // 2]["token_sha"]))

    def test_a_stop_string_cuts_the_text_and_not_the_hash(self):
        whole = self.server.chat(temperature=0).json()
        for stop, left in ((" means", "The noun \"harbour\""), (["zzz", "n \"har"], "The nou"), ("The", "")):
            fields = dict(temperature=0, stop=stop)
            got = self.check_whole(self.server.chat(**fields), "chat.completion")
            self.assertEqual(got["choices"][0]["message"]["content"], left)
            self.assertEqual(got["choices"][0]["finish_reason"], "stop")
            n = got["usage"]["completion_tokens"]
            self.assertLess(n, whole["usage"]["completion_tokens"])
            self.assertEqual(got["token_sha"], sha(serve.CASES["chat_harbour"]["greedy"][:n]))
            events = self.check_stream(self.server.chat(**fields, stream=True), "chat.completion.chunk")
            self.assertEqual(serve.joined(events), left)
            self.assertEqual(events[-1]["token_sha"], got["token_sha"])
        kept = self.server.chat(temperature=0, stop=" means", include_stop_str_in_output=True).json()
        self.assertEqual(kept["choices"][0]["message"]["content"], "The noun \"harbour\" means")

    def test_lengths(self):
        got = self.check_whole(self.server.chat(temperature=0, max_tokens=3), "chat.completion")
        self.assertEqual(got["choices"][0]["finish_reason"], "length")
        self.assertEqual(got["usage"]["completion_tokens"], 3)
        got = self.server.chat(temperature=0, max_tokens=50, max_completion_tokens=2).json()
        self.assertEqual(got["usage"]["completion_tokens"], 2)
        got = self.server.chat(temperature=0, max_tokens=20, ignore_eos=True).json()
        self.assertEqual(got["usage"]["completion_tokens"], 20)
        self.assertEqual(got["choices"][0]["finish_reason"], "length")

    def test_logprobs_of_a_chat(self):
        fields = dict(temperature=0, logprobs=True, top_logprobs=3)
        got = self.check_whole(self.server.chat(**fields), "chat.completion")
        items = got["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(items), got["usage"]["completion_tokens"] - 1)  # the end token has no text
        self.assertEqual("".join(i["token"] for i in items), got["choices"][0]["message"]["content"])
        self.assertEqual(bytes(sum((i["bytes"] for i in items), [])).decode(), got["choices"][0]["message"]["content"])
        for i in items:
            self.assertEqual(len(i["top_logprobs"]), 3)
            self.assertEqual({k: i["top_logprobs"][0][k] for k in ("token", "logprob", "bytes")},
                             {k: i[k] for k in ("token", "logprob", "bytes")})
            self.assertLessEqual(i["logprob"], 0)
            self.assertGreaterEqual(i["top_logprobs"][1]["logprob"], i["top_logprobs"][2]["logprob"])
        events = self.check_stream(self.server.chat(**fields, stream=True), "chat.completion.chunk")
        streamed = [i for e in events for c in e["choices"] if c["logprobs"] for i in c["logprobs"]["content"]]
        self.assertEqual(streamed, items)
        plain = self.server.chat(temperature=0, logprobs=True).json()["choices"][0]["logprobs"]["content"]
        self.assertEqual([i["top_logprobs"] for i in plain], [[]] * len(plain))
        self.assertIsNone(self.server.chat(temperature=0).json()["choices"][0]["logprobs"])

    def test_logprobs_of_a_completion(self):
        fields = dict(prompt="It was a cold", temperature=0, max_tokens=6, logprobs=2)
        got = self.server.text(**fields).json()["choices"][0]
        lists = got["logprobs"]
        self.assertEqual("".join(lists["tokens"]), got["text"])
        self.assertEqual([len(v) for v in lists.values()], [6, 6, 6, 6])
        self.assertEqual(lists["text_offset"], [len("".join(lists["tokens"][:i])) for i in range(6)])
        for token, logprob, top in zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"]):
            self.assertEqual(top[token], logprob)
            self.assertEqual(len(top), 2)
        events = self.check_stream(self.server.text(**fields, stream=True), "text_completion")
        for name, values in lists.items():
            streamed = [v for e in events for c in e["choices"] if c["logprobs"] for v in c["logprobs"][name]]
            self.assertEqual(streamed, values)

    def test_echo(self):
        plain = self.server.text("It was a cold", temperature=0, max_tokens=5).json()["choices"][0]
        echo = self.server.text("It was a cold", temperature=0, max_tokens=5, echo=True).json()["choices"][0]
        self.assertEqual(echo["text"], "It was a cold" + plain["text"])
        events = self.server.text("It was a cold", temperature=0, max_tokens=5, echo=True, stream=True).events()
        self.assertEqual(serve.joined(events), echo["text"])

    def test_fill_in_the_middle_runs(self):
        got = self.check_whole(self.server.text("def f(", suffix="return x", temperature=0, max_tokens=4), "text_completion")
        self.assertEqual(got["usage"]["completion_tokens"], 4)

    def test_bias_and_penalties_change_the_reply(self):
        plain = self.server.chat(temperature=0, max_tokens=4).json()
        barred = self.server.chat(temperature=0, max_tokens=4, logit_bias={"521": -100}).json()
        self.assertNotEqual(plain["token_sha"], barred["token_sha"])
        self.assertFalse(barred["choices"][0]["message"]["content"].startswith("The"))
        story = self.server.chat(serve.STORY, temperature=0, max_tokens=60).json()["token_sha"]
        self.assertNotEqual(story, self.server.chat(serve.STORY, temperature=0, max_tokens=60,
                                                    frequency_penalty=2).json()["token_sha"])

    def test_earlier_calls_and_results_may_stand_in_a_conversation(self):
        messages = [
            {"role": "user", "content": "What time is it?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{\"zone\": \"UTC\"}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "12:00"},
        ]
        got = self.check_whole(self.server.chat(messages, temperature=0, max_tokens=5), "chat.completion")
        self.assertGreater(got["usage"]["prompt_tokens"], 20)

    def test_any_unicode_comes_through(self):
        text = "naïve 你好 🙂 \u0000\u2028 \ud7ff"
        got = self.server.text(text, temperature=0, max_tokens=1, echo=True)
        self.assertEqual(got.status, 200, got.body)
        self.assertTrue(got.json()["choices"][0]["text"].startswith(text))
        # Random tokens of a small model: bytes that are no text, cut anywhere, still make valid JSON and equal texts.
        fields = dict(temperature=2, max_tokens=120, seed=3, ignore_eos=True)
        whole = self.server.text("é", **fields).json()["choices"][0]["text"]
        self.assertEqual(serve.joined(self.server.text("é", **fields, stream=True).events()), whole)


class Flags(serve.Case):
    FLAGS = ("--temperature", "0", "--max-tokens", "7", "--thinking", "--effort", "low", "--name", "my/model", "--context",
             "256", "--strict-name")

    def test_flags_are_defaults_and_the_request_wins(self):
        got = self.server.chat().json()
        self.assertEqual(got["model"], "my/model")
        self.assertEqual(got["usage"]["completion_tokens"], 7)
        self.assertIn("reasoning_content", got["choices"][0]["message"])
        self.assertEqual(got["token_sha"], self.server.chat(temperature=0, max_tokens=7, thinking=True,
                                                            reasoning_effort=50).json()["token_sha"])
        self.assertEqual(self.server.chat(max_tokens=9).json()["usage"]["completion_tokens"], 9)
        off = self.server.chat(thinking=False).json()["choices"][0]["message"]
        self.assertNotIn("reasoning_content", off)

    def test_the_models_endpoint_tells_the_context(self):
        got = self.server.get("/v1/models").json()
        self.assertEqual(got["object"], "list")
        (model,) = got["data"]
        self.assertEqual((model["id"], model["object"], model["context_length"], model["max_model_len"]),
                         ("my/model", "model", 256, 256))
        self.assertEqual(self.server.get("/v1/models/my%2Fmodel").json(), model)
        self.assertEqual(self.server.get("/models/my/model").json(), model)
        self.check_error(self.server.get("/v1/models/other"), 404, None, "model_not_found", "not_found_error")

    def test_strict_names(self):
        self.check_error(self.server.chat(model="other"), 404, "model", "model_not_found", "not_found_error")
        self.assertEqual(self.server.chat(model="my/model").status, 200)

    def test_the_context_bounds_prompt_and_reply(self):
        error = self.check_error(self.server.text([5] * 256), 400, "prompt", "context_length_exceeded")
        self.assertEqual((error["n_prompt_tokens"], error["n_ctx"]), (256, 256))
        self.check_error(self.server.chat([{"role": "user", "content": "word " * 400}]), 400, "messages",
                         "context_length_exceeded")
        got = self.server.text([5] * 250, max_tokens=100, ignore_eos=True).json()
        self.assertEqual(got["usage"]["completion_tokens"], 6)
        self.assertEqual(got["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.server.text([5] * 255, max_tokens=1).json()["usage"]["completion_tokens"], 1)


if __name__ == "__main__":
    serve.main()
