#!/usr/bin/env python3
"""Load generators against the HTTP examples, straight and through nginx: every request is answered, with 200.

    http_load_test.py SECONDS CONNECTIONS http_hello http_echo
"""
import re
import sys
import tempfile
import unittest

from http_support import Nginx, Server, run

ECHO, HELLO = sys.argv.pop(), sys.argv.pop()
CONNECTIONS, SECONDS = int(sys.argv.pop()), int(sys.argv.pop())


class Load(unittest.TestCase):
    def wrk(self, url, connections, *more):
        out = run("wrk", "-t1", f"-c{connections}", f"-d{SECONDS}", "--timeout", "10", *more, url).decode()
        self.assertNotIn("Socket errors", out)
        self.assertNotIn("Non-2xx", out)
        requests = int(re.search(r"(\d+) requests in", out)[1])
        print(f"\nwrk -c{connections} {' '.join(more)}: {requests} requests, {re.search(r'Requests/sec: +(.*)', out)[1]}/s")
        self.assertGreater(requests, connections)

    def ab(self, url, *options):
        out = run("ab", "-q", "-n", "20000", "-c", "100", *options, url).decode()
        self.assertRegex(out, r"Complete requests: +20000\n")
        self.assertRegex(out, r"Failed requests: +0\n")
        self.assertNotIn("Non-2xx", out)
        self.assertNotIn("Write errors", out)
        return out

    def h2load(self, url, *options):
        out = run("h2load", "--h1", "-n", "20000", "-c", "100", *options, url).decode()
        self.assertIn("20000 total, 20000 started, 20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout", out)
        self.assertIn("status codes: 20000 2xx, 0 3xx, 0 4xx, 0 5xx", out)

    def test_hello_under_wrk(self):
        with Server(HELLO, "0") as server:
            self.wrk(server.url + "/hello", CONNECTIONS)

    def test_hello_under_h2load(self):
        with Server(HELLO, "0") as server:
            self.h2load(server.url + "/hello")

    def test_hello_under_h2load_pipelined(self):
        with Server(HELLO, "0") as server:
            self.h2load(server.url + "/hello", "-m", "16")

    def test_hello_under_ab_with_a_connection_for_each_request(self):
        with Server(HELLO, "0") as server:
            self.ab(server.url + "/hello")

    def test_hello_under_ab_with_kept_connections(self):
        with Server(HELLO, "0") as server:
            self.assertRegex(self.ab(server.url + "/hello", "-k"), r"Keep-Alive requests: +[1-9]")

    def test_uploads_under_ab(self):
        with tempfile.NamedTemporaryFile() as body, Server(ECHO, "0") as server:
            body.write(b"0123456789abcdef" * 256)
            body.flush()
            self.ab(server.url + "/", "-k", "-p", body.name, "-T", "application/octet-stream")

    def test_hello_through_nginx_under_wrk(self):
        with Server(HELLO, "0") as server, Nginx(server) as nginx:
            self.wrk(nginx.url + "/hello", 100)
            self.assertEqual(nginx.errors(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
