#!/usr/bin/env python3
"""The lean check: what keeps the code small, readable and pointing one way. Python 3, standard library only.

    tools/lean_check.py              check the tree against tools/lean_baseline.txt; exit 1 when a count grew
    tools/lean_check.py --list       show every finding, also those the baseline allows
    tools/lean_check.py --lower      write lower counts into the baseline (it never raises one)
    tools/lean_check.py --self-test  make a small bad tree and see that every rule finds its fault

Rules
    file-length      more than 600 lines (made files, which say so in their first line, are exempt)
    function-length  a body of more than 60 lines, 120 in src/kernels
    width            a line of more than 120 columns
    include          an include or a link against the arrows of docs/architecture.md, or of a .c file
    outside-header   a library's header in a folder that has no business with that library
    call             a call that can crash, overflow, end the process or answer differently on another machine
    path             a path that leaves the repository or exists on one machine only; a link in a page to nothing
    marker           a note that work was left undone
"""
import pathlib
import re
import sys
import tempfile

FILE_LINES, FUNCTION_LINES, KERNEL_LINES, WIDTH = 600, 60, 120, 120
RULES = ("file-length", "function-length", "width", "include", "outside-header", "call", "path", "marker")

# Arrows: who may include whom, before taking the transitive closure. Everything may include base and itself.
ARROWS = {
    "base": [], "text": [], "depth": [],
    "checkpoint": [],
    "kernels": ["checkpoint"],
    "model": ["kernels", "checkpoint"],
    "cache": ["model"],
    "lanes": ["model", "depth", "cache"],
    "api": ["lanes", "text"],
    "server": ["api"],
    "bench": [],
    "cli": ["server", "bench"],
}
# kernels see the weights' formats and the config's shapes, and nothing else of checkpoint.
KERNELS_SEE = ("checkpoint/config.h", "checkpoint/checkpoint.h", "checkpoint/format.h")
OUTSIDE = {
    "event2/": {"server", "bench"}, "event.h": {"server"},
    "jansson.h": {"checkpoint", "text", "server", "bench", "cli"},
    "utf8proc.h": {"text"},
    "pthread.h": {"base", "lanes", "api", "server", "cli"},
}
CALLS = ("exit _exit _Exit quick_exit abort assert strcpy strcat stpcpy strncpy strncat sprintf vsprintf gets strtok atoi "
         "atol atoll atof system popen rand srand random drand48 tmpnam tempnam mktemp alloca setjmp longjmp localtime "
         "gmtime ctime asctime getwd").split()
# Failures that nothing can return from end the program there, and nowhere else.
MAY_END = ("_exit", "src/cli/fatal.c")
# One written source for these on every machine (docs/architecture.md): the C library's give other bits elsewhere.
MATH = ("exp exp2 expm1 log log2 log10 log1p pow sin cos tan sincos tanh sinh cosh asin acos atan atan2 cbrt hypot erf "
        "tgamma lgamma").split()
MATH_FOLDERS = ("kernels", "model")
PARTS = "src include tests fuzz bench tools docs cmake examples".split()
TEXT_ENDS = {".c", ".h", ".md", ".txt", ".cmake", ".sh", ".py", ".mjs", ".js", ".json", ".in", ".inc"}
SKIP = ("tests/vectors", "fuzz/corpus", "docs/receipts", "models", "node_modules")


def closure(folder):
    seen, todo = {folder, "base"}, [folder]
    while todo:
        for nxt in ARROWS.get(todo.pop(), []):
            if nxt not in seen:
                seen.add(nxt)
                todo.append(nxt)
    return seen


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    """Comments and the insides of strings become blanks; lines keep their numbers."""
    token = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
    return token.sub(blank, text)


class Check:
    def __init__(self, root):
        self.root = root
        self.found = []  # (rule, place, text)

    def add(self, rule, path, line, text):
        place = f"{path}:{line}" if line else str(path)
        self.found.append((rule, place, text))

    def files(self):
        top = [p for p in self.root.iterdir() if p.is_file()]
        below = [p for part in PARTS if (self.root / part).is_dir() for p in sorted((self.root / part).rglob("*"))]
        for path in sorted(top) + below:
            name = path.relative_to(self.root).as_posix()
            if not path.is_file() or any(s == name or f"{s}/" in f"{name}/" for s in SKIP):
                continue
            if path.suffix in TEXT_ENDS or name in ("run", "test", ".ci/run"):
                yield name, path.read_text(encoding="utf-8", errors="replace")

    def run(self):
        for name, text in self.files():
            made = re.search(r"(?i)\b(made|generated) by\b", text.split("\n", 1)[0]) is not None
            lines = text.split("\n")
            if name == "tools/lean_check.py":  # its own bad examples
                self.sizes(name, lines)
                continue
            self.paths(name, lines)
            if name.endswith(".md"):
                self.links(name, text)
                continue
            if name.endswith(".json") or made:
                continue
            self.sizes(name, lines)
            self.markers(name, lines)
            if name.endswith("CMakeLists.txt"):
                self.cmake_links(name, text)
            if name.endswith((".c", ".h")):
                self.functions(name, lines)
                self.includes(name, lines)
                if name.startswith("src/"):
                    self.calls(name, text)
        return self.found

    def sizes(self, name, lines):
        count = len(lines) - 1
        if count > FILE_LINES:
            self.add("file-length", name, 0, f"{count} lines, {FILE_LINES} at most")
        if name.endswith((".c", ".h")):
            for at, line in enumerate(lines, 1):
                if len(line) > WIDTH:
                    self.add("width", name, at, f"{len(line)} columns, {WIDTH} at most")

    def markers(self, name, lines):
        for at, line in enumerate(lines, 1):
            mark = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
            if mark:
                self.add("marker", name, at, mark.group(1))

    def functions(self, name, lines):
        most = KERNEL_LINES if name.startswith("src/kernels/") else FUNCTION_LINES
        start = None
        for at, line in enumerate(lines, 1):
            if line == "{":
                start = at
            elif line == "}" and start:
                if at - start - 1 > most:
                    self.add("function-length", name, start, f"{at - start - 1} lines, {most} at most")
                start = None

    def includes(self, name, lines):
        folder = name.split("/")[1] if name.startswith("src/") else None
        for at, line in enumerate(lines, 1):
            inc = re.match(r"\s*#\s*include\s*([\"<])([^\">]+)[\">]", line)
            if not inc:
                continue
            what = inc.group(2)
            if what.endswith(".c"):
                self.add("include", name, at, f"includes the source file {what}")
            if not folder:
                continue
            if inc.group(1) == "<":
                for start, allowed in OUTSIDE.items():
                    if what.startswith(start) and folder not in allowed:
                        self.add("outside-header", name, at, f"src/{folder} includes <{what}>")
                continue
            self.arrow(name, at, folder, what)

    def arrow(self, name, at, folder, what):
        if what == "paceline.h":
            return
        target = what.split("/")[0]
        if "/" not in what or target not in ARROWS:
            self.add("include", name, at, f"\"{what}\": includes start at src/, as \"folder/file.h\"")
        elif target not in closure(folder):
            self.add("include", name, at, f"src/{folder} may not include \"{what}\"")
        elif folder == "kernels" and target == "checkpoint" and what not in KERNELS_SEE:
            self.add("include", name, at, f"src/kernels may not include \"{what}\"")

    def cmake_links(self, name, text):
        part = re.match(r"src/(\w+)/", name)
        if not part or part.group(1) == "cli":
            return
        for at, line in enumerate(text.split("\n"), 1):
            for target in re.findall(r"\bpl_(\w+)", line.split("#")[0]):
                if target in ARROWS and target not in closure(part.group(1)):
                    self.add("include", name, at, f"src/{part.group(1)} may not link pl_{target}")

    def calls(self, name, text):
        folder = name.split("/")[1]
        words = list(CALLS)
        if folder in MATH_FOLDERS:
            words += MATH + [w + "f" for w in MATH]
        call = re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\s*\(")
        for at, line in enumerate(without_comments(text).split("\n"), 1):
            for found in call.finditer(line):
                if (found.group(1), name) != MAY_END:
                    self.add("call", name, at, f"{found.group(1)}()")

    def paths(self, name, lines):
        """No path to what lies beside the repository, and none that only this machine has."""
        here = (self.root / name).parent
        above = str(self.root.parent)
        for at, line in enumerate(lines, 1):
            for found in re.finditer(r"(?<![\w./])((?:\.\./)+)([\w.-]+)", line):
                beside = self.root.parent / found.group(2)
                inside = any((base / found.group(0)).resolve().is_relative_to(self.root) and (base / found.group(0)).exists()
                             for base in (here, self.root))
                if not inside and beside != self.root and (found.group(2) == "shared" or beside.exists()):
                    self.add("path", name, at, f"{found.group(0)} lies beside the repository")
            if re.search(r"(?<![\w.])/(home|Users|root)/\w", line):
                self.add("path", name, at, "a path of one machine")
            elif len(above) > 2 and above not in ("/tmp", "/usr") and re.search(r"(?<![\w.])" + re.escape(above) + r"\b(?!-)", line):
                self.add("path", name, at, "a path of this machine")

    def links(self, name, text):
        for found in re.finditer(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            goal = found.group(1)
            if re.match(r"[a-z]+:", goal):
                continue
            if not ((self.root / name).parent / goal).exists():
                self.add("path", name, text.count("\n", 0, found.start()) + 1, f"link to {goal}, which is not there")


def read_baseline(path):
    counts = dict.fromkeys(RULES, 0)
    if path.exists():
        for line in path.read_text().split("\n"):
            if line and not line.startswith("#"):
                rule, count = line.split()
                counts[rule] = int(count)
    return counts


def count_by_rule(found):
    return {rule: sum(1 for f in found if f[0] == rule) for rule in RULES}


def write_baseline(path, counts):
    text = "# Findings of tools/lean_check.py that are allowed for now. A count may fall, never grow.\n"
    path.write_text(text + "".join(f"{rule} {counts[rule]}\n" for rule in RULES))


BAD_TREE = {
    "src/base/long.c": ("file-length", "int x;\n" * (FILE_LINES + 1)),
    "src/base/body.c": ("function-length", "int f(void)\n{\n" + "    g();\n" * (FUNCTION_LINES + 1) + "}\n"),
    "src/base/wide.c": ("width", "/* " + "x" * WIDTH + " */\n"),
    "src/text/up.c": ("include", "#include \"model/model.h\"\n"),
    "src/model/text.c": ("include", "#include \"text/tokenizer.h\"\n"),
    "src/kernels/in.c": ("include", "#include \"checkpoint/safetensors.h\"\n"),
    "src/lanes/short.c": ("include", "#include \"short.h\"\n"),
    "tests/base/source.c": ("include", "#include \"base/buf.c\"\n"),
    "src/base/CMakeLists.txt": ("include", "pl_library(base SOURCES a.c LINKS pl_model)\n"),
    "src/model/lib.c": ("outside-header", "#include <jansson.h>\n"),
    "src/server/quit.c": ("call", "void f(void)\n{\n    exit(1);\n}\n"),
    "src/cli/quit.c": ("call", "void f(void)\n{\n    _exit(1);\n}\n"),
    "src/text/copy.c": ("call", "void f(char *a)\n{\n    strcpy (a, \"b\");\n}\n"),
    "src/kernels/math.c": ("call", "float f(float a)\n{\n    return expf(a);\n}\n"),
    "src/base/away.c": ("path", "/* see ../shared/page.md */\n"),
    "docs/page.md": ("path", "[gone](missing.md)\n"),
    "docs/home.md": ("path", "kept in /home/somebody/x\n"),
    "src/base/later.c": ("marker", "/* TO" + "DO */\n"),
}
GOOD_TREE = {
    "src/model/good.c": "#include \"base/buf.h\"\n#include \"kernels/kernels.h\"\n/* exit(1) in a comment, ../model/good.c */\n"
                        "void pl_exit(void);\nint f(void)\n{\n    s.exit(\"strcpy(a)\");\n    return sqrtf(2) > 1;\n}\n",
    "src/cli/fatal.c": "void f(void)\n{\n    _exit(1);\n}\n",
    "src/kernels/good.c": "#include \"checkpoint/format.h\"\n",
    "src/base/table.c": "/* Made by a script. */\n" + "int y;\n" * (FILE_LINES * 2),
    "docs/good.md": "[code](../src/model/good.c) and [web](https://example.org)\n",
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve() / "tree"
        for name, text in list((k, v[1]) for k, v in BAD_TREE.items()) + list(GOOD_TREE.items()):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = Check(root).run()
        wrong = 0
        for name, (rule, _) in BAD_TREE.items():
            if [f[0] for f in found if f[1].split(":")[0] == name] != [rule]:
                print(f"self-test: {name}: one finding of {rule} expected, found {[f for f in found if name in f[1]]}")
                wrong += 1
        for f in found:
            if f[1].split(":")[0] in GOOD_TREE:
                print(f"self-test: nothing expected, found {f}")
                wrong += 1
    print(f"lean check self-test: {len(BAD_TREE) + len(GOOD_TREE)} files, {wrong} wrong")
    return 1 if wrong else 0


def main(argv):
    if "--self-test" in argv:
        return self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    baseline = root / "tools" / "lean_baseline.txt"
    found, allowed = Check(root).run(), read_baseline(baseline)
    counts = count_by_rule(found)
    grown = [rule for rule in RULES if counts[rule] > allowed[rule]]
    for rule, place, text in found:
        if rule in grown or "--list" in argv:
            print(f"{rule:16} {place}: {text}")
    if "--lower" in argv:
        write_baseline(baseline, {rule: min(counts[rule], allowed[rule]) for rule in RULES})
    for rule in RULES:
        if counts[rule] != allowed[rule]:
            print(f"{rule}: {counts[rule]} found, {allowed[rule]} allowed" + (" (--lower)" if rule not in grown else ""))
    print(f"lean check: {sum(counts.values())} findings, {sum(allowed.values())} allowed" + (", GROWN" if grown else ""))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
