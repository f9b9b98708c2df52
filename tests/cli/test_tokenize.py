"""paceline tokenize: every way in and out, back again, and the refusals."""
import json
import pathlib
import subprocess

import cli

TOKENIZER = "models/nano/tokenizer.json"
USER = "<\uff5cUser\uff5c>"


class Tokenize(cli.Case):
    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def ids(self, *words, **options):
        return json.loads(self.ok("tokenize", "--json", *words, **options).stdout)

    def test_reference_texts(self):
        for name, case in cli.CASES.items():
            path = self.write(name, case["text"])
            self.assertEqual(self.ids("--tokenizer", TOKENIZER, "--text", path), case["ids"], name)
            self.assertEqual(self.ids("-m", cli.NANO, stdin=case["text"]), case["ids"], name)
            plain = self.ok("tokenize", "--text", path).stdout
            self.assertEqual(plain, " ".join(map(str, case["ids"])) + "\n", name)

    def test_tiny_reference_texts_as_lines(self):
        cases = json.loads(pathlib.Path("tests/vectors/tiny-a/tokenizer_cases.json").read_text(encoding="utf-8"))
        path = self.write("cases.jsonl", "".join(json.dumps({"s": c["text"]}) + "\n" for c in cases))
        lines = self.ok("tokenize", "-m", cli.TINY, "--jsonl", path).stdout.splitlines()
        self.assertEqual([json.loads(line) for line in lines], [c["ids"] for c in cases])
        ids = self.write("ids.jsonl", "\n".join(lines))
        back = self.ok("tokenize", "-m", cli.TINY, "--decode", "--jsonl", ids).stdout.splitlines()
        self.assertEqual([json.loads(line)["s"] for line in back], [c["text"] for c in cases])

    def test_text_in_the_command_line(self):
        self.assertEqual(self.ids("hello world"), [5722, 391, 1866])
        self.assertEqual(self.ids(USER + "hello"), [8140, 5722, 391])
        self.assertEqual(self.ids(""), [])
        self.assertEqual(self.ok("tokenize", "").stdout, "\n")

    def test_no_special(self):
        plain = self.ids("--no-special", USER)
        self.assertGreater(len(plain), 1)
        self.assertLess(max(plain), 8128)
        path = self.write("x.jsonl", json.dumps({"s": USER}) + "\n")
        self.assertEqual(json.loads(self.ok("tokenize", "--no-special", "--jsonl", path).stdout), plain)

    def test_decode(self):
        for text in ("8140,5722,391", "8140 5722 391\n", "[8140, 5722,391]", " \n8140,\t5722 ,391, "):
            self.assertEqual(self.ok("tokenize", "--decode", text).stdout, USER + "hello", text)
        self.assertEqual(self.ok("tokenize", "--decode", stdin="").stdout, "")
        self.assertEqual(self.ok("tokenize", "--decode", "0,5722,391,1", "--no-special").stdout, "hello")
        self.assertEqual(json.loads(self.ok("tokenize", "--decode", "--json", "5722,391").stdout), "hello")

    def test_decode_gives_the_bytes_themselves(self):
        content = bytes(range(1, 128)) + "é你\U0001f600\u0000".encode()
        path = self.write("bytes", content)
        ids = self.write("ids", self.ok("tokenize", "--text", path).stdout)
        out = subprocess.run([cli.PROGRAM, "tokenize", "--decode", "--text", ids], stdout=subprocess.PIPE, check=True)
        self.assertEqual(out.stdout, content)
        half = self.ids("\U00020000")[:1]  # a byte or two of a character that has no token
        self.assertEqual(json.loads(self.ok("tokenize", "--decode", "--json", cli.ids_text(half)).stdout), "\ufffd")

    def test_refusals(self):
        self.fails(1, "tokenize", "--text", self.write("bad", b"ab\xff"), says=["/bad: ", "UTF-8", "offset 2"])
        self.fails(1, "tokenize", "--tokenizer", self.write("t2.json", pathlib.Path(TOKENIZER).read_text(encoding="utf-8").replace(
            '"id": 0,', '"id": 0.5,', 1).replace('"id":0,', '"id":0.5,', 1)), "x",
                   says=["t2.json: added_tokens[0].id: expected a whole number from 0 to ", "found 0.5"])
        self.fails(1, "tokenize", "--tokenizer", self.write("t.json", "{}"), "x", says=["t.json", "version"])
        self.fails(1, "tokenize", "--tokenizer", self.folder / "none.json", "x", says="none.json")
        self.fails(2, "tokenize", "--tokenizer", TOKENIZER, "-m", cli.NANO, "x", says="--tokenizer")
        self.fails(2, "tokenize", "--text", "-", "x", says="--text")
        lines = self.write("l.jsonl", '{"s": "a"}\n{"t": "a"}\n')
        self.fails(2, "tokenize", "--jsonl", lines, says=["l.jsonl", "line 2"])
        self.fails(2, "tokenize", "--jsonl", self.write("m.jsonl", '{"s": "\\ud800"}\n'), says="line 1")
        for content, flags in (('{"s": "a"}\n\n{"s": "b"}\n', []), ("[1]\n \r\n", ["--decode"])):
            self.fails(2, "tokenize", "--jsonl", self.write("e.jsonl", content), *flags, says=["e.jsonl, line 2", "an empty line"])
        for text in ("8192", "-1", "1;2", "1.5", "[1, 8192]", "[\"1\"]", "[1", "99999999999999999999"):
            self.fails(2, "tokenize", "--decode", "--text", self.write("ids", text), says="ids")
        self.fails(2, "tokenize", "--decode", "[1, 8192]", says=["0 to 8191", "8192"])

    def test_one_number_is_one_id_however_it_is_spelled(self):
        end = self.ok("tokenize", "--decode", "1").stdout
        self.assertEqual(self.ok("tokenize", "--decode", "0" * 40 + "1").stdout, end)
        self.assertEqual(self.ok("tokenize", "--decode", "00000000000,000000000001").stdout,
                         self.ok("tokenize", "--decode", "0").stdout + end)


if __name__ == "__main__":
    cli.main()
