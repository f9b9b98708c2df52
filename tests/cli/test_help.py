"""What the program says about itself, and that its documents say the same."""
import pathlib
import subprocess

import cli


class Help(cli.Case):
    def test_version(self):
        text = pathlib.Path("CMakeLists.txt").read_text().split("project(paceline VERSION ")[1].split()[0]
        for words in (["--version"], ["-V"], ["version"], ["serve", "--version"], ["run", "--bogus", "--version"]):
            self.assertEqual(self.ok(*words).stdout, f"paceline {text}\n")

    def test_overview_lists_the_commands_and_help_tells_each(self):
        overview = self.ok("help").stdout
        self.assertEqual(self.ok("--help").stdout, overview)
        for name in ("serve", "run", "inspect", "synth", "tokenize", "logits", "trace", "drafts", "bench"):
            self.assertIn(f"\n  {name} ", overview)
            text = self.ok("help", name).stdout
            self.assertTrue(text.startswith(f"paceline {name}: "))
            self.assertIn(f"usage: paceline {name} ", text)
            self.assertEqual(self.ok(name, "--help").stdout, text)
            self.assertEqual(self.ok(name, "--bogus", "-h").stdout, text)

    def test_help_is_true(self):
        self.assertIn("  --no-drafts              work without the drafter", self.ok("help", "run").stdout)
        self.assertIn("standard input", self.ok("help", "run").stdout)
        self.assertIn("  --json                   print a JSON array of ids (with --decode a JSON string)",
                      self.ok("help", "tokenize").stdout)
        self.assertIn("--out FILE               where the rows go; -: standard output", self.ok("help", "logits").stdout)
        self.assertIn("--out DIR ", self.ok("help", "trace").stdout)
        self.assertIn("paceline version", self.ok("help").stdout)

    def test_environment_page_is_the_table(self):
        page = pathlib.Path("docs/environment.md").read_text(encoding="utf-8")
        self.assertEqual(self.ok("help", "environment").stdout, page, "make it anew: paceline help environment")

    def test_usage_errors(self):
        self.fails(2, "nothing", says='"nothing"')
        self.fails(2, "help", "nothing", says='"nothing"')
        result = cli.run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage: paceline COMMAND", result.stdout)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([cli.PROGRAM, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_unknown_variable_is_reported(self):
        result = cli.run("logits", env={"PACELINE_NOTHING": "1"})
        self.assertIn("PACELINE_NOTHING is no setting", result.stderr)


if __name__ == "__main__":
    cli.main()
