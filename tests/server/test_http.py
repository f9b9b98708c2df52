"""HTTP from outside: routes, methods, errors, framing, limits, connections that are kept."""
import json
import socket
import struct
import time

import serve

BODY = json.dumps({"messages": serve.QUESTION, "temperature": 0, "max_tokens": 2}).encode()


class Http(serve.Case):
    def test_the_first_line_names_the_address(self):
        self.assertRegex(self.server.first_line, r"\Alistening on http://127\.0\.0\.1:[0-9]+\n\Z")

    def test_health(self):
        reply = self.server.get("/health")
        self.assertEqual(reply.status, 200)
        self.assertEqual(reply.json()["status"], "ok")
        for path in ("/v1/health", "/health/", "/health?x=1", "/%68ealth", "http://test/health"):
            self.assertEqual(self.server.get(path).status, 200, path)

    def test_models(self):
        got = self.server.get("/v1/models").json()
        (model,) = got["data"]
        self.assertEqual((model["id"], model["context_length"], model["max_model_len"]), ("nano", 8192, 8192))
        self.assertEqual(self.server.get("/v1/models/").json(), got)
        self.assertEqual(self.server.get("/models").json(), got)
        self.assertEqual(self.server.get("/v1/models/nano").json(), model)
        self.assertEqual(self.server.get("/v1/models/deepseek-chat").json()["id"], "deepseek-chat")  # any name is accepted

    def test_every_path_without_v1(self):
        for path in ("/chat/completions", "/v1/chat/completions", "/v1/chat/completions/", "/chat/completions?a=b"):
            self.assertEqual(self.server.post(path, BODY).status, 200, path)
        self.assertEqual(self.server.post("/completions", {"prompt": "a", "max_tokens": 1}).status, 200)

    def test_unknown_paths(self):
        for path in ("/v1", "/v1/chat", "/v2/models", "/v1/v1/models", "/healthy", "/v1/models%00", "/%zz", "*", "/%ff",
                     "http://test", "/" + "a" * 2000):
            self.check_error(self.server.get(path), 404, None, "not_found", "not_found_error")
        self.check_error(self.server.post("/v1/embeddings", {}), 404, None, "not_found", "not_found_error")

    def test_the_address_itself_tells_what_is_behind_it(self):
        reply = self.server.get("/")
        self.assertEqual((reply.status, reply.headers["content-type"]), (200, "application/json"))
        got = reply.json()
        self.assertEqual(got, {"server": "paceline", "endpoints": [
            "GET /health", "GET /v1/models", "GET /v1/models/{id}", "POST /v1/chat/completions", "POST /v1/completions"]})
        self.assertEqual(self.server.get("/?x=1").json(), got)
        self.assertEqual(self.server.post("/", {}).status, 405)
        for line in got["endpoints"]:
            method, path = line.split()
            self.assertNotEqual(self.server.send(serve.request(method, path, b"{}" if method == "POST" else None)).status, 404)

    def test_bytes_of_a_request_are_shown_as_text(self):
        error = self.check_error(self.server.get("/v1/models/%ff%1b%5b2Jx"), 404, None, "model_not_found", "not_found_error")
        self.assertEqual(error["message"], 'the model "\\xFF\\x1B[2Jx" is not here, only "nano"')
        error = self.check_error(self.server.send(b"GET /\xff\xe2\x96 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 404, None,
                                 "not_found", "not_found_error")
        self.assertEqual(error["message"], "nothing is at /\\xFF\\xE2\\x96")
        for body, message in (({"logit_bias": {"\x1b[31m\n\u202e": 1}}, '"\\x1B[31m\\x0A\\xE2\\x80\\xAE" is no token id'),
                              ({"logit_bias": {"\u8a9e" * 20: 1}}, '"' + "\u8a9e" * 13 + "\\xE8" + '" is no token id')):
            reply = self.server.chat(**body)
            error = self.check_error(reply, 400, "logit_bias")
            self.assertIn(message, error["message"])

    def test_wrong_methods_are_told_the_right_ones(self):
        for method, path, allow in (("GET", "/v1/chat/completions", "POST, OPTIONS"), ("PUT", "/v1/completions", "POST, OPTIONS"),
                                    ("POST", "/v1/models", "GET, HEAD, OPTIONS"), ("DELETE", "/health", "GET, HEAD, OPTIONS"),
                                    ("BREW", "/health", "GET, HEAD, OPTIONS")):
            reply = self.server.send(serve.request(method, path))
            self.check_error(reply, 405, None, "method_not_allowed")
            self.assertEqual(reply.headers["allow"], allow)

    def test_head_and_options(self):
        with self.server.connect() as s:
            s.sendall(serve.request("HEAD", "/v1/models"))
            reply = serve.Reply(s, head_only=True)
            self.assertEqual(reply.status, 200)
            self.assertGreater(int(reply.headers["content-length"]), 50)
            self.assertEqual(s.recv(1), b"")  # and no body
        for path in ("/v1/chat/completions", "/v1/models", "*"):
            reply = self.server.send(serve.request("OPTIONS", path, headers=["Origin: http://localhost:3000"]))
            self.assertEqual(reply.status, 204)
            self.assertEqual(reply.headers["access-control-allow-origin"], "http://localhost:3000")
            self.assertIn("OPTIONS", reply.headers["allow"])

    def test_only_pages_of_this_machine_may_read(self):
        for origin, allowed in (("http://localhost", True), ("https://localhost:8443", True), ("http://127.0.0.1:5", True),
                                ("http://[::1]:80", True), ("http://evil.example", False), ("null", False),
                                ("http://localhost.evil.example", False), ("http://localhost:80.evil", False),
                                ("http://127.0.0.1.evil", False), ("file://", False), ("", False)):
            for reply in (self.server.get("/v1/models", headers=[f"Origin: {origin}"]),
                          self.server.post("/v1/chat/completions", BODY, headers=[f"Origin: {origin}"])):
                self.assertEqual(reply.status, 200)
                self.assertEqual(reply.headers.get("access-control-allow-origin"), origin if allowed else None)

    def test_broken_framing_is_answered_and_closed(self):
        good = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        for raw, status in (
                (good.replace(b"\r\n", b"\n"), 400),
                (good.replace(b"x\r\n", b"x\n"), 400),
                (b"GET /health HTTP/1.1\r\n\r\n", 400),
                (b"GET /health\r\n\r\n", 400),
                (b"hello\r\n\r\n", 400),
                (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
                (good.replace(b"1.1", b"3.0"), 505),
                (good.replace(b"Host: x", b"Host: x\r\nHost: x"), 400),
                (good.replace(b"Host: x", b"Host: x\r\n folded"), 400),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}", 400),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}", 501),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n", 417),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 67108865\r\n\r\n", 413),
                (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
                (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
                (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
                (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 70000 + b"\r\n\r\n", 431)):
            with self.server.connect() as s:
                s.sendall(raw)
                reply = serve.Reply(s)
                self.check_error(reply, status, kind="server_error" if status >= 500 else "invalid_request_error")
                self.assertEqual(reply.headers["connection"], "close")
                self.assertEqual(s.recv(1), b"", raw[:60])
        self.assertEqual(self.server.get("/health").status, 200)

    def test_a_body_that_is_too_large_is_refused_while_it_is_still_sent(self):
        with self.server.connect() as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 80000000\r\n\r\n")
            sent = 0
            try:
                while sent < 80000000:
                    sent += s.send(b"x" * 1000000)
            except (BrokenPipeError, ConnectionResetError):
                pass
            # Whatever was sent on, the answer is not lost.
            self.check_error(serve.Reply(s), 413)
        with self.server.connect() as s:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            for _ in range(64):
                s.sendall(chunk)
            s.sendall(b"1\r\nx\r\n")
            self.check_error(serve.Reply(s), 413)

    def test_one_body_too_many_does_not_have_the_others_refused(self):
        part = b" " * (62 << 20)
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (len(part) + 2)
        waiting = [self.server.connect() for _ in range(5)]
        try:
            for s in waiting[:4]:  # 248 of the 256 MiB that all bodies together may take
                s.sendall(head + part)
            time.sleep(1)  # until they are out of the kernel's buffers
            try:
                waiting[4].sendall(head + part)
            except (BrokenPipeError, ConnectionResetError):
                pass
            reply = serve.Reply(waiting[4])
            self.check_error(reply, 503, kind="server_error")
            self.assertGreater(int(reply.headers["retry-after"]), 0)
            for s in waiting[:4]:  # what was refused takes no room, though its connection is still open
                s.sendall(b"{}")
                self.check_error(serve.Reply(s), 400, "prompt")
        finally:
            for s in waiting:
                s.close()

    def test_requests_in_any_pieces(self):
        raw = serve.request("POST", "/v1/chat/completions", BODY)
        whole = self.server.send(raw).json()["token_sha"]
        for step in (1, 7, 100):
            with self.server.connect() as s:
                for i in range(0, len(raw), step):
                    s.sendall(raw[i:i + step])
                    if step > 1 or i % 16 == 0:
                        time.sleep(0.001)
                self.assertEqual(serve.Reply(s).json()["token_sha"], whole)

    def test_chunked_bodies(self):
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = self.server.post("/v1/chat/completions", BODY).json()["token_sha"]
        for step in (1, 10, 1000):
            chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(BODY[i:i + step]), BODY[i:i + step])
                              for i in range(0, len(BODY), step))
            reply = self.server.send(head + chunks + b"0\r\nTrailer: x\r\n\r\n")
            self.assertEqual(reply.json()["token_sha"], whole)

    def test_expect_100_continue(self):
        raw = serve.request("POST", "/v1/chat/completions", BODY, headers=["Expect: 100-continue"])
        head, body = raw.split(b"\r\n\r\n", 1)
        with self.server.connect() as s:
            s.sendall(head + b"\r\n\r\n")
            first = serve.Reply(s)
            self.assertEqual((first.status, first.rest), (100, b""))
            s.sendall(body)
            self.assertEqual(serve.Reply(s).status, 200)
        self.assertEqual(self.server.send(raw).status, 200)  # a client that does not wait is not told to go on

    def test_connections_are_kept_and_pipelines_answered_in_order(self):
        with self.server.connect() as s:
            for _ in range(5):
                s.sendall(serve.request("GET", "/health", close=False))
                reply = serve.Reply(s)
                self.assertEqual((reply.status, reply.headers["connection"]), (200, "keep-alive"))
            for _ in range(2):
                s.sendall(serve.request("POST", "/v1/chat/completions", BODY, close=False))
                self.assertEqual(serve.Reply(s).status, 200)
        pipeline = (serve.request("GET", "/v1/models", close=False) + serve.request("POST", "/v1/chat/completions", BODY, close=False)
                    + serve.request("GET", "/nowhere", close=False) + serve.request("GET", "/health"))
        for step in (len(pipeline), 11):
            with self.server.connect() as s:
                for i in range(0, len(pipeline), step):
                    s.sendall(pipeline[i:i + step])
                seen, rest = [], b""
                for _ in range(4):
                    reply = serve.Reply.__new__(serve.Reply)
                    reply.rest = rest
                    self.read_on(reply, s)
                    rest = reply.rest
                    seen.append(reply.status)
                self.assertEqual(seen, [200, 200, 404, 200])
                self.assertEqual(s.recv(1), b"")

    @staticmethod
    def read_on(reply, s):
        """A reply that begins in what was read behind the last one."""
        rest = reply.rest

        class Again:
            def recv(self, n):
                nonlocal rest
                data, rest = rest, b""
                return data or s.recv(n)

        serve.Reply.__init__(reply, Again())
        reply.rest += rest

    def test_http_1_0(self):
        raw = b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s"
        reply = self.server.send(raw % (len(BODY), BODY))
        self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"))
        body = json.dumps({"messages": serve.QUESTION, "temperature": 0, "stream": True}).encode()
        reply = self.server.send(raw % (len(body), body))
        self.assertNotIn("transfer-encoding", reply.headers)
        self.assertEqual(serve.joined(reply.events()), "The noun \"harbour\" means: a small harbor.")

    def test_a_client_that_closes_its_half_still_gets_what_is_ready(self):
        with self.server.connect() as s:
            s.sendall(serve.request("GET", "/health", close=False))
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(serve.Reply(s).status, 200)

    def test_broken_connections_leave_nothing_behind(self):
        for raw in (b"", b"GET", b"GET /health HTTP/1.1\r\n", serve.request("POST", "/v1/completions", BODY)[:-5]):
            s = self.server.connect()
            s.sendall(raw)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a goodbye
            s.close()
        self.assertEqual(self.server.get("/health").status, 200)

    def test_many_connections_at_once(self):
        kept = [self.server.connect() for _ in range(300)]
        for s in kept:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        for s in kept:
            s.sendall(b"\r\n")
        for s in kept:
            self.assertEqual(serve.Reply(s).status, 200)
            s.close()


class Errors(serve.Case):
    def test_bodies_that_are_no_json_object(self):
        for body in (b"", b"{", b"nonsense", b"[]", b"\"x\"", b"{\"messages\": [}", b"\xff\xfe{}", b"{}{}",
                     b"[" * 5000, b"{\"a\":" * 5000):
            for path in ("/v1/chat/completions", "/v1/completions"):
                reply = self.server.post(path, body)
                self.assertEqual(reply.status, 400, body[:20])
                self.assertEqual(reply.error()["type"], "invalid_request_error")
                self.assertIn(reply.error()["code"], ("invalid_json", None))

    def test_errors_name_the_parameter(self):
        # tests/server/test_call.c has the long list; these go through the whole server.
        for fields, param, code in (({"temperature": 5}, "temperature", None), ({"n": 0}, "n", None),
                                    ({"messages": [{"role": "x"}]}, "messages[0].role", None),
                                    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_value"),
                                    ({"stream_options": {"include_usage": True}}, "stream_options", None)):
            for stream in (False, True):
                if stream and "stream_options" in fields:
                    continue
                self.check_error(self.server.chat(**{"messages": serve.QUESTION, **fields}, stream=stream), 400, param, code)
        self.check_error(self.server.post("/v1/chat/completions", {}), 400, "messages")
        self.check_error(self.server.post("/v1/completions", {}), 400, "prompt")
        self.check_error(self.server.text([8192]), 400, "prompt")
        self.check_error(self.server.text([5] * 8192), 400, "prompt", "context_length_exceeded")

    def test_a_message_never_cuts_a_character(self):
        # The quoted part of a request is bounded in bytes; with one letter before them, two-byte characters are cut.
        for before in ("", "x"):
            reply = self.server.chat(serve.QUESTION, logit_bias={before + "\u00e9" * 60: 1})
            self.check_error(reply, 400, "logit_bias")
            self.assertIn("\u00e9", reply.error()["message"])

    def test_a_lone_surrogate_does_not_lock_a_conversation(self):
        body = b'{"messages": [{"role": "user", "content": "cut \\ud83d"}], "max_tokens": 1}'
        self.assertEqual(self.server.post("/v1/chat/completions", body).status, 200)


if __name__ == "__main__":
    serve.main()
