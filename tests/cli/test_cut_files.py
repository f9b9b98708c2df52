"""Shards that are cut while they are mapped: the program says which, with its sizes, and ends with 1."""
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.request

import cli

LONG = cli.ids_text([(i * 31 + 7) % 512 for i in range(4000)])


class CutFiles(cli.Case):
    def model(self):
        folder = self.folder / "model"
        shutil.copytree(cli.TINY, folder)
        return folder

    def cut(self, model):
        for shard in model.glob("*.safetensors"):
            os.truncate(shard, 0)

    def start(self, *words):
        return subprocess.Popen([cli.PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def ends(self, process):
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, said)
        lines = [line for line in said.splitlines() if "the file was cut" in line]
        self.assertEqual(len(lines), 1, said)
        self.assertRegex(lines[0], r"^paceline: .*/model/.*\.safetensors: expected the \d+ bytes .* found 0: the file was cut$")

    def test_in_the_middle_of_a_command(self):
        model, out = self.model(), self.folder / "out"
        process = self.start("logits", "-m", model, "--isa", "scalar", "--threads", 2, "--ids", LONG, "--all", "--out", out)
        for _ in range(3000):
            if list(self.folder.glob("out.*")) or process.poll() is not None:
                break
            time.sleep(0.01)
        self.cut(model)
        self.ends(process)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["model"], "nothing half-written stays")

    def test_while_serving(self):
        model = self.model()
        process = self.start("serve", "-m", model, "--port", 0)
        for line in process.stdout:
            if line.startswith("listening on "):
                break
        url = line.split()[-1]
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/health", timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        self.cut(model)
        request = urllib.request.Request(url + "/v1/completions", b'{"prompt": "hello", "max_tokens": 4}',
                                         {"Content-Type": "application/json"})
        with self.assertRaises(OSError):
            urllib.request.urlopen(request, timeout=60)
        self.ends(process)

    def test_a_bus_error_of_another_kind_is_one(self):
        process = self.start("serve", "-m", cli.TINY, "--port", 0)
        for line in process.stdout:
            if line.startswith("listening on "):
                break
        process.send_signal(signal.SIGBUS)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGBUS)


if __name__ == "__main__":
    cli.main()
