"""The bench clients against a server that misbehaves on demand, and against `paceline serve`. What is not proven is never a
pass: a missing hash or a cut stream is told, and the exit code is not 0."""
import hashlib
import http.server
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time

import cli

PROMPTS = json.loads(pathlib.Path("bench/prompts.json").read_text(encoding="utf-8"))["groups"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Streams words that depend on prompt, seed and nothing else; server.how says what goes wrong."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path.endswith("/models"):
            self.whole(200, {"data": [{"id": "fake"}]})
        else:
            self.whole(404, {"error": {"message": "not here"}})

    def do_POST(self):
        s = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with s.lock:
            s.seen.append((self.path, body, self.headers.get("Authorization")))
            s.times.append(time.monotonic())
            count = len(s.seen)
        how = s.how(count, body) if callable(s.how) else s.how
        if how == "refused":
            return self.whole(429, {"error": {"message": "the queue is full", "code": "queue_full"}})
        if how == "not a stream":
            return self.whole(200, {"choices": []})
        if how == "hang up":
            self.close_connection = True
            return None
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if how == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(body, how)
        except OSError:
            pass
        return None

    def put(self, how, data):
        if how == "chunked":
            for i in range(0, len(data), 11):
                piece = data[i:i + 11]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            self.wfile.write(data)
        self.wfile.flush()

    def event(self, how, body):
        self.put(how, b"data: " + (body if isinstance(body, bytes) else json.dumps(body).encode()) + b"\n\n")

    def stream(self, body, how):
        n = body["max_tokens"]
        chat = "messages" in body
        seed = body.get("seed", 0)
        text = body["messages"][0]["content"] if chat else body["prompt"]
        ids = hashlib.sha256(f"{text}{seed}{self.server.salt}{how == 'unequal'}".encode()).hexdigest()
        for i in range(n):
            word = f"w{i} "
            piece = {"delta": {"content": word}} if chat else {"text": word}
            self.event(how, {"choices": [{"index": 0, **piece, "finish_reason": None}]})
            if how == "drop" and i == n // 2:
                return
            if how == "error" and i == n // 2:
                return self.event(how, {"error": {"message": "the model fell over"}})
            if how == "stall" and i == n // 2:
                time.sleep(60)
            time.sleep(0.01 if how == "slow" else 0.001)
        self.event(how, {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        last = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": n}}
        if how != "no hash":
            last["tensorfold" if how == "short" else "paceline"] = {"token_sha": ids[:12] if how == "short" else ids,
                                                                    "rounds": 3, "drafted": 5, "accepted": 2}
        self.event(how, last)
        if how != "no done":
            self.event(how, b"[DONE]")
        if how == "chunked":
            self.wfile.write(b"0\r\n\r\n")
        return None


def fake(how="", salt="", port=0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.how, server.salt, server.seen, server.times, server.lock = how, salt, [], [], threading.Lock()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


SHORT = ["--tokens", "8", "--reps", "2", "--prompts", "code", "--temperatures", "0", "--levels", "2"]


class Bench(cli.Case):
    def bench(self, server, *words, code=0, command="concurrent"):
        words = words or SHORT
        result = cli.run("bench", command, server.url, *words, "--json", "--output", self.folder / "out.json")
        server.shutdown()
        server.server_close()
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.file = json.loads((self.folder / "out.json").read_text())
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_a_good_server(self):
        for how in ("", "chunked", "short", "slow"):
            server = fake(how)
            [cell] = self.bench(server, *SHORT, "--label", "me")
            self.assertEqual((cell["label"], cell["prompt"], cell["streams"], cell["verdict"]), ("me", "code", 2, "equal"))
            self.assertEqual((cell["failed"], cell["unmeasured"], cell["unverified"]), (0, 0, 0))
            self.assertEqual(cell["repeats"], {"equal": 2, "unequal": 0, "unverified": 0, "failed": 0})
            self.assertGreater(cell["aggregate_tps"], 0)
            self.assertGreater(cell["per_stream_tps"], 0)
            self.assertEqual((cell["rounds"], cell["drafted"], cell["accepted"]), (12, 20, 8))
            self.assertNotIn("plain_rounds", cell)
            self.assertEqual(len(cell["token_sha"]), 2)
            self.assertEqual(len(cell["aggregate_tps_runs"]), 2)
            self.assertNotEqual(*cell["token_sha"])  # two prompts
            [runs] = [c["runs"] for c in self.file["cells"]]
            self.assertEqual([r["kind"] for r in runs], ["together", "together"])
            one = runs[0]["requests"][1]
            self.assertEqual((one["tokens"], one["prompt_tokens"], one["pieces"], one["complete"], one["verified"]),
                             (8, 5, 8, True, True))
            self.assertEqual(one["output_sha256"], hashlib.sha256(b"".join(b"w%d " % i for i in range(8))).hexdigest())
            self.assertEqual(one["cache_state"], "unverified")
            self.assertEqual(one["prompt"], PROMPTS["code"][1]["name"])
            self.assertEqual(len(server.seen), 1 + 2 * 2)  # the warm-up counts for nothing

    def test_nothing_unproven_passes(self):
        for how, code, verdict, unverified in (("no hash", 3, "unverified", 4), ("drop", 1, "failed", 4),
                                               ("no done", 1, "failed", 4), ("error", 1, "failed", 4),
                                               ("refused", 1, "failed", 4), ("not a stream", 1, "failed", 4),
                                               ("hang up", 1, "failed", 4)):
            [cell] = self.bench(fake(how), code=code)
            self.assertEqual((cell["verdict"], cell["unverified"], cell["failed"]), (verdict, unverified, 0 if code == 3 else 4))
            self.assertEqual(cell["repeats"], {"equal": 0, "unequal": 0, "unverified": 2, "failed": 0})
            self.assertEqual(cell["token_sha"], [None, None])
            if code == 1:
                self.assertIsNone(cell["aggregate_tps"])
                self.assertTrue(cell["errors"])
            else:
                self.assertGreater(cell["aggregate_tps"], 0)
        for how, says in (("error", "the model fell over"), ("refused", "the queue is full"), ("not a stream", "no event stream"),
                          ("drop", "[DONE]"), ("hang up", "without an answer")):
            [cell] = self.bench(fake(how), code=1)
            self.assertIn(says, cell["errors"][0])

    def test_one_bad_reply_among_good_ones(self):
        [cell] = self.bench(fake(lambda count, body: "drop" if count == 5 else ""), code=1)
        self.assertEqual((cell["failed"], cell["repeats"]["unverified"], cell["verdict"]), (1, 1, "failed"))
        [cell] = self.bench(fake(lambda count, body: "unequal" if count >= 4 else ""), code=1)
        self.assertEqual((cell["failed"], cell["repeats"]["unequal"], cell["verdict"]), (0, 2, "unequal"))

    def test_alone_and_serial(self):
        server = fake()
        [cell] = self.bench(server, *SHORT, "--serial")
        self.assertEqual(cell["alone"], {"equal": 4, "unequal": 0, "unverified": 0, "failed": 0})
        self.assertEqual(cell["serial"], {"equal": 2, "unequal": 0, "unverified": 0, "failed": 0})
        self.assertEqual([body.get("draft") for _, body, _ in server.seen], [None, None, None, False, False] + [None] * 4)
        [cell] = self.bench(fake(lambda count, body: "unequal" if "draft" in body else ""), *SHORT, "--serial", code=1)
        self.assertEqual((cell["serial"]["unequal"], cell["alone"]["equal"], cell["verdict"]), (2, 4, "unequal"))
        [cell] = self.bench(fake(lambda count, body: "no hash" if "draft" in body else ""), *SHORT, "--serial", code=3)
        self.assertEqual((cell["serial"]["unverified"], cell["verdict"]), (2, "unverified"))

    def test_seeds_and_mixed(self):
        server = fake()
        cells = self.bench(server, "--tokens", "5", "--reps", "1", "--prompts", "code,gpu-chat-no-think", "--levels", "4",
                           "--mixed", "--temperatures", "0.5,0", "--seed", "7")
        self.assertEqual([c["prompt"] for c in cells], ["mixed"])  # and nothing greedy
        mixed = sorted((b["seed"], path) for path, b, _ in server.seen[1:])
        self.assertEqual(mixed, [(7, "/v1/chat/completions"), (7, "/v1/completions"), (8, "/v1/chat/completions"),
                                 (8, "/v1/completions")])
        server = fake()
        [cell] = self.bench(server, "--tokens", "5", "--reps", "2", "--prompts", "chat", "--temperatures", "1", "--no-seed",
                            "--levels", "2", "--alone")
        self.assertFalse(any("seed" in b for _, b, _ in server.seen))
        self.assertEqual((cell["verdict"], cell["repeats"]["equal"], cell["alone"]["equal"]), ("uncompared", 0, 0))

    def test_openai(self):
        server = fake()
        cells = self.bench(server, "--tokens", "8", "--prompts", "gpu-chat-no-think,chat", "--temperatures", "1,0",
                           command="openai")
        names = ["gpu-chat-no-think"] + [p["name"] for p in PROMPTS["chat"]]
        self.assertEqual([(c["prompt"], c["temperature"]) for c in cells], [(n, t) for n in names for t in (1.0, 0.0)])
        self.assertTrue(all(len(c["decode_tps"]) == 5 and c["decode_tps_median"] > 0 and c["ttft_s_median"] > 0 for c in cells))

    def test_a_key_and_a_name(self):
        server = fake()
        self.bench(server, *SHORT, "--api-key", "secret", "--model-name", "other")
        self.assertTrue(all(key == "Bearer secret" and body["model"] == "other" for _, body, key in server.seen))
        self.assertNotIn("secret", (self.folder / "out.json").read_text())

    def test_streams_that_stall(self):
        began = time.time()
        [cell] = self.bench(fake("stall"), *SHORT, "--timeout", "1", "--reps", "1", code=1)
        self.assertLess(time.time() - began, 20)
        self.assertIn("no end within 1 s", cell["errors"][0])

    def test_stagger(self):
        server = fake()
        [cell] = self.bench(server, *SHORT, "--levels", "3", "--reps", "1", "--stagger-ms", "200")
        [run] = self.file["cells"][0]["runs"]
        self.assertEqual(cell["verdict"], "uncompared")
        self.assertGreater(server.times[3] - server.times[1], 0.35)
        self.assertTrue(all(r["ttft_s"] < 0.35 for r in run["requests"]), run)  # from its own start on

    def test_the_table(self):
        server = fake("no hash")
        result = cli.run("bench", "concurrent", server.url, *SHORT)
        self.assertEqual(result.returncode, 3)
        self.assertIn("unverified; repeats: 0 differ, 2 unverified of 2", result.stdout)
        server.shutdown()
        server.server_close()

    def test_usage(self):
        url = "http://127.0.0.1:1"
        for words, says in (([url, "--levels", "0"], "--levels"), ([url, "--levels", "1,,2"], "--levels"),
                            ([url, "--temperatures", "3"], "--temperatures"), ([url, "--prompts", "nothing"], "--prompts"),
                            ([url, "--mixed", "--temperatures", "0"], "--mixed"),
                            ([url, "--stagger-ms", "11000"], "--stagger-ms"), (["https://x"], "http only"),
                            (["x"], "http://"), ([], "URL"), ([url, "--rows", "1"], "--rows"), ([url, url], "does not know")):
            self.fails(2, "bench", "concurrent", *words, says=says)
        self.fails(1, "bench", "concurrent", url, says="127.0.0.1:1")
        self.fails(1, "bench", "openai", url, "--prompt-file", "/nonexistent", says="/nonexistent")
        self.fails(2, "bench", "openai", url, "--levels", "2", says="--levels")
        self.fails(2, "bench", "arms", "x", says="NAME=COMMAND")
        self.fails(2, "bench", "arms", "a=b", "a=c", says="two arms")
        for words in (["help", "bench", "concurrent"], ["bench", "concurrent", "--help"]):
            text = self.ok(*words).stdout
            self.assertIn("usage: paceline bench concurrent URL", text)
            self.assertIn("--levels LIST", text)
            self.assertNotIn("--rounds", text)
        self.assertNotIn("--levels", self.ok("help", "bench").stdout)
        (self.folder / "p.json").write_text('{"groups": {"a": []}}')
        self.fails(1, "bench", "openai", url, "--prompt-file", self.folder / "p.json", says="1 to 256 prompts")


class Nano(cli.Case):
    """The real server: concurrent equals alone equals without drafts."""

    def test_concurrent(self):
        command = [cli.PROGRAM, "serve", "-m", cli.NANO, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as server:
            try:
                url = server.stdout.readline().split()[-1]
                until = time.time() + 60
                words = ["bench", "concurrent", url, "--levels", "3", "--tokens", "12", "--reps", "1", "--prompts", "code",
                         "--serial", "--json"]
                result = cli.run(*words)
                while result.returncode == 1 and "503" in result.stdout + result.stderr and time.time() < until:
                    time.sleep(0.2)  # still loading
                    result = cli.run(*words)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                cells = [json.loads(line) for line in result.stdout.splitlines()]
                self.assertEqual(len(cells), 2)
                for cell in cells:
                    self.assertEqual(cell["verdict"], "equal")
                    self.assertEqual(cell["alone"]["equal"], cell["streams"])
                    self.assertEqual(cell["serial"]["equal"], cell["streams"])
            finally:
                server.send_signal(signal.SIGTERM)


FAKE_SERVER = "import sys; sys.path.insert(0, 'tests/cli'); import test_bench as t; t.serve(sys.argv[1:])"


def serve(words):
    """A fake server as a command: [how, salt, port]; ends on SIGTERM."""
    how, salt, port = words
    server = fake(how, salt, int(port))
    if port == "0":
        print(f"hello\nlistening on {server.url}", flush=True)
    signal.sigwait([signal.SIGTERM])
    os._exit(0)


def arm(name, how="", salt="", port="0"):
    return f"{name}=exec {shlex.quote(sys.executable)} -B -c {shlex.quote(FAKE_SERVER)} '{how}' '{salt}' {port}"


class Arms(cli.Case):
    WORDS = ["--levels", "2", "--tokens", "8", "--reps", "1", "--prompts", "code", "--temperatures", "0", "--quiet", "0.02",
             "--ready", "60"]

    def arms(self, *words, code=0, limit="1"):
        result = cli.run("bench", "arms", *words, *self.WORDS, "--busy-limit", limit, "--output", self.folder / "out.json")
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return json.loads((self.folder / "out.json").read_text()), result

    def test_forth_and_back(self):
        report, result = self.arms(arm("a"), arm("b", port="{port}"), arm("c", "chunked"))
        [cell] = report["cells"]
        self.assertEqual([r["arm"] for r in cell["runs"]], list("abccba"))
        self.assertEqual((cell["tokens"], cell["verdict"], report["verdict"]), ("equal", "equal", "equal"))
        self.assertEqual([(a["arm"], a["runs"]) for a in cell["arms"]], [("a", 2), ("b", 2), ("c", 2)])
        for a in cell["arms"]:
            runs = [r["result"]["aggregate_tps"] for r in cell["runs"] if r["arm"] == a["arm"]]
            self.assertAlmostEqual(a["aggregate_tps"], sum(runs) / 2, places=3)
            self.assertAlmostEqual(a["of_first"], a["aggregate_tps"] / cell["arms"][0]["aggregate_tps"], places=5)
        for run in cell["runs"]:
            self.assertLessEqual({"load1", "busy_share", "mhz", "celsius", "available_mib"}, set(run["machine"]["start"]))
            self.assertLessEqual({"start", "end", "during", "unknown"}, set(run["machine"]))
            self.assertEqual(len(run["evidence"][0]["requests"]), 2)
        self.assertIn("| code | 0 | 2 | a | 2 |", result.stdout)

    def test_other_tokens(self):
        report, _ = self.arms(arm("a"), arm("b", salt="x"), code=1)
        self.assertEqual((report["cells"][0]["tokens"], report["verdict"]), ("unequal", "unequal"))
        report, _ = self.arms(arm("a"), arm("b", salt="x"), "--no-compare")
        self.assertEqual((report["cells"][0]["tokens"], report["verdict"]), ("not compared", "uncompared"))
        report, _ = self.arms(arm("a"), arm("b", "short"), code=3)  # a hash of another kind
        self.assertEqual((report["cells"][0]["tokens"], report["verdict"]), ("unverified", "unverified"))
        report, _ = self.arms(arm("a"), arm("b", "no hash"), code=3)
        self.assertEqual((report["cells"][0]["tokens"], report["verdict"]), ("unverified", "unverified"))

    def test_servers_that_fail(self):
        report, result = self.arms(arm("a"), "b=echo out of luck; exit 7", code=1)
        [cell] = report["cells"]
        self.assertEqual([r["arm"] for r in cell["runs"]], list("abba"))
        self.assertIn("out of luck", cell["runs"][1]["error"])
        self.assertEqual((cell["tokens"], cell["verdict"]), ("unverified", "failed"))
        self.assertIsNone(cell["arms"][1]["aggregate_tps"])
        self.assertGreater(cell["arms"][0]["aggregate_tps"], 0)
        self.assertIn("out of luck", result.stdout)

    def test_disturbed_runs(self):
        """A loop keeps a processor busy, and not one percent is allowed."""
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            self.WORDS = self.WORDS + ["--quiet", "0.3", "--reruns", "1"]
            report, result = self.arms(arm("a"), code=1, limit="0.0001")
        finally:
            loop.kill()
            loop.wait()
        [cell] = report["cells"]
        self.assertEqual((len(cell["runs"]), len(report["discarded"]), cell["arms"][0]["runs"]), (0, 4, 0))
        self.assertIsNone(cell["arms"][0]["aggregate_tps"])
        self.assertEqual((cell["tokens"], cell["verdict"]), ("unverified", "failed"))
        for run in report["discarded"]:
            self.assertIn("busy before the server started", run["why"])
            self.assertIn("result", run)
        self.assertEqual([r["attempt"] for r in report["discarded"]], [0, 1, 0, 1])
        self.assertIn("thrown away, disturbed: 4", result.stdout)

    def test_a_parent_that_ignores_its_children(self):
        words = [cli.PROGRAM, "bench", "arms", "a=exit 3", *self.WORDS]
        result = subprocess.run(words, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), timeout=60,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ended before it was ready", result.stdout)

    def test_ctrl_c_ends_the_server_too(self):
        note = self.folder / "pid"
        server = f"a=echo $$ > {note}; exec sleep 60"
        process = subprocess.Popen([cli.PROGRAM, "bench", "arms", server, "--quiet", "0.02"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        until = time.time() + 30
        while not (note.exists() and note.read_text().strip()) and time.time() < until:
            time.sleep(0.02)
        pid = int(note.read_text())
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), -signal.SIGINT)
        while pathlib.Path(f"/proc/{pid}/stat").exists() and time.time() < until:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                break
            time.sleep(0.05)
        else:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists(), "the server outlived the bench")


if __name__ == "__main__":
    cli.main()
