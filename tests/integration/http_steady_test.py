#!/usr/bin/env python3
"""What a request costs in system calls when nothing new happens (P-13): one receive, one send, a share of the wait for events.

    http_steady_test.py http_server_program

Two runs of the program under strace that differ in the number of requests only; what one has more is theirs.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

from http_support import Server, read_response

PROGRAM = sys.argv.pop()
FEW, MANY = 50, 1050
CALL = re.compile(r"^\d+ +(\w+)\(")


def calls_with(requests):
    """{system call: count} of a server's life in which one connection makes so many requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        with Server("strace", "-f", "-qq", "-o", path, PROGRAM, "0", "1") as server:
            with server.connect() as client, client.makefile("rb") as answers:
                for _ in range(requests):
                    client.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
                    if read_response(answers)[::2] != (200, b"hello\n"):
                        raise AssertionError("no answer")
        with open(path, encoding="utf-8", errors="replace") as file:
            return collections.Counter(match[1] for line in file if (match := CALL.match(line)))


def has_instruction_for_thread_pointers():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return "fsgsbase" in info.read().split()


class Steady(unittest.TestCase):
    def test_request_is_one_receive_and_one_send(self):
        more = calls_with(MANY)
        more.subtract(calls_with(FEW))
        each = {name: count / (MANY - FEW) for name, count in more.items() if abs(count) > 10}
        print(f"\neach request: {each}")
        receives = sum(each.pop(name, 0) for name in ("recvfrom", "recvmsg", "read"))
        sends = sum(each.pop(name, 0) for name in ("sendto", "sendmsg", "write"))
        if not has_instruction_for_thread_pointers():  # the handler borrows a thread and gives it back
            self.assertAlmostEqual(each.pop("arch_prctl", 0), 2, delta=0.05)
        waits = sum(each.pop(name, 0) for name in ("epoll_wait", "epoll_pwait", "epoll_pwait2"))
        self.assertAlmostEqual(receives, 1, delta=0.05)
        self.assertAlmostEqual(sends, 1, delta=0.05)
        self.assertGreater(waits, 0)
        self.assertEqual(each, {}, "nothing else: no epoll_ctl, no setsockopt, no futex")


if __name__ == "__main__":
    unittest.main(verbosity=2)
