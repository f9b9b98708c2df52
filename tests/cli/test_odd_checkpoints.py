"""Checkpoints that are legal and unlike the two in the repository: sizes at which other paths are taken."""
import json
import pathlib
import struct

import cli

SMALL = "tests/checkpoint/small.json"
ENGRAM = "model-00008-of-00008.safetensors"


def primes(first, count):
    found = []
    while len(found) < count:
        if all(first % d for d in range(2, int(first ** 0.5) + 1)):
            found.append(first)
        first += 1
    return found


class OddCheckpoints(cli.Case):
    def synth(self, **fields):
        """The small checkpoint with other numbers in its text_config."""
        config = json.loads(pathlib.Path(SMALL).read_text(encoding="utf-8"))
        config["text_config"].update(fields)
        given = self.folder / "given.json"
        given.write_text(json.dumps(config), encoding="utf-8")
        out = self.folder / "model"
        self.ok("synth", "--config", given, "--out", out)
        return out

    def grow_engram(self, folder, first):
        """Give the Engram tables of so many rows that no thread count is too large for their scales. They are a hole in
        the file: zeros, which take no room on the disk."""
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        rows = sum(primes(first, 2))
        config["text_config"].update(engram_vocab_size=first, engram_num_embeddings=[rows])
        path.write_text(json.dumps(config), encoding="utf-8")
        shard = folder / ENGRAM
        old = shard.read_bytes()
        size, = struct.unpack("<Q", old[:8])
        header, data = json.loads(old[8:8 + size]), old[8 + size:]
        tables = {"layers.1.engram.embed.weight": 32, "layers.1.engram.embed.scale": 1}
        at, kept = 0, []
        for name in sorted((n for n in header if n != "__metadata__"), key=lambda n: n in tables):
            tensor = header[name]
            begin, end = tensor["data_offsets"]
            if name in tables:
                tensor["shape"] = [rows, tables[name]]
                begin, end = 0, rows * tables[name]
            else:
                kept.append(data[begin:end])
            tensor["data_offsets"] = [at, at + end - begin]
            at += end - begin
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(shard, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(kept))
            file.truncate(8 + len(text) + at)
        return rows

    def test_more_scales_than_one_thread_checks(self):
        """From 4 MB of scale bytes on, threads check them: with the settings that a start without any has, too."""
        folder = self.synth()
        self.assertGreater(self.grow_engram(folder, 2_200_000), 4 << 20)
        replies = [json.loads(self.ok("run", "-m", folder, "--json", "--max-tokens", 4, "--raw", "hello", *words).stdout)
                   for words in ([], ["--threads", 1], ["--threads", 3])]
        self.assertEqual(len({reply["token_sha"] for reply in replies}), 1)
        self.ok("inspect", folder)

    def test_a_markov_rank_wider_than_anything_else(self):
        """One row of it alone is more than all rows of any other matrix here."""
        folder = self.synth(dspark_markov_rank=65536)
        found = {self.ok("drafts", "-m", folder, "--ids", "5,6,7", "--json", "--isa", isa).stdout
                 for isa in ("scalar", "auto")}
        self.assertEqual(len(found), 1)
        self.assertEqual(len(json.loads(found.pop())["drafts"]), 5)


if __name__ == "__main__":
    cli.main()
