#!/usr/bin/env python3
"""Idle kept connections: what they cost, and that nothing of them stays.

    http_idle_test.py CONNECTIONS http_server_program
"""
import contextlib
import os
import sys
import time
import unittest

from http_support import Server, read_response

PROGRAM = sys.argv.pop()
CONNECTIONS = int(sys.argv.pop())
REQUEST = b"GET /hello HTTP/1.1\r\nHost: a\r\nUser-Agent: idle\r\nAccept: */*\r\n\r\n"
WARM_UP = 200


class Idle(unittest.TestCase):
    def open_some(self, count):
        clients = []
        for _ in range(count):
            client = self.server.connect()
            client.sendall(REQUEST)
            clients.append(client)
        for client in clients:
            with client.makefile("rb") as answers:
                self.assertEqual(read_response(answers)[::2], (200, b"hello\n"))
        return clients

    def close_all(self, clients):
        for client in clients:
            client.close()

    def counters(self):
        """Connections, fibers, timers and descriptors of the server; the asking connection is one of them."""
        with self.server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"GET /counters HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            told = [int(word) for word in read_response(answers)[2].split()]
            self.assertEqual(answers.read(), b"")
        return told + [self.descriptors()]

    def descriptors(self):
        """Those of the server, but not of the rings. A worker makes its ring, with an eventfd, when it is first busy enough."""
        folder = f"/proc/{self.server.process.pid}/fd"
        files = []
        for number in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                files.append(os.readlink(f"{folder}/{number}"))
        return len(files) - 2 * files.count("anon_inode:[io_uring]")

    def settled(self, as_wanted):
        """The counters, once they are as wanted, or after 20 s."""
        deadline = time.monotonic() + 20
        while not as_wanted(now := self.counters()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return now

    def resident(self):
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    # RG-14, P-9
    def test_idle_connections_are_cheap_and_leave_nothing(self):
        with Server(PROGRAM, "0", "2") as self.server:
            self.close_all(self.open_some(WARM_UP))  # tables and arenas of the first requests are nobody's cost
            # A connection is counted out before its descriptor is closed, so two looks must agree.
            start = self.settled(lambda now: now[0] == 1 and now == self.counters())
            self.assertEqual(start[0], 1)
            # Of the warm-up some memory is kept for its like, so as many of the new ones cost nothing: they do not count either.
            before = self.resident()
            clients = self.open_some(CONNECTIONS)
            self.assertEqual(self.counters()[0], CONNECTIONS + 1)
            each = (self.resident() - before) / (CONNECTIONS - WARM_UP)
            print(f"\n{CONNECTIONS} idle connections: {each:.0f} B resident each")
            self.assertLessEqual(each, 12 * 1024)
            self.close_all(clients)
            self.assertEqual(self.settled(lambda now: now == start), start)


if __name__ == "__main__":
    unittest.main(verbosity=2)
