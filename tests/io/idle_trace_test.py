#!/usr/bin/env python3
"""An idle process makes no system call (C-55, CD-S2), a timer that moves the front wakes nobody (C-41), and one that expires wakes
one worker (C-48).

    idle_trace_test.py <idle_program>

Runs the program under strace and reads what each worker did between the program's marks.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

IDLE_SECONDS = 3
PROGRAM = sys.argv.pop()
LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)")


def trace(max_wait_ms=0):
    """With that cap on sleeps of the IOManager; 0: none. [(thread id, name of the system call, line)], {'plain': ids, 'io': ids},
    and the seconds for which it was idle."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        environment = dict(os.environ)
        # LeakSanitizer cannot work beneath another tracer.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        result = subprocess.run(
            ["strace", "-f", "-qq", "-o", path, PROGRAM, str(IDLE_SECONDS), str(max_wait_ms)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env=environment)
        if result.returncode != 0:
            raise RuntimeError(f"the program under strace ended with {result.returncode}:\n{result.stdout}")
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    workers = {}
    idle_seconds = 0.0
    for line in result.stdout.splitlines():
        words = line.split()
        if words and words[0] in ("plain", "io"):
            workers[words[0]] = {int(word) for word in words[1:]}
        elif words and words[0] == "idle":
            idle_seconds = float(words[1])
    calls = []
    for line in lines:
        match = LINE.match(line)
        if match:
            calls.append((int(match[1]), match[2], line))
    return calls, workers, idle_seconds


class IdleTrace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        calls, cls.workers, _ = trace()
        cls.phases = [[]]
        for call in calls:
            if call[1] == "getppid":
                cls.phases.append([])
            else:
                cls.phases[-1].append(call)

    def of_workers(self, phase):
        everybody = self.workers["plain"] | self.workers["io"]
        return [line for thread, _, line in self.phases[phase] if thread in everybody]

    def test_the_program_was_watched(self):
        self.assertEqual(len(self.workers["plain"]), 2)
        self.assertEqual(len(self.workers["io"]), 8)
        self.assertEqual(len(self.phases), 6)
        seen = {thread for thread, _, _ in self.phases[0]}
        self.assertLessEqual(self.workers["plain"] | self.workers["io"], seen, "all workers had something to do")

    # C-55, CD-S2, RG-22
    def test_an_idle_process_makes_no_system_call(self):
        self.assertEqual(self.of_workers(1), [])

    # C-41
    def test_a_new_front_is_one_settime_and_wakes_nobody(self):
        self.assertEqual(self.of_workers(2), [])
        settings = [line for _, name, line in self.phases[2] if name == "timerfd_settime"]
        self.assertEqual(len(settings), 4, "four of the eight timers became the earliest:\n" + "\n".join(settings))

    # C-41: they are cancelled one by one, the front first or last, and nobody is woken for it.
    def test_timers_that_wait_or_are_cancelled_wake_nobody(self):
        self.assertEqual(self.of_workers(3), [])

    # C-55: with a cap on sleeps, one wake-up per cap and worker; fewer where a busy machine keeps a worker waiting.
    def test_a_cap_is_one_wake_up_each_time(self):
        calls, workers, idle_seconds = trace(max_wait_ms=1000)
        marks = [i for i, (_, name, _) in enumerate(calls) if name == "getppid"]
        idle = [call for call in calls[marks[0]:marks[1]] if call[0] in workers["io"]]
        for worker in workers["io"]:
            ended = [line for thread, name, line in idle if thread == worker and "= 0" in line]
            self.assertLessEqual(len(ended), idle_seconds + 1, "\n".join(ended))
            self.assertGreaterEqual(len(ended), 1, "\n".join(ended))

    # C-48, TD-12
    def test_an_expiry_wakes_one_worker(self):
        woken = {thread for thread, _, _ in self.phases[4] if thread in self.workers["io"]}
        self.assertEqual(len(woken), 1, "\n".join(self.of_workers(4)))
        self.assertFalse([line for thread, _, line in self.phases[4] if thread in self.workers["plain"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
