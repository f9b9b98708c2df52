"""What ./run and ./test share (tools/setup.sh): how far a long step is, and that only what is needed is asked for."""
import subprocess
import sys

import cli


class Scripts(cli.Case):
    def shell(self, text, **options):
        return subprocess.run(["/bin/sh", "-c", ". tools/setup.sh\n" + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60, **options)

    def test_a_long_step_says_how_far_it_is(self):
        step = self.folder / "step.py"
        step.write_text("import time\nfor line in (' 1/30 Test #7: x', '[12/30] Building x', 'no number'):\n"
                        "    print(line, flush=True)\n    time.sleep(0.7)\nraise SystemExit(3)\n")
        log = self.folder / "log"
        result = self.shell(f"watch_every=0.2\nwatched 'release tests' {log} {sys.executable} {step}\necho rc $?")
        lines = result.stdout.splitlines()
        self.assertEqual(lines[-1], "rc 3", "the closing line stays the last")
        self.assertEqual(set(lines[:-1]), {"paceline: release tests: 1 of 30", "paceline: release tests: 12 of 30"})
        self.assertLessEqual(len(lines), 12)
        self.assertIn("Building x", log.read_text())
        self.assertEqual(self.shell(f"watched a {log} true\necho rc $?").stdout, "rc 0\n")

    def test_only_what_the_parts_need(self):
        nothing = {"PATH": str(self.folder)}
        needs = {parts: {line.split(":")[0] for line in self.shell(f"missing_packages {parts}", env=nothing).stdout.split("\n")}
                 for parts in ("run", "lean", "lean release", "fuzz", "first", "lean release first asan tsan fuzz peers")}
        self.assertEqual(needs["lean"], {"python3", ""})
        for parts in ("run", "first"):
            self.assertFalse(needs[parts] & {"clang", "libcmocka-dev", "python3"}, parts)
            self.assertLessEqual({"gcc", "cmake", "libjansson-dev"}, needs[parts])
        self.assertLessEqual({"gcc", "libcmocka-dev", "python3"}, needs["lean release"])
        self.assertNotIn("clang", needs["lean release"])
        self.assertIn("clang", needs["fuzz"])
        self.assertNotIn("libcmocka-dev", needs["fuzz"])
        self.assertLessEqual({"clang", "libcmocka-dev", "python3", "gcc"}, needs["lean release first asan tsan fuzz peers"])


if __name__ == "__main__":
    cli.main()
