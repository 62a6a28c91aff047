#!/usr/bin/env python3
"""The gathering proxy, libcurl's calls in 50 fibers for each request, against an upstream that fails, hangs and counts.

    gather_test.py gather
"""
import collections
import re
import socket
import sys
import threading
import time
import unittest

from http_support import Server, run

GATHER = sys.argv.pop()
PARTS = 50
PATIENCE = 60  # seconds until a test gives up


class Upstream:
    """Answers a request for part I with `<I>`, after `failures(I)` times 503; never if `hangs(I)`."""

    def __init__(self, failures=lambda part: 0, hangs=lambda part: False):
        self.failures, self.hangs = failures, hangs
        self.asked = collections.Counter()
        self.changed = threading.Condition()
        self.waiting = 0  # connections that get no answer and are still open
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                more = connection.recv(4096)
                if not more:
                    return
                head += more
            part = int(re.search(rb"part=(\d+)", head)[1])
            with self.changed:
                self.asked[part] += 1
                fails = self.asked[part] <= self.failures(part)
            if self.hangs(part):
                self.wait(1)
                try:
                    connection.recv(1)  # returns when the proxy closes
                except ConnectionResetError:
                    pass
                self.wait(-1)
                return
            body = f"<{part}>".encode()
            status = b"503 Service Unavailable" if fails else b"200 OK"
            connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body))

    def wait(self, step):
        with self.changed:
            self.waiting += step
            self.changed.notify_all()

    def expect_waiting(self, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.waiting == count, PATIENCE)

    def close(self):
        self.listener.close()


class Gather(unittest.TestCase):
    def upstream(self, **how):
        upstream = Upstream(**how)
        self.addCleanup(upstream.close)
        return upstream

    def get(self, server):
        return run("curl", "--silent", "--show-error", "--max-time", str(PATIENCE), server.url + "/").decode()

    def test_asks_again_what_has_failed_twice(self):
        upstream = self.upstream(failures=lambda part: 2 if part % 5 == 0 else 0)
        with Server(GATHER, upstream.url, "0", "600") as server:
            self.assertEqual(self.get(server), "".join(f"<{part}>" for part in range(PARTS)))
        self.assertEqual(sum(upstream.asked.values()), PARTS + 2 * PARTS // 5)

    def test_leaves_out_what_fails_three_times(self):
        upstream = self.upstream(failures=lambda part: 3 if part == 7 else 0)
        with Server(GATHER, upstream.url, "0", "600") as server:
            self.assertEqual(self.get(server), "".join(f"<{part}>" for part in range(PARTS) if part != 7))

    def test_answers_at_the_deadline_with_what_has_come(self):
        upstream = self.upstream(hangs=lambda part: part >= 40)
        with Server(GATHER, upstream.url, "0", "3") as server:
            start = time.monotonic()
            answer = self.get(server)
            self.assertGreaterEqual(time.monotonic() - start, 3)
            self.assertTrue(set(re.findall(r"<\d+>", answer)) <= {f"<{part}>" for part in range(40)}, answer)
            self.assertTrue(upstream.expect_waiting(0), "the calls in vain have ended")

    def test_the_calls_end_when_the_client_goes(self):
        upstream = self.upstream(hangs=lambda part: True)
        with Server(GATHER, upstream.url, "0", "6000") as server:
            client = server.connect()
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertTrue(upstream.expect_waiting(PARTS))
            client.close()
            self.assertTrue(upstream.expect_waiting(0), "an hour before the deadline")


if __name__ == "__main__":
    unittest.main()
