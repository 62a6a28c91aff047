#!/usr/bin/env python3
"""scripts/count_checks.py fails above a ceiling, counts code and no comments, and counts functions and their checks."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_checks.py"


class CountChecks(unittest.TestCase):
    def count(self, text):
        with tempfile.TemporaryDirectory() as root:
            for name in ("sylar/fiber/a.cc", "include/sylar/a.h"):
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)

    def assertTooMany(self, name, text):
        done = self.count(text * 500)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual([line[:23].rstrip() for line in done.stdout.splitlines() if "too many" in line], [name])

    def testEachCeilingHolds(self):
        self.assertTooMany("friend", "  friend class A;\n")
        self.assertTooMany("virtual", "  virtual void f();\n")
        self.assertTooMany("thread_local", "thread_local int x;\n")
        self.assertTooMany("reinterpret_cast", "x = reinterpret_cast<int>(y);\n")
        self.assertTooMany("#define", "#define X\n")
        self.assertTooMany("NOLINT", "int x;  // NOLINT(why)\n")
        self.assertTooMany("noinline, always_inline", "[[gnu::noinline]] int x;\n")
        self.assertTooMany("noinline, always_inline", "[[gnu::always_inline]] int x;\n")
        self.assertTooMany("pthread_atfork", "pthread_atfork(a, b, c);\n")

    def testCommentsAndOtherWordsAreNotCounted(self):
        done = self.count("// friend virtual thread_local\n/* reinterpret_cast\n#define X */\nint friendly, virtually;\n" * 500)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([line.split()[-4] for line in done.stdout.splitlines() if "at most" in line], ["0,"] * 8)

    def testChecksAreCountedForEachFunction(self):
        done = self.count("void f() {\n  SYLAR_CHECK(a, b);\n}\nint g(int x) const {\n  if (x) {\n  }\n}\n")
        self.assertEqual(done.stdout.splitlines()[0].split(), "fiber 2 functions 1 checks 0.50 a function".split())


if __name__ == "__main__":
    unittest.main()
