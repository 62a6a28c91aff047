#!/usr/bin/env python3
"""A hand-off between fibers of one worker makes no system call. The worker itself looks at its descriptors now and then.

    hand_off_trace_test.py <hand_off_program>

Runs the program under strace, and counts what its worker does between the marks.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter

PROGRAM = sys.argv.pop()
PRIMITIVES = ("channel", "deadline", "select", "mutex", "semaphore", "condition")
HAND_OFFS = 2000  # of each
LOOKS = ("epoll_pwait", "epoll_pwait2")
FIBERS_PER_LOOK = 16  # or more
CALL = re.compile(r"(\d+) +(\w+)\(")


def trace():
    """[(thread, name)] of all system calls."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        subprocess.run(["strace", "-f", "-qq", "-o", path, PROGRAM, *PRIMITIVES], check=True, timeout=120)
        with open(path, encoding="utf-8", errors="replace") as file:
            return [match.groups() for match in map(CALL.match, file) if match]


class HandOffTrace(unittest.TestCase):
    # P-20
    def test_a_hand_off_on_one_worker_makes_no_system_call(self):
        calls = trace()
        workers = {thread for thread, name in calls if name == "getppid"}
        self.assertEqual(len(workers), 1)
        phases = [Counter()]
        for thread, name in calls:
            if name == "getppid":
                phases.append(Counter())
            elif thread in workers:
                phases[-1][name] += 1
        self.assertEqual(len(phases), 2 * len(PRIMITIVES) + 1)
        for primitive, counts in zip(PRIMITIVES, phases[1::2]):
            with self.subTest(primitive):
                looks = sum(counts.pop(name, 0) for name in LOOKS)
                self.assertEqual(counts, Counter())
                self.assertLessEqual(looks, HAND_OFFS // FIBERS_PER_LOOK)


if __name__ == "__main__":
    unittest.main()
