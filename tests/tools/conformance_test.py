#!/usr/bin/env python3
"""scripts/conformance.py finds each way in which a comparison with libc may be missing, and writes the page if none is."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "conformance.py"

# What a program of cases says of itself to gtest's options. The second case is compared if COMPARED says so.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys
file = "tests/hook/same_as_libc/pipes_test.cc"
tests = [{"name": "Same/one", "value_param": "one", "file": file}, {"name": "Same/two", "value_param": "two", "file": file}, {"name": "Plain"}]
if "--gtest_list_tests" not in sys.argv:
    tests[0]["transcript"] = "read = 1\\nSIGPIPEs: 0\\n"
    if COMPARED: tests[1]["transcript"] = "read = -1 EAGAIN\\n"
if EMPTY: tests = tests[2:]
if "GTEST_FILTER" in os.environ: tests = []
tests = tests[int(os.environ.get("GTEST_SHARD_INDEX", 0))::int(os.environ.get("GTEST_TOTAL_SHARDS", 1))]
to = next(option.removeprefix("--gtest_output=json:") for option in sys.argv if option.startswith("--gtest_output="))
json.dump({"testsuites": [{"name": "Of/SameAsLibc", "testsuite": tests}]}, open(to, "w"))
sys.exit(STATUS)
"""


def program(compared=True, empty=False, status=0):
    return PROGRAM.replace("COMPARED", str(compared)).replace("EMPTY", str(empty)).replace("STATUS", str(status))


class Conformance(unittest.TestCase):
    def check(self, text, environment=None):
        """The result, and the page that was written, if any."""
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            source = root / "tests" / "hook" / "same_as_libc" / "pipes_test.cc"
            source.parent.mkdir(parents=True)
            source.write_text("// Hooked against raw: pipes.\n")
            if text is not None:
                path = root / "build" / "bin" / "hook_same_as_libc_tests"
                path.parent.mkdir(parents=True)
                path.write_text(text)
                path.chmod(0o755)
            command = [sys.executable, SCRIPT, root / "build", root]
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            page = root / "build" / "docs" / "hook-conformance.md"
            return result, page.read_text() if page.exists() else None

    def assertFault(self, words, text):
        result, page = self.check(text)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertTrue(result.stderr.startswith("tests/hook/same_as_libc"), result.stderr)
        self.assertIn(words, result.stderr)
        self.assertIsNone(page)

    def testWritesThePage(self):
        result, page = self.check(program())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("2 cases with 3 outcomes", result.stdout)
        self.assertIn("\n## Pipes\n", page)
        self.assertIn("\n| one | `read = 1` |\n| two | `read = -1 EAGAIN` |\n", page)

    def testAFilterOfTheCallersHidesNoCase(self):
        result, _ = self.check(program(), {"PATH": "/usr/bin:/bin", "GTEST_FILTER": "None"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def testFindsAProgramThatFails(self):
        self.assertFault("fails", program(status=1))

    def testFindsACaseThatWasNotCompared(self):
        self.assertFault("Of/SameAsLibc.Same/two was not compared", program(compared=False))

    def testFindsAProgramWithoutCases(self):
        self.assertFault("has no case", program(empty=True))

    def testFindsAFileWithoutAProgram(self):
        self.assertFault("is not built", None)


if __name__ == "__main__":
    unittest.main()
