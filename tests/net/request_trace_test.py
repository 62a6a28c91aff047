#!/usr/bin/env python3
"""What a request costs in system calls: one receive, one send and a share of a wait; no option, no epoll_ctl, no futex, no tickle.

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
    """The server. `calls`, after it has ended: how often it made each system call between the marks, and which ones."""

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
            calls = list(self._whole_calls(file))
        self._folder.cleanup()
        first = next(i for i, call in enumerate(calls) if call.startswith("sendto(") and '"<"' in call)
        last = next(i for i, call in enumerate(calls) if call.startswith("recvfrom(") and '">"' in call)
        self.calls = Counter(call.split("(")[0] for call in calls[first + 1:last])
        self._tracer.stdout.close()

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
        counts = server.calls
        self.assertEqual(counts.pop("sendto"), requests)
        slack = requests // 50  # an event that comes after its byte was read costs a receive that finds nothing
        receives = counts.pop("recvfrom")
        self.assertTrue(requests <= receives <= requests + slack, f"{receives} receives")
        self.assertLessEqual(sum(counts.pop(name, 0) for name in WAITS), requests + slack)
        self.assertLessEqual(counts.pop("epoll_ctl", 0), 1)  # at the first wait
        self.assertEqual(counts, Counter())

    # P-13. How many waits they share depends on how long strace makes a turn; scripts/bench.sh echo counts those.
    def test_hundred_at_once_are_two_calls_each_and_nothing_else(self):
        connections, rounds = 100, 10
        with Traced() as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(connections)]
            for number, byte in enumerate([b"a", b"<"] + [b"x"] * rounds + [b">"]):
                together = clients if number != 1 and number != rounds + 2 else clients[:1]  # the marks are one's
                with server.stopped():  # they are all there when it looks
                    for client in together:
                        client.sendall(byte)
                for client in together:
                    self.assertEqual(client.recv(1), byte)
        counts, requests = server.calls, connections * rounds
        print(f"\n{requests} requests: {dict(counts)}")
        self.assertEqual((counts.pop("recvfrom"), counts.pop("sendto")), (requests, requests))
        self.assertLess(sum(counts[name] for name in WAITS), requests)
        for name in WAITS + BY_A_STOP:
            counts.pop(name, None)
        self.assertEqual(counts, Counter())


if __name__ == "__main__":
    unittest.main()
