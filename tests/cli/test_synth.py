"""paceline synth: a random checkpoint that the whole program runs on."""
import json
import math
import pathlib
import resource
import subprocess

import cli

SMALL = "tests/checkpoint/small.json"


class Synth(cli.Case):
    def test_a_checkpoint_that_runs(self):
        out = self.folder / "a" / "b"
        self.ok("synth", "--config", SMALL, "--seed", 3, "--out", out)
        names = {path.name for path in out.iterdir()}
        self.assertEqual(names, {f"model-{i:05}-of-00008.safetensors" for i in range(1, 9)} | {
            "model.safetensors.index.json", "config.json", "generation_config.json", "tokenizer.json",
            "tokenizer_config.json"})
        given = json.loads(pathlib.Path(SMALL).read_text())
        written = json.loads((out / "config.json").read_text())
        classes = written["text_config"].pop("engram_compressed_vocab_size")
        given["text_config"].pop("engram_compressed_vocab_size")
        self.assertEqual(written, given, "all but the class count is the given config")
        self.assertTrue(100 < classes < 320, classes)
        report = json.loads(self.ok("inspect", "--json", out).stdout)
        self.assertEqual((report["tensors"], report["bytes"]), (244, 554032))

        ids = [(i * 37 + 11) % 320 for i in range(40)]
        logits = self.folder / "logits"
        self.ok("logits", "-m", out, "--ids", cli.ids_text(ids), "--all", "--out", logits)
        values = cli.floats(logits)
        self.assertTrue(all(map(math.isfinite, values)))
        rows = [values[i * 320:(i + 1) * 320] for i in range(40)]
        spread = math.sqrt(sum(x * x for x in values) / len(values))
        self.assertTrue(1 < spread < 10, spread)
        best = {max(range(320), key=row.__getitem__) for row in rows}
        self.assertGreater(len(best), 10, "the text goes somewhere")
        drafts = json.loads(self.ok("drafts", "-m", out, "--ids", cli.ids_text(ids), "--json").stdout)
        self.assertEqual(len(drafts["drafts"]), 5)

    def test_the_seed_decides(self):
        for name, seed in (("one", 1), ("same", 1), ("other", 2)):
            self.ok("synth", "--config", SMALL, "--seed", seed, "--out", self.folder / name)
        one, same, other = ([(self.folder / name / f"model-{i:05}-of-00008.safetensors").read_bytes()
                             for i in range(1, 9)] for name in ("one", "same", "other"))
        self.assertEqual(one, same)
        self.assertTrue(all(a != b for a, b in zip(one, other)))

    def test_the_tokenizer_is_one(self):
        out = self.folder / "s"
        self.ok("synth", "--config", SMALL, "--out", out)
        text = "The <｜User｜> said: 1234\n\n  déjà vu 你好\0!"
        ids = json.loads(self.ok("tokenize", "-m", out, "--json", stdin=text).stdout)
        ids = ids["ids"] if isinstance(ids, dict) else ids
        back = self.ok("tokenize", "-m", out, "--decode", stdin=cli.ids_text(ids)).stdout
        self.assertEqual(back.rstrip("\n"), text)

    def test_no_room_leaves_nothing(self):
        for limit in (1000, 50_000, 100_000):  # the first shard, one of the later, the small files
            def before():
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            result = subprocess.run([cli.PROGRAM, "synth", "--config", SMALL, "--out", self.folder / "a" / "b"],
                                    preexec_fn=before, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("File too large", result.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])
            (self.folder / "a").mkdir()
            (self.folder / "a" / "mine").write_text("x")
            result = subprocess.run([cli.PROGRAM, "synth", "--config", SMALL, "--out", self.folder / "a"],
                                    preexec_fn=before, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual([path.name for path in (self.folder / "a").iterdir()], ["mine"], "what was there stays")
            (self.folder / "a" / "mine").unlink()
            (self.folder / "a").rmdir()
        config = json.loads(pathlib.Path(SMALL).read_text())
        config["text_config"].update(n_routed_experts=8192, hidden_size=65536, moe_intermediate_size=131072)
        self.fails(1, "synth", "--config", "-", "--out", self.folder / "a", stdin=json.dumps(config),
                   says=["expected room for", "free"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_refusals(self):
        out = self.folder / "r"
        self.fails(2, "synth", "--out", out, says="--config")
        self.fails(2, "synth", "--config", SMALL, says="--out")
        self.fails(1, "synth", "--config", "/nonexistent", "--out", out, says="/nonexistent")
        self.ok("synth", "--config", SMALL, "--out", out)
        self.fails(2, "synth", "--config", SMALL, "--out", out, says="found a checkpoint")
        config = json.loads(pathlib.Path(SMALL).read_text())
        config["text_config"].update(vocab_size=270, dspark_noise_token_id=269, engram_compressed_vocab_size=200)
        config["image_token_id"] = 268
        bad = self.folder / "bad.json"
        bad.write_text(json.dumps(config))
        self.fails(1, "synth", "--config", bad, "--out", self.folder / "x", says=["vocab_size", "270"])
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    cli.main()
