"""paceline inspect: the account of a checkpoint, from a folder or from a config alone."""
import json
import pathlib
import shutil

import cli

RELEASE = "tests/vectors/release/config.json"


class Inspect(cli.Case):
    def report(self, *words):
        return json.loads(self.ok("inspect", "--json", *words).stdout)

    def test_the_release(self):
        text = self.ok("inspect", "--config", RELEASE).stdout
        self.assertIn("96,085", text)
        self.assertIn("510,286,023,000", text)
        report = self.report("--config", RELEASE)
        self.assertEqual((report["tensors"], report["bytes"], report["shards"]), (96085, 510286023000, 48))
        self.assertEqual(report["mapped"]["engram_tables"], 202758032400)
        self.assertEqual(report["parts"]["vision"]["bytes"], 970536960)
        self.assertEqual(sum(p["bytes"] for p in report["parts"].values()), report["bytes"])
        self.assertEqual(sum(p["tensors"] for p in report["parts"].values()), report["tensors"])
        self.assertEqual(report["config"]["kv_owner"][:10], [-1, -1, 2, 2, 2, 2, 2, 2, 8, 8])

    def test_a_folder_equals_its_config(self):
        folder = self.report(cli.NANO)
        config = self.report("--config", cli.NANO + "/config.json")
        self.assertEqual((folder["tensors"], folder["bytes"], folder["shards"]), (1542, 29993516, 2))
        for key in ("config", "parts", "mapped", "tensors", "bytes"):
            self.assertEqual(folder[key], config[key], key)
        # A config has no tokenizer: that is the one difference, and it is said.
        tokenizer = folder["resident"].pop("tokenizer")
        self.assertGreater(tokenizer, 8192 * 12)
        self.assertIsNone(config["resident"].pop("tokenizer"))
        self.assertEqual(folder["resident"].pop("total"), config["resident"].pop("total") + tokenizer)
        self.assertEqual(folder["resident"], config["resident"])
        self.assertIn("without a tokenizer", self.ok("inspect", "--config", cli.NANO + "/config.json").stdout)
        self.assertNotIn("without a tokenizer", self.ok("inspect", cli.NANO).stdout)
        self.assertEqual(self.report()["parts"], folder["parts"], "without a folder: the embedded model")

    def test_unused_tensors_are_counted_apart(self):
        report = self.report(cli.TINY)
        self.assertEqual((report["tensors"], report["bytes"]), (939, 4097108))
        self.assertEqual(report["parts"]["unused"], {"tensors": 3, "bytes": 768})
        self.assertNotIn("vision", report["parts"])
        self.assertEqual(self.report("--config", cli.TINY + "/config.json")["tensors"], 936)

    def test_settings_reach_the_plan(self):
        short, long = (self.report("--config", RELEASE, "--context", n)["resident"] for n in (1024, 65536))
        self.assertEqual((short["context"], long["context"]), (1024, 65536))
        self.assertLess(short["state"], long["state"])
        one, many = (self.report(cli.NANO, "--threads", n)["resident"] for n in (1, 9))
        self.assertLess(one["scratch"], many["scratch"])
        self.assertLess(one["program"], many["program"])
        for resident in (short, long, one, many):
            notes = ("context", "slots", "threads", "total")
            self.assertEqual(resident["total"], sum(v or 0 for k, v in resident.items() if k not in notes))

    def test_a_folder_without_a_tokenizer_and_one_with_a_broken_one(self):
        copy = self.folder / "tiny"
        shutil.copytree(cli.TINY, copy)
        copy.chmod(0o755)
        tokenizer = copy / "tokenizer.json"
        tokenizer.unlink()
        self.assertIsNone(self.report(copy)["resident"]["tokenizer"])
        tokenizer.write_text("{}")
        self.fails(1, "inspect", copy, says=str(tokenizer))

    def test_refusals(self):
        self.fails(1, "inspect", "/nonexistent", says="/nonexistent/config.json")
        self.fails(1, "inspect", "--config", "/nonexistent", says="/nonexistent")
        self.fails(2, "inspect", cli.NANO, "--config", RELEASE, says="both")
        self.fails(2, "inspect", cli.NANO, "-m", cli.TINY, says="both")
        self.fails(1, "inspect", self.folder, says="config.json")
        copy = self.folder / "nano"
        shutil.copytree(cli.NANO, copy)
        copy.chmod(0o755)
        shard = copy / "model-00002-of-00002.safetensors"
        data = shard.read_bytes()
        shard.unlink()
        shard.write_bytes(data[:-1])
        self.fails(1, "inspect", copy, says=[str(shard), "truncated"])
        config = json.loads(pathlib.Path(RELEASE).read_text())
        config["text_config"]["num_attention_heads"] = 63
        bad = self.folder / "bad.json"
        bad.write_text(json.dumps(config))
        self.fails(1, "inspect", "--config", bad, says=["text_config.num_attention_heads", "multiple of 8", "63"])


if __name__ == "__main__":
    cli.main()
