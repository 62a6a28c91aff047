#!/usr/bin/env python3
"""HA-11. Threads that are fibers: a program with many cases of threads sees the same as in a native run.

    threads_test.py threads_program sylar-run
"""
import os
import signal
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

from run_support import RUN

PROGRAM = sys.argv.pop()
FIBERS = RUN, "--threads=fibers", PROGRAM
TIMEOUT_S = 60
# What docs/design/identity.md lists. Some of them would wait for ever.
DEVIATIONS = {
    "main leaves and a thread exits",
    "main leaves and is joined",
    "a robust mutex that nobody repairs",
    "a writer that is preferred",
    "names by prctl",
    "tgkill of a thread",
    "pthread_sigqueue",
    "each sigwait takes its own signal",
    "a signal of the process reaches who does not block it",
    "the signal stack is a thread's own",
    "processors as an attribute",
    "one processor for a thread",
}


def lines(*command):
    """What a program prints, and how it ends. One that hangs is killed, with the programs that it has started."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
            end = f"exit status {process.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            end = "hangs"
    return out.splitlines() + err.splitlines() + [end]


def names():
    """The cases that see the same as natively."""
    listed = lines(PROGRAM, "--list")[:-1]
    return [name for name in listed if name not in DEVIATIONS]


def natively_and_as_fibers(*arguments):
    return lines(PROGRAM, *arguments), lines(*FIBERS, *arguments)


class Threads(unittest.TestCase):
    maxDiff = None

    def test_each_case_sees_what_it_sees_natively(self):
        cases = names()
        self.assertGreaterEqual(len(set(cases)), 150)
        with ThreadPoolExecutor(2) as pool:
            for name, (native, fibers) in zip(cases, pool.map(natively_and_as_fibers, cases)):
                with self.subTest(name):
                    self.assertTrue(native[0].startswith(f"{name}: ") and native[1:] == ["exit status 0"], native)
                    self.assertEqual(fibers, native)

    def test_all_cases_in_one_process(self):
        native, fibers = natively_and_as_fibers(*names())
        self.assertEqual(fibers, native)

    def test_64_threads_are_one_kernel_thread(self):
        native, fibers = natively_and_as_fibers("--tasks", "64")
        self.assertEqual((native[0], fibers[0]), ("65", "1"))


if __name__ == "__main__":
    unittest.main()
