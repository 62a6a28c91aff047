#!/usr/bin/env python3
"""Clients that want to hold connections for ever are cut at the limits, and meanwhile everybody else is served.

    http_slow_test.py http_server_program

The program's times are a fifth of the defaults, which tests/http/request_reader_test.cc proves on a manual clock.
"""
import concurrent.futures
import socket
import subprocess
import sys
import threading
import time
import unittest

from http_support import Server, Stopwatch, read_response, run

PROGRAM = sys.argv.pop()
FASTER = 5
FIRST_BYTE, HEAD, BODY_GRACE, WRITE = 10 / FASTER, 15 / FASTER, 10 / FASTER, 30 / FASTER  # seconds
SLACK = 3 / FASTER
PATIENCE = 60


def drip(client, data, pause):
    """Sends `data` byte by byte; returns when the server ends the connection, with what it said."""
    said = b""
    client.settimeout(pause)
    for byte in data:
        try:
            client.sendall(bytes([byte]))
            while piece := client.recv(4096):
                said += piece
            return said
        except socket.timeout:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return said
    raise AssertionError("the server waited for all of it")


class Slow(unittest.TestCase):
    """All scenarios at the same time, against one server."""

    def test_all(self):
        with Server(PROGRAM, "0", "2", str(FASTER)) as self.server, concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.over = threading.Event()
            scenarios = [self.silent, self.slow_head, self.slow_body, self.slow_chunks, self.no_reader, self.half_open,
                         self.slowhttptest_head, self.slowhttptest_body, self.slowhttptest_read]
            try:
                bystander = pool.submit(self.bystander)
                running = {pool.submit(scenario): scenario.__name__ for scenario in scenarios}
                for one in concurrent.futures.as_completed(running):
                    with self.subTest(running[one]):
                        one.result()
            finally:
                self.over.set()
            with self.subTest("bystander"):
                bystander.result()

    # Every 20 ms somebody new. None waits for as long as the fastest of the slow ones is given.
    def bystander(self):
        slowest = served = 0
        while not self.over.wait(0.02):
            watch = Stopwatch()
            with self.server.connect() as client, client.makefile("rb") as answers:
                client.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(read_response(answers)[::2], (200, b"hello\n"))
            watch.stop().check(FIRST_BYTE / 2)
            slowest, served = max(slowest, watch.elapsed), served + 1
        print(f"\n{served} bystanders served, the slowest in {slowest * 1000:.0f} ms")
        self.assertGreater(served, 100)

    def lasts(self, watch, seconds, what, most=None):
        """`watch` runs since before the server's own clock."""
        result = what()
        watch.stop().check((most or seconds) + SLACK)
        self.assertGreaterEqual(watch.elapsed, seconds - 0.1)
        return result

    # SEC-05
    def silent(self):
        watch = Stopwatch()
        with self.server.connect() as client:
            self.assertEqual(self.lasts(watch, FIRST_BYTE, lambda: client.recv(1)), b"")

    # SEC-05, K-3: one byte per second.
    def slow_head(self):
        with self.server.connect() as client:
            said = self.lasts(Stopwatch(), HEAD, lambda: drip(client, b"GET /hello HTTP/1.1\r\n", 5 / FASTER))
            self.assertTrue(said.startswith(b"HTTP/1.1 408 "), said)

    # SEC-06
    def slow_body(self):
        with self.server.connect() as client:
            watch = Stopwatch()
            client.sendall(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
            said = self.lasts(watch, BODY_GRACE, lambda: drip(client, b"x" * 999, 0.5 / FASTER))
            self.assertTrue(said.startswith(b"HTTP/1.1 408 "), said)

    # SEC-06: what chunks cost to frame does not count as progress.
    def slow_chunks(self):
        with self.server.connect() as client:
            watch = Stopwatch()
            client.sendall(b"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            said = self.lasts(watch, BODY_GRACE, lambda: drip(client, b"1;long=extension\r\nx\r\n" * 100, 0.5 / FASTER))
            self.assertTrue(said.startswith(b"HTTP/1.1 408 "), said)

    # SEC-07, SEC-10: 64 MiB for somebody who reads nothing. The reset says that what has come is not all. What the client's kernel
    # took after the wait began counts as taken, and then there is one wait more.
    def no_reader(self):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((self.server.host, self.server.port))
            watch = Stopwatch()
            client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIsInstance(self.lasts(watch, WRITE, lambda: self.wait_for_reset(client), 2 * WRITE), ConnectionResetError)

    def wait_for_reset(self, client):
        while True:
            time.sleep(0.02)
            error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error != 0:
                return OSError(error, "")

    # 300 clients that begin a request and say nothing more.
    def half_open(self):
        clients = [self.server.connect() for _ in range(300)]
        for client in clients:
            watch = Stopwatch()  # of the last one
            client.sendall(b"GET /hello HTTP/1.1\r\nHo")
        self.lasts(watch, HEAD, lambda: [client.recv(4096) for client in clients])
        for client in clients:
            client.close()

    # It ends when the server has cut all its connections. Meanwhile the bystanders are served.
    def slowhttptest(self, *options):
        out = run("slowhttptest", "-c", "200", "-r", "200", "-l", str(PATIENCE), *options, timeout=2 * PATIENCE).decode()
        self.assertIn("No open connections left", out)

    def slowhttptest_head(self):
        self.slowhttptest("-H", "-i", "1", "-u", self.server.url + "/hello")

    def slowhttptest_body(self):
        self.slowhttptest("-B", "-i", "1", "-s", "8192", "-t", "POST", "-u", self.server.url + "/upload")

    # Its readers do not notice that they were cut, so the server tells. Everybody else is through by then.
    def slowhttptest_read(self):
        with subprocess.Popen(["slowhttptest", "-c", "200", "-r", "200", "-l", str(2 * PATIENCE), "-X", "-w", "512", "-y", "1024", "-n", "5", "-z",
                               "32", "-k", "1", "-u", self.server.url + "/large"], stdout=subprocess.DEVNULL) as readers:
            try:
                self.wait_for(lambda open: open > 200)
                self.wait_for(lambda open: open < 10)
                self.assertIsNone(readers.poll(), "it is the server that has ended them")
            finally:
                readers.terminate()

    def wait_for(self, holds):
        end = time.monotonic() + PATIENCE
        while not holds(self.connections()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def connections(self):
        with self.server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"GET /counters HTTP/1.1\r\nHost: a\r\n\r\n")
            return int(read_response(answers)[2].split()[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
