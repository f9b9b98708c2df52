"""Requests that are wrong: exit code 2 and a line that names the setting, before any model is opened."""
import cli


class Usage(cli.Case):
    def test_malformed_values_name_themselves(self):
        for words, says in (
            (["run", "--temperature", "3", "x"], ["--temperature", "from 0 to 2", '"3"']),
            (["run", "--top-p", "0", "x"], ["--top-p", "above 0"]),
            (["run", "--top-p", "1e-50", "x"], ["--top-p", "above 0", '"1e-50"']),
            (["run", "--max-tokens", "none", "x"], ["--max-tokens", '"none"']),
            (["run", "--seed", "1.5", "x"], ["--seed", '"1.5"']),
            (["run", "--bogus"], ["--bogus"]),
            (["run", "-max-tokens", "3", "x"], ["--max-tokens", "found -max-tokens"]),
            (["run", "a", "b"], ['"b"']),
            (["serve", "--port", "70000"], ["--port", "65535"]),
            (["serve", "--context", "-1"], ["--context"]),
            (["serve", "extra"], ['"extra"']),
            (["logits", "--ids"], ["--ids"]),
            (["bench", "--threads", "0"], ["--threads"]),
            (["bench", "kernels", "--rows", "1,x"], ["--rows", "from 1 to 4096", '"1,x"']),
        ):
            self.fails(2, *words, says=says)

    def test_malformed_variable(self):
        self.fails(2, "run", "x", env={"PACELINE_TOP_P": "2"}, says=["PACELINE_TOP_P", '"2"'])
        self.fails(2, "serve", env={"PACELINE_PORT": "http"}, says=["PACELINE_PORT"])
        self.fails(2, "run", "x", env={"PACELINE_EFFORT": "hard"}, says=["--effort (from PACELINE_EFFORT)", "1 to 100", '"hard"'])
        self.fails(2, "run", "--effort", "hard", "x", says=['--effort: low', '"hard"'])

    def test_missing_settings(self):
        for command in ("logits", "trace"):
            self.fails(2, command, "--ids", "1", says="--out")
            self.fails(2, command, "--out", self.folder / "o", says="--ids")
        self.fails(2, "drafts", says="--ids")
        self.fails(2, "trace", "--ids", "1", "--out", self.folder, "--layer", "0", says="--h")
        self.fails(2, "trace", "--ids", "1", "--out", self.folder, "--h", "x", says="--layer")

    def test_ids_that_cannot_be(self):
        for text, says in (("1,,2", "byte 2"), ("1,2,", "byte 4"), ("4294967296", "2147483647"), ("8192", "8192"),
                           (cli.ids_text([1] * 8193), "8193")):
            for command in (["drafts"], ["logits", "--out", self.folder / "o"]):
                self.fails(2, *command, "--ids", text, says=says)
            self.assertFalse((self.folder / "o").exists())
        self.fails(2, "drafts", "--ids", "5", "--anchor", "8192", says="--anchor")

    def test_folders_that_are_no_checkpoint(self):
        for command in (["drafts", "--ids", "1"], ["logits", "--ids", "1", "--out", "/dev/null"],
                        ["trace", "--ids", "1", "--out", self.folder / "t"], ["run", "x"]):
            self.fails(1, *command, "-m", self.folder, says=str(self.folder))
            self.fails(1, *command, "-m", "/nonexistent", says="/nonexistent")


if __name__ == "__main__":
    cli.main()
