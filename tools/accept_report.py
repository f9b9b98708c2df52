#!/usr/bin/env python3
"""What an accept log says: how often drafts land, by position, and where a round's time goes.

    tools/accept_report.py FILE [--json]

FILE is what --accept-log (PACELINE_ACCEPT_LOG) wrote, a line of JSON a round. A head draft at position j counts as
reached when all before it were what was drawn and its own fate is known; a copied one when all before it were kept."""
import argparse
import collections
import json
import sys


def read(path):
    """The rounds of the log, in order. Stops the program at a line that is none."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            try:
                yield json.loads(line)
            except ValueError as why:
                sys.exit(f"{path}:{number}: expected a line of JSON, found {line[:60]!r} ({why})")


class Positions:
    """Reached and kept, by position."""

    def __init__(self):
        self.reached, self.kept = collections.Counter(), collections.Counter()

    def saw(self, kept, missed):
        for j in range(kept):
            self.reached[j + 1] += 1
            self.kept[j + 1] += 1
        if missed:
            self.reached[kept + 1] += 1

    def rows(self):
        return [{"position": j, "reached": n, "kept": self.kept[j], "rate": round(self.kept[j] / n, 4)}
                for j, n in sorted(self.reached.items())]


def report(rounds):
    found = {"greedy": Positions(), "sampled": Positions(), "copied": Positions()}
    by_streams, ms = {}, collections.Counter()
    for r in rounds:
        s = by_streams.setdefault(r["streams"], collections.Counter())
        s["rounds"] += 1
        s["asks"] += r["asks"]
        s["rows"] += r["rows"]
        for part, took in r["ms"].items():
            ms[part] += took
        for lane in r["lanes"]:
            s["tokens"] += lane["accepted"] + 1
            if lane["source"] == "copy":
                found["copied"].saw(lane["accepted"], lane["missed"])
            if "confidence" not in lane:
                continue
            # The row behind the last kept one shows the fate of one draft more, unless the reply ended there.
            seen = lane["accepted"] + 1
            agreed = min(lane["agreed"], len(lane["confidence"]))
            missed = agreed < len(lane["confidence"]) and agreed < seen
            found["sampled" if lane["sampled"] else "greedy"].saw(agreed, missed)
    total = sum(c["rounds"] for c in by_streams.values())
    return {"rounds": total,
            "by_streams": [{"streams": n, **c} for n, c in sorted(by_streams.items())],
            "ms_a_round": {part: round(took / total, 4) for part, took in ms.items()} if total else {},
            **{name: p.rows() for name, p in found.items()}}


def show(r):
    print(f"{r['rounds']} rounds; ms a round: " + ", ".join(f"{k} {v}" for k, v in r["ms_a_round"].items()))
    for s in r["by_streams"]:
        print(f"  {s['streams']} streams: {s['rounds']} rounds, {s['tokens'] / s['rounds']:.2f} tokens, "
              f"{s['rows'] / s['rounds']:.2f} rows, {s['asks'] / s['rounds']:.2f} asks each")
    for name in ("greedy", "sampled", "copied"):
        if r[name]:
            print(f"  {name}: " + "  ".join(f"{p['position']}: {p['rate']:.2f} of {p['reached']}" for p in r[name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    r = report(read(args.file))
    print(json.dumps(r, indent=1)) if args.json else show(r)


if __name__ == "__main__":
    main()
