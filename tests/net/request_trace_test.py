#!/usr/bin/env python3
"""What a request costs in system calls. One that is alone: a receive, a send and a wait. Many at once share theirs by the worker's ring, or
without one have a receive and a send each. Never an option, an epoll_ctl, a futex or a tickle.

    request_trace_test.py <tcp_echo>

Runs the example under strace with one worker, and counts its system calls between two marks.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter

PROGRAM = sys.argv.pop()
WAITS = ("epoll_pwait", "epoll_pwait2")
BY_A_STOP = ("restart_syscall", "rt_sigtimedwait")  # calls that begin anew after SIGCONT; the second one is the main thread's


class Traced:
    """The server. `calls`, after it has ended: its system calls."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "trace")
        self._tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", self._path, PROGRAM, "127.0.0.1:0", "1"],
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        host, port = self._tracer.stdout.readline().split()[-1].split(":")
        self._address = (host, int(port))
        with open(f"/proc/{self._tracer.pid}/task/{self._tracer.pid}/children", encoding="ascii") as children:
            self._pid = int(children.read().split()[0])
        return self

    def __exit__(self, *_):
        os.killpg(self._tracer.pid, signal.SIGTERM)  # strace passes it over, and ends with the program
        self._tracer.wait()
        with open(self._path, encoding="utf-8", errors="replace") as file:
            self.calls = list(self._whole_calls(file))
        self._folder.cleanup()
        self._tracer.stdout.close()

    def count(self, first, last):
        """How often it made which call, and in vain, after the first one that starts with and contains the texts `first`, and before
        `last`."""
        begin, end = (next(i for i, call in enumerate(self.calls) if call.startswith(name) and text in call) for name, text in (first, last))
        return Counter(call.split("(")[0] + (" in vain" if "EAGAIN" in call else "") for call in self.calls[begin + 1:end])

    @staticmethod
    def _whole_calls(lines):
        """A call during which another thread's comes has two lines. It counts where it ends."""
        begun = {}
        for line in lines:
            thread, text = line.rstrip().split(None, 1)
            if text.endswith("<unfinished ...>"):
                begun[thread] = text
            elif text.startswith("<... "):
                yield begun.pop(thread, "") + text.split("resumed>", 1)[1]
            elif "(" in text and not text.startswith("---"):  # signals are no calls
                yield text

    def connect(self):
        return socket.create_connection(self._address, 10)

    @contextlib.contextmanager
    def stopped(self):
        """Meanwhile none of its threads runs."""
        os.kill(self._pid, signal.SIGSTOP)
        tasks = f"/proc/{self._pid}/task"
        while not all(self._state(f"{tasks}/{task}/stat") in "tT" for task in os.listdir(tasks)):
            time.sleep(0.001)
        yield
        os.kill(self._pid, signal.SIGCONT)

    @staticmethod
    def _state(path):
        with open(path, encoding="ascii") as stat:
            return re.search(r"\) (\w)", stat.read())[1]


class RequestTrace(unittest.TestCase):
    def test_one_receive_and_one_send(self):
        requests = 1000
        with Traced() as server, server.connect() as client:
            for byte in [b"<"] + [b"x"] * requests + [b">"]:  # marks around the requests
                client.sendall(byte)
                client.recv(1)
        counts = server.count(("sendto(", '"<"'), ("recvfrom(", '">"'))
        self.assertEqual(counts.pop("sendto"), requests)
        slack = requests // 50
        self.assertEqual(counts.pop("recvfrom"), requests)
        # An event that comes after its byte was read costs a receive that finds nothing. On a busy machine nearly all do.
        self.assertLessEqual(counts.pop("recvfrom in vain", 0), requests + slack)
        self.assertLessEqual(sum(counts.pop(name, 0) for name in WAITS), requests + slack)
        self.assertLessEqual(counts.pop("epoll_ctl", 0), 1)  # at the first wait
        self.assertEqual(counts, Counter())

    # P-13. How many calls they share depends on how long strace makes a turn; scripts/bench.sh echo counts those.
    def test_hundred_at_once_share_their_calls(self):
        connections, before, rounds = 100, 3, 10
        with Traced() as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(connections)]
            for number in range(before + rounds + 1):  # first it learns that they come together
                if number in (before, before + rounds):  # a mark: one more connection
                    marks = stack.enter_context(server.connect())
                    marks.sendall(b"m")
                    self.assertEqual(marks.recv(1), b"m")
                with server.stopped():  # they are all there when it looks
                    for client in clients:
                        client.sendall(b"x")
                for client in clients:
                    self.assertEqual(client.recv(1), b"x")
        accepted = [call for call in server.calls if call.startswith("accept4(") and "= -1" not in call]
        counts, requests = server.count(*(("accept4(", accepted[connections + mark]) for mark in range(2))), connections * rounds
        print(f"\n{requests} requests: {dict(counts)}")
        if counts.pop("io_uring_enter", 0) > 0:
            self.assertLess(sum(counts.values()), requests / 2)
        else:
            self.assertEqual((counts.pop("recvfrom"), counts.pop("sendto")), (requests, requests))
            self.assertLess(sum(counts[name] for name in WAITS), requests)
        for name in WAITS + BY_A_STOP:
            counts.pop(name, None)
        self.assertLess(sum(counts.values()), 50, "most are of the marks")


if __name__ == "__main__":
    unittest.main()
