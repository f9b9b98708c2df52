"""What stands where a file is expected: "-" is a standard stream or refused, pipes are read where text comes in and refused
where a file must be, and none of it is waited for."""
import fcntl
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import threading

import cli

IDS = ["-m", cli.TINY, "--ids", "5,6,7"]


def raw(*words, stdin=b""):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
    return subprocess.run([cli.PROGRAM, *map(str, words)], input=stdin, env=clean, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)


class Streams(cli.Case):
    def test_logits_to_standard_output(self):
        whole = self.folder / "whole"
        self.ok("logits", *IDS, "--all", "--out", whole)
        cwd = os.getcwd()
        result = subprocess.run([cli.PROGRAM, "logits", "-m", f"{cwd}/{cli.TINY}", "--ids", "5,6,7", "--all", "--out", "-"],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, whole.read_bytes())
        self.assertEqual(result.stderr, b"standard output: 3 x 512 float32\n")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["whole"], "no file named -")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([cli.PROGRAM, "logits", *IDS, "--out", "-"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"standard output: ", result.stderr)

    def test_dash_is_standard_input(self):
        plain = self.ok("tokenize", "--json", "hello world").stdout
        for words in (["-"], ["--text", "-"], []):
            self.assertEqual(self.ok("tokenize", "--json", *words, stdin="hello world").stdout, plain, words)
        self.assertEqual(self.ok("tokenize", "--jsonl", "-", stdin='{"s": "hello world"}').stdout, plain)
        self.assertEqual(self.ok("tokenize", "--decode", "-", stdin=plain).stdout, "hello world")
        drafts = self.ok("drafts", *IDS).stdout
        for ids in ("-", "@-"):
            self.assertEqual(self.ok("drafts", "-m", cli.TINY, "--ids", ids, stdin="5,6,7\n").stdout, drafts)
        config = pathlib.Path("tests/checkpoint/small.json").read_text()
        self.assertTrue(self.ok("inspect", "--config", "-", stdin=config).stdout.startswith("standard input: 8 shards"))
        self.fails(1, "inspect", "--config", "-", stdin="{", says="standard input: ")
        self.ok("synth", "--config", "-", "--out", self.folder / "s", stdin=config)

    def test_dash_where_a_name_is_needed(self):
        for words, says in ((["trace", *IDS, "--out", "-"], "--out"),
                            (["synth", "--config", "tests/checkpoint/small.json", "--out", "-"], "--out"),
                            (["tokenize", "--tokenizer", "-", "x"], "--tokenizer"), (["run", "-m", "-", "x"], "--model"),
                            (["trace", *IDS, "--out", self.folder, "--layer", 0, "--pre", "x", "--h", "-"], "--h"),
                            (["logits", *IDS, "--out", "/dev/null", "--cache-dir", "-"], "--cache-dir"),
                            (["inspect", "-"], "folder")):
            self.fails(2, *words, says=[says, "-"])
        self.fails(2, "run", "x", env={"PACELINE_MODEL": "-"}, says="PACELINE_MODEL")
        self.assertFalse(pathlib.Path("-").exists())

    def test_pipes_and_folders_in_place_of_files(self):
        model = self.folder / "model"
        shutil.copytree(cli.TINY, model)
        shard = sorted(path.name for path in model.glob("*.safetensors"))[0]
        for name in ("config.json", "tokenizer.json", "model.safetensors.index.json", shard):
            path = model / name
            content = path.read_bytes()
            path.unlink()
            os.mkfifo(path)
            words = ["drafts", "-m", model, "--ids", "5"] if name != "tokenizer.json" else ["tokenize", "-m", model, "x"]
            self.fails(1, *words, says=[str(path), "named pipe"], timeout=30)
            path.unlink()
            path.mkdir()
            self.fails(1, *words, says=str(path), timeout=30)
            path.rmdir()
            path.write_bytes(content)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        self.fails(1, "inspect", "--config", fifo, says=[str(fifo), "named pipe"], timeout=30)
        self.fails(1, "inspect", "--config", "/dev/zero", says=["/dev/zero", "a device"], timeout=30)
        self.fails(1, "tokenize", "--tokenizer", self.folder, "x", says=[str(self.folder), "a folder"], timeout=30)
        self.fails(1, "tokenize", "--text", self.folder, says=[str(self.folder), "a folder"])

    def test_a_leased_file_is_waited_for(self):
        """As file servers hold them: the open waits for the lease to be given back, where it does not wait for pipes."""
        path = self.folder / "tokenizer.json"
        shutil.copy(pathlib.Path(cli.TINY, "tokenizer.json"), path)
        with open(path, "r+b") as held:
            signal.signal(signal.SIGIO, lambda *_: fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK))
            try:
                fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError:
                self.skipTest("no leases on this file system")
            self.ok("tokenize", "--tokenizer", path, "x", timeout=30)

    def test_text_comes_from_pipes(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for words, content, want in ((["tokenize", "--text", fifo], "hello", self.ok("tokenize", "hello").stdout),
                                     (["drafts", "-m", cli.TINY, "--ids", f"@{fifo}"], "5,6,7",
                                      self.ok("drafts", *IDS).stdout)):
            writer = threading.Thread(target=fifo.write_text, args=(content,))
            writer.start()
            self.assertEqual(self.ok(*words).stdout, want)
            writer.join()

    def test_a_cache_that_cannot_be_written_costs_no_word(self):
        (self.folder / "file").write_text("x")
        words = ["logits", *IDS, "--out", "/dev/null"]
        quiet = "/dev/null: 1 x 512 float32\n"
        for home in (self.folder / "file", "/proc"):
            result = self.ok(*words, env={"HOME": str(home), "XDG_CACHE_HOME": ""})
            self.assertEqual(result.stderr, quiet)
        said = self.ok("run", "-m", cli.TINY, "--log", "debug", "--max-tokens", 1, "--ids", "5", "--cache-dir", "/proc/x").stderr
        self.assertIn("--cache-dir", said)
        cache = self.folder / "cache"
        self.ok(*words, "--cache-dir", cache)
        kept, = cache.iterdir()
        kept.unlink()
        os.mkfifo(kept)
        self.assertEqual(self.ok(*words, "--cache-dir", cache, timeout=30).stderr, quiet)

    def test_no_memory_is_not_the_text_s_fault(self):
        lines = self.folder / "lines"
        lines.write_text('{"s": "' + "a b " * 1_000_000 + '"}\n')
        failed = 0
        for megabytes in range(12, 48, 2):
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            def limited(*words):
                return subprocess.run([cli.PROGRAM, *map(str, words)], preexec_fn=limit, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
            if limited("tokenize", "x").returncode != 0:
                continue
            result = limited("tokenize", "--jsonl", lines)
            if result.returncode != 0:
                failed += 1
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(b"no memory for ", result.stderr)
        if not failed:
            self.skipTest("this build cannot run in so little memory")


if __name__ == "__main__":
    cli.main()
