"""paceline drafts: the reference's proposals on the trained checkpoint."""
import json

import cli


class Drafts(cli.Case):
    def propose(self, *words):
        return json.loads(self.ok("drafts", "--json", *words).stdout)

    def test_against_the_reference(self):
        """Same anchors, same drafts, confidences to the noise of roundings. Where a draft's two best logits lie closer than
        that noise, it and those behind it may differ."""
        compared = 0
        for name, case in cli.CASES.items():
            ids = case["ids"] + case["greedy"]
            for want in case["drafts"][::3]:
                got = self.propose("--ids", cli.ids_text(ids[:want["p"] + 1]), "--anchor", want["anchor"])
                self.assertEqual(got["anchor"], want["anchor"])
                for k, draft in enumerate(want["drafts"]):
                    if got["drafts"][k] != draft:
                        self.assertLess(got["margins"][k], 0.5, (name, want["p"], k))
                        break
                    self.assertAlmostEqual(got["confidence"][k], want["conf"][k], delta=0.75, msg=(name, want["p"], k))
                    compared += 1
        self.assertGreater(compared, 60)

    def test_anchor_defaults_to_the_most_likely_token(self):
        case = cli.CASES["code_factorial"]
        ids = cli.ids_text(case["ids"])
        got = self.propose("--ids", ids)
        self.assertEqual(got["anchor"], case["greedy"][0])
        self.assertEqual(got, self.propose("--ids", ids, "--anchor", case["greedy"][0], "--threads", 1))
        for field in ("drafts", "confidence", "margins"):
            self.assertEqual(len(got[field]), 5)
        self.assertTrue(all(m >= 0 for m in got["margins"]))

    def test_from_the_first_position_on(self):
        self.assertEqual(len(self.propose("--ids", "0")["drafts"]), 5)

    def test_table(self):
        text = self.ok("drafts", "--ids", "0,8140").stdout
        self.assertTrue(text.startswith("anchor "))
        self.assertEqual(len(text.splitlines()), 7)


if __name__ == "__main__":
    cli.main()
