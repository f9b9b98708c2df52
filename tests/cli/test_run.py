"""paceline run: the reference's greedy replies, the ways a prompt may come in, and the ends a reply may have."""
import hashlib
import json
import signal
import struct
import subprocess
import time

import cli

BOS, EOS = "<｜begin▁of▁sentence｜>", 1
# The trained checkpoint repeats itself for ever here, so that a reply of any length can be had.
STORY = ["--temperature", 0, "Write a paragraph of a story."]


class Run(cli.Case):
    def reply(self, *words, **options):
        got = json.loads(self.ok("run", "--json", *words, **options).stdout)
        raw = struct.pack(f"<{len(got['tokens'])}i", *got["tokens"])
        self.assertEqual(got["token_sha"], hashlib.sha256(raw).hexdigest())
        self.assertEqual(got["completion_tokens"], len(got["tokens"]))
        return got

    def check_greedy(self, name, got):
        """Equal to the reference; a difference is only allowed where its two best logits lie closer than rounding noise, and
        ends the comparison."""
        case = cli.CASES[name]
        for k, token in enumerate(case["greedy"]):
            if got["tokens"][k] != token:
                best, second = case["greedy_top2"][k]
                self.assertLess(best - second, 1.0, (name, k))
                self.assertGreater(k, 3, name)
                return
        self.assertEqual(len(got["tokens"]), len(case["greedy"]))

    def test_greedy_replies_of_the_reference(self):
        for name, case in cli.CASES.items():
            got = self.reply("--temperature", 0, "--max-tokens", len(case["greedy"]), "--ids", cli.ids_text(case["ids"]))
            self.assertEqual(got["prompt_tokens"], len(case["ids"]))
            self.check_greedy(name, got)

    def test_chat_prompts_are_the_reference_s(self):
        for name, words in (
            ("chat_harbour", ['What does the word "harbour" mean?']),
            ("code_factorial", ["Write a Python function to compute the factorial of n."]),
            ("think_sum", ["--thinking", "--effort", "high", "What is 23 + 45?"]),
        ):
            got = self.reply("-m", cli.NANO, "--temperature", 0, *words)
            self.assertEqual(got["prompt_tokens"], len(cli.CASES[name]["ids"]), name)
            self.check_greedy(name, got)
            self.assertEqual(got["finish_reason"], "stop")
            self.assertEqual(got["tokens"][-1], EOS)
        self.assertEqual(got["text"], "23 + 45 = 68")
        self.assertIn("20 + 40 = 60", got["reasoning"])
        self.assertGreater(got["reasoning_tokens"], 10)

    def test_raw_text_three_ways(self):
        case = cli.CASES["raw_code"]
        words = ["--temperature", 0, "--max-tokens", 12]
        spelled = self.reply(*words, "--raw", case["text"])
        self.assertEqual(spelled["prompt_tokens"], len(case["ids"]))
        self.assertTrue(case["text"].startswith(BOS))
        flagged = self.reply(*words, "--raw", "--bos", "-", stdin=case["text"][len(BOS):])
        by_id = self.reply(*words, "--ids", cli.ids_text(case["ids"]))
        self.assertEqual(spelled["tokens"], by_id["tokens"])
        self.assertEqual(flagged["tokens"], by_id["tokens"])
        bare = self.reply(*words, "--raw", case["text"][len(BOS):])
        self.assertEqual(bare["prompt_tokens"], len(case["ids"]) - 1)
        self.assertEqual(spelled["finish_reason"], "length")
        self.assertEqual(spelled["text"], flagged["text"])

    def test_text_of_a_chat_never_becomes_a_control_token(self):
        spelling = "<｜end▁of▁sentence｜>"
        plain = json.loads(self.ok("tokenize", "--json", "--no-special", "--text", "-", stdin=spelling).stdout)
        ids = plain["ids"] if isinstance(plain, dict) else plain
        self.assertNotIn(EOS, ids)
        got = self.reply("--max-tokens", 1, spelling)
        frame = self.reply("--max-tokens", 1, "a")["prompt_tokens"] - 1
        self.assertEqual(got["prompt_tokens"], frame + len(ids))

    def test_system_message(self):
        with_system = self.reply("--max-tokens", 1, "--system", "Be short.", "Hello")
        self.assertGreater(with_system["prompt_tokens"], self.reply("--max-tokens", 1, "Hello")["prompt_tokens"])

    def test_prompt_from_standard_input(self):
        a = self.reply("--temperature", 0, "Hello")
        self.assertEqual(a["tokens"], self.reply("--temperature", 0, stdin="Hello")["tokens"])
        self.assertEqual(a["tokens"], self.reply("--temperature", 0, "-", stdin="Hello")["tokens"])

    def test_same_tokens_whatever_the_pace(self):
        want = self.reply("--max-tokens", 24, *STORY)["tokens"]
        self.assertEqual(len(want), 24)
        for words in (["--threads", 1], ["--threads", 3], ["--no-drafts"]):
            self.assertEqual(self.reply("--max-tokens", 24, *words, *STORY)["tokens"], want, words)

    def test_seeds(self):
        words = ["--temperature", 1, "--max-tokens", 16, "Write a paragraph of a story."]
        one = self.reply("--seed", 5, *words)["tokens"]
        self.assertEqual(self.reply("--seed", 5, *words)["tokens"], one)
        self.assertNotEqual(self.reply("--seed", -6, *words)["tokens"], one)
        self.assertEqual(self.reply("--seed", 5, "--top-k", 1, *words)["tokens"],
                         self.reply("--max-tokens", 16, *STORY)["tokens"], "top-k 1 is greedy")
        derived = self.reply(*words)["tokens"]
        self.assertEqual(self.reply(*words)["tokens"], derived, "without a seed one is made from the prompt")
        self.assertNotEqual(self.reply("--seed-salt", "other", *words)["tokens"], derived)
        fresh = [self.reply("--seed-salt", "random", *words)["tokens"] for _ in range(2)]
        self.assertNotEqual(fresh[0], fresh[1])

    def test_ends(self):
        case = cli.CASES["chat_harbour"]
        prompt = 'What does the word "harbour" mean?'
        cut = self.reply("--temperature", 0, "--max-tokens", 3, prompt)
        self.assertEqual((cut["finish_reason"], cut["tokens"]), ("length", case["greedy"][:3]))
        on = self.reply("--temperature", 0, "--ignore-eos", "--max-tokens", 20, prompt)
        self.assertEqual((on["finish_reason"], len(on["tokens"])), ("length", 20))
        self.assertEqual(on["tokens"][:16], case["greedy"])
        full = self.reply("--temperature", 0, "--ignore-eos", "--context", 64, prompt)
        self.assertEqual(full["prompt_tokens"] + len(full["tokens"]), 64, "the context is filled and not passed")
        self.fails(1, "run", "--context", 16, "one two three " * 20, says="context")

    def test_terminal_form(self):
        result = self.ok("run", "--temperature", 0, 'What does the word "harbour" mean?')
        self.assertEqual(result.stdout, 'The noun "harbour" means: a small harbor.\n')
        self.assertIn("15 prompt tokens", result.stderr)
        self.assertIn("16 reply tokens", result.stderr)
        thought = self.ok("run", "--temperature", 0, "--thinking", "What is 23 + 45?")
        self.assertEqual(thought.stdout, "23 + 45 = 68\n")
        self.assertIn("20 + 40 = 60", thought.stderr)

    def interrupt(self, *words):
        """Start a long reply, Ctrl-C it once it runs (its first text is there); exit code, standard output and error.

        Unbuffered: communicate() reads the pipe itself, and would miss what a buffered read(1) took beyond its byte."""
        process = subprocess.Popen([cli.PROGRAM, "run", "--ignore-eos", "--max-tokens", "8000", *words, *map(str, STORY)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        first = b"" if "--json" in words else process.stdout.read(1)
        time.sleep(1.5)
        self.assertIsNone(process.poll(), "it still runs")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - began, 20)
        return process.returncode, (first + out).decode(), err.decode()

    def test_ctrl_c_stops_the_reply_and_shows_what_is_there(self):
        code, out, err = self.interrupt()
        self.assertEqual(code, 130)
        self.assertTrue(out.startswith("'Yes, I know."), out[:80])
        self.assertIn("cancelled, token_sha ", err)
        code, out, err = self.interrupt("--json")
        got = json.loads(out)
        self.assertEqual((code, got["finish_reason"]), (130, "cancelled"))
        self.assertGreater(len(got["tokens"]), 0)

    def test_settings_that_do_not_go_together(self):
        self.fails(2, "run", "--ids", "1", "x", says="--ids")
        self.fails(2, "run", "--ids", "1", "--raw", says="--ids")
        self.fails(2, "run", "--bos", "x", says="--bos")
        self.fails(2, "run", "--raw", "--system", "x", "y", says="--system")
        self.fails(2, "run", "--raw", "--no-thinking", "y", says="--thinking")
        self.fails(2, "run", "--effort", "101", "y", says="--effort")
        self.fails(2, "run", stdin="", says="empty")
        self.fails(2, "run", "--ids", "8192", says="8192")


if __name__ == "__main__":
    cli.main()
