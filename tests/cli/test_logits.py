"""paceline logits: rows as promised, and the numbers of the reference."""
import array
import math
import pathlib

import cli

VOCAB = 8192


class Logits(cli.Case):
    def test_one_row_or_all(self):
        case = cli.CASES["turns"]
        ids = case["ids"] + case["greedy"]
        one, every, again = (self.folder / name for name in ("one", "every", "again"))
        self.ok("logits", "--ids", cli.ids_text(ids), "--out", one)
        self.ok("logits", "--ids", cli.ids_text(ids), "--all", "--out", every, "--threads", 1)
        self.assertEqual(one.stat().st_size, VOCAB * 4)
        self.assertEqual(every.stat().st_size, len(ids) * VOCAB * 4)
        self.assertEqual(every.read_bytes()[-VOCAB * 4:], one.read_bytes(), "the last of all rows is the last row")
        listed = self.folder / "ids.txt"
        listed.write_text(", ".join(map(str, ids)) + "\n")
        self.ok("logits", "-m", cli.NANO, "--ids", f"@{listed}", "--out", again)
        self.assertEqual(again.read_bytes(), one.read_bytes())

    def test_no_bit_depends_on_threads_or_instruction_set(self):
        ids = cli.ids_text([(i * 31 + 7) % 512 for i in range(70)])
        rows = {}
        for isa, threads in (("auto", 2), ("auto", 1), ("scalar", 3)):
            out = self.folder / f"{isa}{threads}"
            self.ok("logits", "-m", cli.TINY, "--ids", ids, "--all", "--out", out, "--isa", isa, "--threads", threads)
            rows[isa, threads] = out.read_bytes()
        self.assertEqual(len(set(rows.values())), 1)

    def test_against_the_reference(self):
        """Log-sum-exp and the eight largest logits of every stored row. Sums run in another order there, so the numbers
        agree to the noise that FP8 and FP4 roundings make of a last bit (0.05 to 0.25 on average), and the most likely
        token wherever the reference's margin is past that noise."""
        for name, case in cli.CASES.items():
            ids = (case["ids"] + case["greedy"])[:case["rows"]]
            out = self.folder / name
            self.ok("logits", "--ids", cli.ids_text(ids), "--all", "--out", out)
            mine = cli.floats(out)
            lse = cli.floats(f"tests/vectors/nano/{name}.lse.f32")
            top = cli.floats(f"tests/vectors/nano/{name}.top8.f32")
            top_id = array.array("i")
            top_id.frombytes(pathlib.Path(f"tests/vectors/nano/{name}.top8_id.i32").read_bytes())
            self.assertEqual(len(lse), case["rows"])
            total, sharp = 0.0, 0
            for row in range(case["rows"]):
                line = mine[row * VOCAB:(row + 1) * VOCAB]
                self.assertTrue(all(map(math.isfinite, line)))
                high = max(line)
                own = high + math.log(sum(math.exp(x - high) for x in line))
                gaps = [abs(line[top_id[row * 8 + k]] - top[row * 8 + k]) for k in range(8)] + [abs(own - lse[row])]
                total += sum(gaps) / len(gaps)
                if top[row * 8] - top[row * 8 + 1] > 1.5:
                    self.assertEqual(line.index(high), top_id[row * 8], (name, row))
                    sharp += 1
            self.assertLess(total / case["rows"], 0.3, name)
            self.assertGreater(sharp, 0, name)

    def test_where_it_cannot_write(self):
        self.fails(1, "logits", "--ids", "1", "--out", "/nonexistent/x", says="/nonexistent/x")
        self.fails(1, "logits", "--ids", "1", "--out", self.folder, says="folder")
        self.fails(1, "logits", "--ids", "1", "--out", "/dev/full", says="/dev/full")


if __name__ == "__main__":
    cli.main()
