"""Clients that leave, wait, or do not read; a full queue; keep-alive signs; the server's own end."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import time

import serve

LONG = dict(messages=serve.STORY, temperature=0, ignore_eos=True, max_tokens=8000)
# Sixteen of these keep the engine busy for minutes. Fifteen of them wait, as one submission.
BUSY = {**LONG, "n": 16}
BEHIND = 15


def post(fields, path="/v1/chat/completions"):
    return serve.request("POST", path, fields)


def sanitized(pid):
    """A program that keeps what it freed, to find who still uses it."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        maps = f.read()
    return "libasan" in maps or "libtsan" in maps


def anonymous_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("RssAnon")).split()[1])


class Leaving(serve.Case):
    FLAGS = ("--queue", "4", "--keep-alive", "1", "--parallel", "1")

    def start(self, fields, events=1):
        """Begin a stream and read its first events."""
        s = self.server.connect()
        s.sendall(post({**fields, "stream": True}))
        reply = serve.Reply(s, read_body=False)
        self.assertEqual(reply.status, 200)
        stream = reply.stream()
        for _ in range(events):
            next(stream)
        return s, stream

    def test_leaving_in_the_middle_of_a_reply_ends_it(self):
        s, _ = self.start(BUSY, 20)
        self.assertEqual(self.server.health()["running"], 1)
        s.close()
        began = time.time()
        self.server.await_health(running=0, waiting=0)
        self.assertLess(time.time() - began, 2)
        self.assertIn("client left", self.server.errors())

    def test_leaving_in_the_prompt_ends_it(self):
        for stream in (False, True):
            s = self.server.connect()
            s.sendall(post(dict(prompt=[100 + i % 4000 for i in range(8000)], max_tokens=5, stream=stream), "/v1/completions"))
            self.server.await_health(running=1)
            s.close()
            began = time.time()
            self.server.await_health(running=0)
            # The whole prompt takes seconds; a layer of one piece does not.
            self.assertLess(time.time() - began, 2)
            self.assertEqual(self.server.chat(temperature=0, max_tokens=1).status, 200)

    def test_leaving_the_queue_frees_its_place(self):
        running, _ = self.start(BUSY)
        waiting = []
        for i in range(3):
            s = self.server.connect()
            s.sendall(post({**LONG, "stream": i == 1}))
            waiting.append(s)
            self.server.await_health(waiting=BEHIND + i + 1)
        refused = self.server.chat(temperature=0)
        self.check_error(refused, 429, None, "queue_full", "rate_limit_error")
        self.assertGreater(int(refused.headers["retry-after"]), 0)
        waiting[1].close()
        self.server.await_health(waiting=BEHIND + 2)
        late = self.server.connect()
        late.sendall(post(dict(messages=serve.QUESTION, temperature=0)))
        self.server.await_health(waiting=BEHIND + 3)
        for s in (waiting[0], waiting[2], running):
            s.close()
        self.assertEqual(serve.Reply(late).status, 200)
        late.close()
        self.server.await_health(running=0, waiting=0)

    def test_requests_run_in_order(self):
        running, _ = self.start(BUSY)
        waiting = []
        for i in range(3):
            s = self.server.connect()
            s.sendall(post(dict(messages=serve.QUESTION, temperature=0, max_tokens=2)))
            waiting.append(s)
            self.server.await_health(waiting=BEHIND + i + 1)
        running.close()
        shas = {serve.Reply(s).json()["token_sha"] for s in waiting}
        self.assertEqual(len(shas), 1)
        for s in waiting:
            s.close()

    def test_a_waiting_client_hears_that_we_live(self):
        running, _ = self.start(BUSY)
        whole = self.server.connect()
        whole.sendall(post(dict(messages=serve.QUESTION, temperature=0)))
        streamed, stream = self.start(dict(messages=serve.QUESTION, temperature=0))
        heard = [next(stream) for _ in range(2)]
        self.assertEqual(heard, [b": keep-alive\n\n"] * 2)
        reply = serve.Reply(whole, read_body=False)  # its head has come, though it is still waiting
        self.assertEqual((reply.status, reply.headers["transfer-encoding"]), (200, "chunked"))
        pieces = reply.stream()
        self.assertEqual(next(pieces), b"\n")
        running.close()
        body = b"\n" + b"".join(pieces)
        self.assertEqual(json.loads(body)["choices"][0]["finish_reason"], "stop")
        events = serve.parse_events(b"".join(stream))
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(serve.joined(events), "The noun \"harbour\" means: a small harbor.")
        whole.close()
        streamed.close()

    def test_a_client_that_does_not_read_loses_nothing_and_stops_nobody(self):
        fields = dict(messages=serve.STORY, temperature=0, ignore_eos=True, max_tokens=2500, logprobs=True, top_logprobs=20,
                      stream=True)
        # The same reply first, so that the model's own memory has been touched.
        whole = self.server.chat(**{**fields, "stream": False, "logprobs": False, "top_logprobs": 0}).json()
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(120)
        s.connect(("127.0.0.1", self.server.port))
        before = anonymous_kb(self.server.process.pid)
        s.sendall(post(fields))
        self.server.await_health(running=1)
        # Its tokens are made all the same, so that the next request gets its turn.
        self.assertEqual(self.server.chat(temperature=0).status, 200)
        grown = anonymous_kb(self.server.process.pid) - before
        reply = serve.Reply(s)
        events = reply.events()
        s.close()
        # What waited for it lay in its log of planned size and one short send queue, not as megabytes of text.
        self.assertGreater(len(reply.body), 4 << 20)
        if not sanitized(self.server.process.pid):
            self.assertLess(grown, 2000)
        self.assertEqual(events.pop(), "[DONE]")
        count = sum(len(c["logprobs"]["content"]) for e in events for c in e["choices"] if c["logprobs"])
        self.assertEqual(count, 2500)
        self.assertEqual(serve.joined(events), whole["choices"][0]["message"]["content"])

    def test_leaving_at_any_moment(self):
        raw = post(dict(messages=serve.QUESTION, temperature=0, stream=True))
        for delay in range(0, 60, 3):
            s = self.server.connect()
            s.sendall(raw)
            time.sleep(delay / 1000)
            s.close()
        self.server.await_health(running=0, waiting=0)
        self.assertEqual(self.server.chat(temperature=0).status, 200)

    def test_several_clients_at_once(self):
        asks = [dict(temperature=1.2, seed=i, max_tokens=12, stream=bool(i % 2)) for i in range(3)]
        alone = [self.text_of(self.server.chat(serve.STORY, **a)) for a in asks]
        together = serve.parallel(*[lambda a=a: self.text_of(self.server.chat(serve.STORY, **a)) for a in asks])
        self.assertEqual(together, alone)

    @staticmethod
    def text_of(reply):
        if reply.headers["content-type"].startswith("text/event-stream"):
            return serve.joined(reply.events())
        return reply.json()["choices"][0]["message"]["content"]


class Ending(serve.unittest.TestCase):
    def test_a_signal_lets_running_requests_finish(self):
        server = serve.Server("--grace", "60")
        try:
            s = server.connect()
            s.sendall(post(dict(messages=serve.STORY, temperature=0, ignore_eos=True, max_tokens=600, stream=True)))
            reply = serve.Reply(s, read_body=False)
            stream = reply.stream()
            next(stream)
            idle = server.connect()
            idle.sendall(serve.request("GET", "/health", close=False))
            self.assertEqual(serve.Reply(idle).status, 200)
            server.process.send_signal(signal.SIGTERM)
            rest = b"".join(stream)
            self.assertEqual(serve.parse_events(rest)[-1], "[DONE]")
            self.assertEqual(idle.recv(1), b"")
            self.assertEqual(server.process.wait(30), 0)
            with self.assertRaises(OSError):
                server.connect()
            s.close()
            idle.close()
        finally:
            server.close()

    def test_after_the_grace_time_they_are_told(self):
        for stream in (False, True):
            server = serve.Server("--grace", "0", "--parallel", "1")
            try:
                s = server.connect()
                s.sendall(post({**BUSY, "stream": stream}))
                server.await_health(running=1)
                server.process.send_signal(signal.SIGINT)
                reply = serve.Reply(s)
                if stream:
                    last = reply.events()[-1]
                    self.assertEqual(reply.status, 200)
                else:
                    last = reply.json()
                    self.assertEqual(reply.status, 503)
                    self.assertGreater(int(reply.headers["retry-after"]), 0)
                self.assertEqual(last["error"]["code"], "shutting_down")
                self.assertEqual(server.process.wait(30), 0)
                s.close()
            finally:
                server.close()

    def test_a_second_signal_does_not_wait(self):
        server = serve.Server("--grace", "600", "--parallel", "1")
        try:
            s = server.connect()
            s.sendall(post({**BUSY, "stream": True}))
            server.await_health(running=1)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            self.assertIsNone(server.process.poll())
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(10), 0)
            s.close()
        finally:
            server.close()

    def test_a_port_that_is_taken_and_a_model_that_is_not_there(self):
        server = serve.Server()
        try:
            with self.assertRaisesRegex(RuntimeError, "cannot listen on 127.0.0.1 port"):
                serve.Server("--port", str(server.port))
        finally:
            server.close()
        files = "config.json", "tokenizer.json", "model.safetensors.index.json"
        with tempfile.TemporaryDirectory() as root:
            cases = [("/nowhere", "No such file"), (__file__, "not a folder")]
            for n, missing in enumerate(files):
                folder = os.path.join(root, str(n))
                os.mkdir(folder)
                for name in files[:n]:
                    shutil.copy(os.path.join("models/nano", name), folder)
                cases.append((folder, f"{missing}: No such file"))
            for folder, reason in cases: # nothing listened
                with self.subTest(reason), self.assertRaisesRegex(
                        RuntimeError, f"no listening line but '': .*-m {folder}: {reason}.*a model is a folder"):
                    serve.Server("-m", folder, wait=False)

    def test_bad_flags_stop_the_start(self):
        for flags in (("--port", "70000"), ("--effort", "huge"), ("--queue", "0"), ("--temperature", "3"), ("--nope",)):
            with self.assertRaisesRegex(RuntimeError, flags[0][2:]):
                serve.Server(*flags)

    def hold(self, path):
        """Open a file so that whoever else opens it waits, until the lease is given back (45 s at most)."""
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # somebody waits: that is the point
        held = open(path, "r+b")
        try:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            held.close()
            self.skipTest("no leases on this file system")
        return held

    def test_loading_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for f in pathlib.Path("models/nano").iterdir():
                shutil.copy(f, folder)
            path = pathlib.Path(folder, "generation_config.json")
            path.write_text("{\"thinking\": false}", encoding="ascii")
            held = self.hold(path)
            server = serve.Server("-m", folder, "--name", "slow", wait=False)
            try:
                reply = server.get("/health")
                self.assertEqual((reply.status, reply.json()["status"]), (503, "loading"))
                reply = server.chat()
                self.assertEqual((reply.status, reply.error()["code"]), (503, "loading"))
                self.assertIn("retry-after", reply.headers)
                self.assertEqual(server.get("/v1/models").status, 503)
                fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                server.await_ready()
                self.assertEqual(server.chat(temperature=0, max_tokens=1).json()["model"], "slow")
            finally:
                server.close()
                held.close()

    def test_a_load_can_be_broken_off(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            for name in (path, "tokenizer.json", "model.safetensors.index.json"):
                pathlib.Path(folder, name).write_text("{}", encoding="ascii")
            held = self.hold(path)
            server = serve.Server("-m", folder, wait=False)
            try:
                self.assertEqual(server.stop(signal.SIGINT, 10), 0)
            finally:
                server.close()
                held.close()


if __name__ == "__main__":
    serve.main()
