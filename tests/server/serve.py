"""A server on nano for tests: python3, standard library only. Requests go out as raw bytes, so that what is sent and what
comes back is exactly what a test says."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

PROGRAM = os.path.abspath(os.environ.get("PACELINE", "build/release/paceline"))
CASES = json.loads(pathlib.Path("tests/vectors/nano/cases.json").read_text(encoding="utf-8"))
QUESTION = [{"role": "user", "content": "What does the word \"harbour\" mean?"}]
# The trained checkpoint repeats itself for ever here, so that a reply of any length can be had.
STORY = [{"role": "user", "content": "Write a paragraph of a story."}]


class Server:
    """`paceline serve` on a free port. Ends with the test."""

    def __init__(self, *flags, wait=True):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--threads", "1", *map(str, flags)], env=clean,
                                        stdout=subprocess.PIPE, stderr=self.log)
        self.first_line = self.process.stdout.readline().decode()
        if not self.first_line.startswith("listening on http://"):
            self.process.wait(30)
            said = self.errors()
            self.close()
            raise RuntimeError(f"no listening line but {self.first_line!r}: {said}")
        self.port = int(self.first_line.rsplit(":", 1)[1])
        if wait:
            self.await_ready()

    def await_ready(self):
        until = time.time() + 120
        while time.time() < until:
            if self.get("/health").status == 200:
                return
            time.sleep(0.02)
        raise RuntimeError("not ready: " + self.errors())

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def connect(self, timeout=60):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def send(self, raw, timeout=60):
        """One connection, these bytes, the first reply."""
        with self.connect(timeout) as s:
            s.sendall(raw)
            return Reply(s)

    def get(self, path, **options):
        return self.send(request("GET", path, **options))

    def post(self, path, body, **options):
        return self.send(request("POST", path, body, **options))

    def chat(self, messages=None, **fields):
        return self.post("/v1/chat/completions", {"messages": messages or QUESTION, **fields})

    def text(self, prompt, **fields):
        return self.post("/v1/completions", {"prompt": prompt, **fields})

    def health(self):
        return self.get("/health").json()

    def await_health(self, **wanted):
        """Wait until /health says this, at most ten seconds."""
        until = time.time() + 10
        while time.time() < until:
            seen = self.health()
            if all(seen.get(k) == v for k, v in wanted.items()):
                return seen
            time.sleep(0.005)
        raise AssertionError(f"wanted {wanted}, last seen {seen}")

    def stop(self, sig=signal.SIGTERM, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(timeout)
        self.process.stdout.close()
        return code

    def close(self):
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.log.close()


def request(method, path, body=None, headers=(), version="1.1", close=True):
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/{version}", "Host: test"]
    if close:
        lines.append("Connection: close")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    lines += headers
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Reply:
    """Reads one reply from a socket; strict about its framing."""

    def __init__(self, sock, head_only=False, read_body=True):
        self.sock, self.rest, self.pieces, self.times = sock, b"", [], []
        head = self._until(b"\r\n\r\n").decode("ascii")
        lines = head.split("\r\n")
        version, status, self.phrase = lines[0].split(" ", 2)
        assert version == "HTTP/1.1", head
        self.status = int(status)
        self.headers = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            assert name.lower() not in self.headers, head
            self.headers[name.lower()] = value
        self.body = b""
        self.complete = False
        if read_body and not head_only and self.status not in (100, 204):
            for piece in self.stream():
                self.body += piece

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError(self.rest)
        self.rest += data

    def _until(self, mark):
        while mark not in self.rest:
            self._more()
        taken, self.rest = self.rest.split(mark, 1)
        return taken

    def _exactly(self, n):
        while len(self.rest) < n:
            self._more()
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def stream(self):
        """The body's pieces as they come."""
        if self.headers.get("transfer-encoding") == "chunked":
            assert "content-length" not in self.headers
            while True:
                size = int(self._until(b"\r\n"), 16)
                data = self._exactly(size)
                assert self._exactly(2) == b"\r\n"
                if size == 0:
                    break
                yield data
        elif "content-length" in self.headers:
            yield self._exactly(int(self.headers["content-length"]))
        else:
            while True:
                yield self.rest
                self.rest = self.sock.recv(65536)
                if not self.rest:
                    break
        self.complete = True

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]

    def events(self):
        return parse_events(self.body)


def parse_events(body):
    """The data of every SSE event, comments left out; JSON parsed, [DONE] as it is."""
    text = body.decode("utf-8")
    assert text.endswith("\n\n"), text[-80:]
    found = []
    for block in text[:-2].split("\n\n"):
        assert "\n" not in block, block
        if block.startswith(":"):
            continue
        assert block.startswith("data: "), block
        data = block[6:]
        found.append(data if data == "[DONE]" else json.loads(data))
    return found


def joined(events, index=0, field="content"):
    """The text of one choice of a stream."""
    out = ""
    for e in events:
        if e == "[DONE]":
            continue
        for c in e["choices"]:
            if c["index"] == index:
                out += (c["delta"].get(field) or "") if "delta" in c else c["text"]
    return out


class Case(unittest.TestCase):
    """Tests that share one server; FLAGS are its flags."""
    FLAGS = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.FLAGS)

    @classmethod
    def tearDownClass(cls):
        # A sanitizer's findings are the exit code too.
        code = cls.server.stop()
        said = cls.server.errors()
        cls.server.close()
        if code != 0:
            raise AssertionError(f"the server ended with {code}: {said[-6000:]}")

    def check_error(self, reply, status, param=None, code=None, kind="invalid_request_error"):
        self.assertEqual(reply.status, status, reply.body)
        self.assertEqual(reply.headers["content-type"], "application/json")
        body = reply.json()
        self.assertEqual(list(body), ["error"])
        error = body["error"]
        self.assertEqual((error["type"], error["param"], error["code"]), (kind, param, code), error)
        self.assertTrue(error["message"])
        return error


def parallel(*calls):
    """Run the calls at once; their results in order, or the first exception."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except BaseException as e:
            results[i] = e

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


def main():
    unittest.main(verbosity=1)
