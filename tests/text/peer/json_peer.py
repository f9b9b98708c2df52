#!/usr/bin/env python3
"""Compare our JSON reader and writer with Python's json module, byte for byte, on random texts.

json_peer.py DUMP_JSON [COUNT]; PACELINE_TEST_SEED repeats a run. Python 3.8 or newer, standard library only.
"""
import json
import os
import random
import struct
import subprocess
import sys
import time

SEED = int(os.environ.get("PACELINE_TEST_SEED", time.time_ns()))
RNG = random.Random(SEED)
CHARS = ["a", "é", "｜", "🙂", '"', "\\", "/", "\n", "\t", "\0", "\x1f", "\x7f", "\u2028", "<think>", " ", "\uffff", "0"]


def number():
    kind = RNG.randrange(7)
    if kind == 0:
        return str(RNG.randrange(-1000, 1000))
    if kind == 1:
        return str(RNG.getrandbits(RNG.randrange(1, 400)) * RNG.choice([1, -1]))
    if kind == 2:
        return RNG.choice(["-0", "0", "-0.0", "0e0", "1e400", "-1E+400", "1e-400", "0.1e1", "10e-1", "1.0", "5e-324"])
    if kind == 3:  # every double
        value = struct.unpack("<d", struct.pack("<Q", RNG.getrandbits(64)))[0]
        return repr(value) if value == value and abs(value) != float("inf") else "1.5"
    if kind == 4:  # near powers of two and of ten, where the shortest digits are hardest
        value = RNG.choice([2.0 ** RNG.randrange(-1074, 1024), float("1e%d" % RNG.randrange(-320, 309))])
        bits = struct.unpack("<Q", struct.pack("<d", value))[0] + RNG.randrange(-2, 3)
        value = struct.unpack("<d", struct.pack("<Q", max(bits, 0)))[0]
        return "%.*e" % (RNG.randrange(15, 25), value) if abs(value) != float("inf") else "2.5"
    if kind == 5:
        return "%d.%se%+d" % (RNG.randrange(10), "".join(RNG.choices("0123456789", k=RNG.randrange(1, 40))),
                              RNG.randrange(-330, 320))
    return "%.*f" % (RNG.randrange(1, 12), RNG.uniform(-1e6, 1e6))


def string(surrogates):
    out = []
    for _ in range(RNG.randrange(6)):
        c = RNG.choice(CHARS)
        how = RNG.randrange(8)
        if surrogates and how == 0:
            out.append("\\u%04x" % RNG.randrange(0xD800, 0xE000))
        elif how == 1:
            for unit in struct.unpack("<%dH" % (len(c.encode("utf-16-le")) // 2), c.encode("utf-16-le")):
                out.append(RNG.choice(["\\u%04x", "\\u%04X"]) % unit)
        elif how == 2 or c in '"\\' or min(c) < " ":
            out.append(json.dumps(c, ensure_ascii=RNG.random() < 0.5)[1:-1])
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def blank():
    return "".join(RNG.choices(" \t\r\n", k=RNG.randrange(3))) if RNG.random() < 0.3 else ""


def value(depth):
    kind = RNG.randrange(8 if depth < 6 else 5)
    if kind == 0:
        return RNG.choice(["null", "true", "false"])
    if kind <= 2:
        return number()
    if kind <= 4:
        return string(True)
    items = []
    for _ in range(RNG.randrange(5) if RNG.random() < 0.95 else RNG.randrange(60)):
        item = blank() + value(depth + 1) + blank()
        if kind >= 6:
            item = blank() + string(False) + blank() + ":" + item
        items.append(item)
    return ("{%s}" if kind >= 6 else "[%s]") % (",".join(items) or blank())


def spoil(text):
    """A small change that may or may not leave valid JSON."""
    i = RNG.randrange(len(text) + 1)
    new = RNG.choice(["", ",", ":", '"', "\\", "[", "]", "{", "}", "0", "-", ".", "e", "\0", "\x01", "n", "\ufeff", "é"])
    return text[:i] + new + text[i + RNG.randrange(2):]


def refuse(name):
    raise ValueError(name)


def expected(data):
    try:
        parsed = json.loads(data.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    text = json.dumps(parsed, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    print("seed", SEED)
    texts = []
    for i in range(count):
        text = value(0) if i % 4 else number()
        data = (blank() + (text if RNG.random() < 0.7 else spoil(text)) + blank()).encode("utf-8")
        if RNG.random() < 0.02:  # bytes that are no UTF-8
            at = RNG.randrange(len(data) + 1)
            data = data[:at] + bytes([RNG.randrange(128, 256)]) + data[at:]
        texts.append(data)
    frames = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    run = subprocess.run([sys.argv[1]], input=frames, stdout=subprocess.PIPE, check=True)
    out, at, wrong, refused = run.stdout, 0, 0, 0
    for text in texts:
        n = struct.unpack_from("<I", out, at)[0]
        got = out[at + 4:at + 4 + n]
        at += 4 + n
        want = expected(text)
        refused += want is None
        if (want is None) != (got[:1] == b"n") or (want is not None and got[1:] != want):
            wrong += 1
            if wrong < 10:
                print("input ", text, "\nours  ", got, "\npython", want)
    print(f"{count} texts, {refused} refused by both, {wrong} differ")
    return 1 if wrong or at != len(out) or not 0 < refused < count // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
