"""Memory beyond the map: what `paceline inspect` prints is what `paceline serve` takes, within 5%, when it starts and after
all kinds of requests; the rest is the mapped files."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import serve

NANO = "models/nano"
NEAR = 0.05


def sanitized():
    """A sanitizer's own memory would be counted."""
    program = pathlib.Path(serve.PROGRAM).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


def inspected(*flags):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
    out = subprocess.run([serve.PROGRAM, "inspect", NANO, "--json", *map(str, flags)], env=clean, check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def memory(pid):
    """Bytes of the process that are its own, and that are mapped files."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        lines = dict(line.split(":", 1) for line in f)
    return tuple(int(lines[key].split()[0]) * 1024 for key in ("RssAnon", "RssFile"))


@unittest.skipIf(sanitized(), "built with a sanitizer")
class Resident(unittest.TestCase):
    def near(self, pid, planned, when):
        # What a request took is given back when the last one ends, a moment after its reply was read.
        for _ in range(100):
            anon, mapped = memory(pid)
            if abs(anon / planned - 1) <= NEAR:
                return anon, mapped
            time.sleep(0.02)
        self.fail(f"{when}: planned {planned}, found {anon}: {anon / planned - 1:+.1%}")

    def requests(self, server):
        """(what it was, a call that makes it)"""
        ids = [5 + i % 200 for i in range(900)]
        chats = [lambda i=i: server.chat(max_tokens=8, stream=i % 2 == 0) for i in range(24)]
        many = [{"role": "user", "content": f"line {i}"} for i in range(60000)]
        return [
            ("a short reply", lambda: server.chat(max_tokens=16)),
            ("a stream", lambda: server.chat(max_tokens=16, stream=True)),
            ("log-probabilities of four choices",
             lambda: server.chat(max_tokens=16, n=4, logprobs=True, top_logprobs=20)),
            ("a long prompt", lambda: server.text(ids, max_tokens=8)),
            ("a text of 8 MB, refused", lambda: server.text("some text, " * 727272, max_tokens=8)),
            ("60,000 messages, refused", lambda: server.chat(many, max_tokens=8)),
            ("24 clients at once", lambda: serve.parallel(*chats)),
        ]

    def check(self, *flags):
        report = inspected(*flags)
        planned = report["resident"]["total"]
        server = serve.Server("-m", NANO, *flags)
        try:
            self.near(server.process.pid, planned, "at the start")
            self.assertIn(f"{planned / (1 << 20):.1f} MiB beside the mapped weights", server.errors())
            for what, call in self.requests(server):
                call()
                anon, mapped = self.near(server.process.pid, planned, what)
            # The files are read where they lie: no page of them is the process's own.
            self.assertGreater(mapped, report["mapped"]["weights"] / 4)
            print(f"{' '.join(map(str, flags))}: planned {planned}, at the end {anon}: {anon / planned - 1:+.2%}")
        finally:
            server.close()

    def test_the_whole_context_with_one_thread(self):
        self.check("--threads", 1)

    def test_a_short_context_with_two_threads(self):
        self.check("--context", 1024, "--threads", 2)


class TokenMap(unittest.TestCase):
    def test_the_token_map_is_kept_where_it_is_said(self):
        with tempfile.TemporaryDirectory(prefix="paceline-test-") as folder:
            cache = pathlib.Path(folder) / "maps"
            server = serve.Server("-m", NANO, "--cache-dir", cache)
            server.close()
            self.assertEqual([p.name[:10] for p in cache.iterdir()], ["token-map-"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
