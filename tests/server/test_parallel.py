"""Several replies in the works at once: each has the tokens that it has alone."""
import threading
import time

import serve

PARALLEL = 4
# Long enough that all are in the works together; nano repeats itself here for ever.
LONG = dict(ignore_eos=True, max_tokens=80)
NUMBERS = ("rounds", "plain_rounds", "rows", "asks", "drafted", "accepted", "copied", "copied_kept")

ASKS = [dict(messages=serve.STORY, temperature=0, **LONG),
        dict(messages=serve.QUESTION, temperature=0, stream=True, **LONG),
        dict(messages=serve.STORY, temperature=0.9, seed=7, top_p=0.9, draft=False, **LONG),
        dict(messages=serve.QUESTION, temperature=1.1, seed=8, stream=True, **LONG),
        dict(messages=serve.STORY, temperature=0.7, top_k=40, stream=True, draft=False, frequency_penalty=0.5, **LONG)]


class Parallel(serve.Case):
    FLAGS = ("--parallel", PARALLEL)

    def ask(self, fields):
        """The reply's hash, its text, and what the server counted."""
        fields = dict(fields)
        if fields.get("stream"):
            fields["stream_options"] = {"include_usage": True}
        reply = self.server.post("/v1/chat/completions", fields)
        self.assertEqual(reply.status, 200, reply.body)
        if not fields.get("stream"):
            got = reply.json()
            self.assertEqual(got["usage"]["completion_tokens"], fields["max_tokens"])
            return got["token_sha"], got["choices"][0]["message"]["content"], got["paceline"]
        events = reply.events()
        self.assertEqual(events[-1], "[DONE]")
        last = events[-2]
        return last["token_sha"], serve.joined(events), last["paceline"]

    def check_numbers(self, fields, counted):
        n = {k: counted[k] for k in NUMBERS}
        tokens = counted["tokens"]
        self.assertTrue(all(isinstance(v, int) and v >= 0 for v in n.values()), n)
        # The prompt gives the first token, a round one more and one for every draft that was kept.
        self.assertEqual(n["rounds"] + n["accepted"] + 1, tokens, n)
        self.assertLessEqual(n["plain_rounds"], n["rounds"])
        self.assertLessEqual(n["accepted"], n["drafted"])
        self.assertLessEqual(n["copied"], n["drafted"])
        self.assertLessEqual(n["copied_kept"], min(n["copied"], n["accepted"]))
        self.assertEqual(n["rows"], n["rounds"] + n["drafted"], n)
        if fields.get("draft") is False:
            self.assertEqual((n["asks"], n["drafted"], n["copied"], n["plain_rounds"]), (0, 0, 0, n["rounds"]), n)

    def test_five_clients_at_once_have_the_replies_that_they_have_alone(self):
        alone = [self.ask(a) for a in ASKS]
        for a, (sha, _, counted) in zip(ASKS, alone):
            self.assertRegex(sha, "^[0-9a-f]{64}$")
            self.check_numbers(a, counted)
        self.assertEqual(len({sha for sha, _, _ in alone}), len(ASKS))
        most = 0
        for _ in range(2):
            seen, over = [], threading.Event()

            def watch():
                while not over.is_set():
                    seen.append(self.server.health()["running"])
                    time.sleep(0.002)

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                together = serve.parallel(*[lambda a=a: self.ask(a) for a in ASKS])
            finally:
                over.set()
                watcher.join()
            most = max(most, *seen)
            self.assertEqual([t[:2] for t in together], [t[:2] for t in alone])
            for a, t in zip(ASKS, together):
                self.check_numbers(a, t[2])
            self.assertLessEqual(max(seen), PARALLEL)
        self.assertGreater(most, 1)

    def test_the_same_without_drafts(self):
        for a in ASKS:
            self.assertEqual(self.ask({**a, "draft": not a.get("draft", True)})[:2], self.ask(a)[:2])

    def test_a_background_reply_stands_back_and_loses_nothing(self):
        ask = dict(ASKS[0], max_tokens=240, priority="background")
        alone = self.ask(ask)[0]
        got, order = {}, []

        def run(name, fields):
            got[name] = self.ask(fields)[0]
            order.append(name)

        behind = [threading.Thread(target=run, args=(i, ask)) for i in range(PARALLEL)]
        for t in behind:
            t.start()
        self.server.await_health(running=PARALLEL)
        run("front", ASKS[2])  # every slot is taken, by replies that give way
        self.assertEqual(order, ["front"])
        for t in behind:
            t.join()
        self.assertEqual(got.pop("front"), self.ask(ASKS[2])[0])
        self.assertEqual(set(got.values()), {alone})


if __name__ == "__main__":
    serve.main()
