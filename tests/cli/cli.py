"""Running the program from tests: python3, standard library only. Each test_*.py is one ctest test, run from the repository
root with the program's path in $PACELINE."""
import array
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.path.abspath(os.environ.get("PACELINE", "build/release/paceline"))
NANO = "models/nano"
TINY = "tests/vectors/tiny-a/model"
CASES = json.loads(pathlib.Path("tests/vectors/nano/cases.json").read_text(encoding="utf-8"))


def run(*words, env=None, stdin=None, cwd=None, timeout=120):
    """Run `paceline WORDS...`; variables of this shell that would be settings are left out."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
    clean.update(env or {})
    return subprocess.run([PROGRAM, *map(str, words)], env=clean, input=stdin, cwd=cwd, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="strict")


def ids_text(ids):
    return ",".join(map(str, ids))


def floats(path):
    values = array.array("f")
    values.frombytes(pathlib.Path(path).read_bytes())
    return values


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder_object = tempfile.TemporaryDirectory(prefix="paceline-test-")
        self.folder = pathlib.Path(self.folder_object.name)

    def tearDown(self):
        self.folder_object.cleanup()

    def ok(self, *words, **options):
        result = run(*words, **options)
        self.assertEqual(result.returncode, 0, f"{words}: {result.stderr}")
        return result

    def fails(self, code, *words, says=(), **options):
        """The program ends with this code, says why in one line that holds every word of `says`, and prints no result."""
        result = run(*words, **options)
        self.assertEqual(result.returncode, code, f"{words}: {result.stderr}")
        self.assertEqual(result.stdout, "", words)
        errors = [line for line in result.stderr.splitlines() if line.startswith("paceline")]
        self.assertTrue(errors, f"{words}: {result.stderr}")
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, errors[-1], words)
        return result


def main():
    unittest.main(verbosity=1)
