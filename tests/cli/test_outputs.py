"""What becomes of outputs when something stops the program: closed streams, full files, signals. Nothing half-written stays,
and what is printed never lands in a file that was opened for something else."""
import os
import resource
import signal
import subprocess
import time

import cli

LONG = cli.ids_text([(i * 31 + 7) % 512 for i in range(4000)])


def close_streams(*numbers):
    def closer():
        for number in numbers:
            os.close(number)
    return closer


class Outputs(cli.Case):
    def start(self, *words, before=None):
        return subprocess.Popen([cli.PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=before)

    def test_closed_streams_are_no_place_for_files(self):
        ids = ["--ids", "5,6,7"]
        whole, beside = self.folder / "whole", self.folder / "beside"
        self.ok("logits", "-m", cli.TINY, *ids, "--out", whole)
        process = self.start("logits", "-m", cli.TINY, *ids, "--out", beside, before=close_streams(0, 1, 2))
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(beside.read_bytes(), whole.read_bytes())
        process = self.start("tokenize", "-m", cli.TINY, "hello", before=close_streams(1))
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"standard output: ", said)
        process = self.start("tokenize", "-m", cli.TINY, before=close_streams(0))
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"standard input: ", said)

    def test_a_file_at_its_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for command in ("logits", "trace"):
            out = self.folder / command
            process = self.start(command, "-m", cli.TINY, "--ids", "5,6,7", "--out", out, "--cache-dir", "/dev/null",
                                 before=limit)
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1)
            self.assertIn(b"File too large", said)
            left = [name for _, _, names in os.walk(self.folder) for name in names]
            self.assertEqual(left, [], command)

    def stop(self, number, *words):
        """Send the signal once a temporary file is there; what the folder holds afterwards."""
        process = self.start(*words)
        for _ in range(3000):
            names = [name for _, _, names in os.walk(self.folder) for name in names]
            if names or process.poll() is not None:
                break
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it still runs")
        process.send_signal(number)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -number, "it ends by the signal, as shells expect")
        return [name for _, _, names in os.walk(self.folder) for name in names]

    def test_trace_leaves_both_files_or_neither(self):
        out = self.folder / "trace"
        process = self.start("trace", "-m", cli.TINY, "--ids", ",".join(LONG.split(",")[:2000]), "--out", out)
        for _ in range(12000):
            if list(self.folder.glob("trace/pre.f32.*")) or process.poll() is not None:
                break
            time.sleep(0.005)
        (out / "pre.f32").mkdir()  # in the way of the second name
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn(b"pre.f32: rename: ", said)
        self.assertEqual([path.name for path in out.iterdir()], ["pre.f32"])

    def test_signals_leave_nothing_half_written(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.stop(number, "logits", "-m", cli.TINY, "--isa", "scalar", "--ids", LONG, "--all", "--out",
                                       self.folder / "logits"), [])
        self.assertEqual(self.stop(signal.SIGTERM, "trace", "-m", cli.TINY, "--isa", "scalar", "--ids", LONG, "--out",
                                   self.folder / "trace"), [])


if __name__ == "__main__":
    cli.main()
