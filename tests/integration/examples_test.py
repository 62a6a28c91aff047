#!/usr/bin/env python3
"""Examples that are servers, or need one, as the guide shows them.

    examples_test.py first_server http_router http_routes redis [https_hello]
"""
import http.client
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from urllib.parse import urlencode

from http_support import Server, held_port

HTTPS = sys.argv.pop() if len(sys.argv) > 5 else None
REDIS, ROUTES, ROUTER, FIRST = sys.argv.pop(), sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
PATIENCE = 120  # seconds until a test gives up


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    answer = response.status, response.read().decode(), response.headers
    connection.close()
    return answer


class FirstServer(unittest.TestCase):
    def test_serves_reads_its_settings_anew_and_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "server.yml").write_text("servers: [{address: ['127.0.0.1:0'], keepalive: true}]\n")
            greeting = Path(folder, "greeting.yml")
            greeting.write_text("greeting: {name: Ada}\n")
            self.assertEqual(subprocess.run([FIRST, "-c", folder, "--check-config"], timeout=PATIENCE).returncode, 0)
            with subprocess.Popen([FIRST, "-c", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                try:
                    for line in process.stdout:
                        if match := re.search(r"listens on 127\.0\.0\.1:(\d+)", line):
                            port = int(match[1])
                        if "the service runs" in line:
                            break
                    self.assertEqual(ask(port, "GET", "/hello")[:2], (200, "Hello, Ada\n"))
                    greeting.write_text("greeting: {name: Grace}\n")
                    process.send_signal(signal.SIGHUP)
                    end = time.monotonic() + PATIENCE
                    while ask(port, "GET", "/hello")[1] != "Hello, Grace\n":
                        self.assertLess(time.monotonic(), end, "the new setting has no effect")
                finally:
                    process.terminate()
            self.assertEqual(process.returncode, 0)


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(ROUTER, "0")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(False)

    def ask(self, *arguments, **more):
        return ask(self.server.port, *arguments, **more)

    def test_put_get_list_delete(self):
        self.assertEqual(self.ask("PUT", "/keys/a%2Fb", "one")[0], 201)
        self.assertEqual(self.ask("PUT", "/keys/a%2Fb", "two")[0], 204)
        self.assertEqual(self.ask("GET", "/keys/a%2Fb")[:2], (200, "two"))
        self.assertEqual(self.ask("HEAD", "/keys/a%2Fb")[:2], (200, ""))
        status, names, headers = self.ask("GET", "/keys?prefix=a")
        self.assertEqual((status, names, headers["content-type"]), (200, '["a%2Fb"]\n', "application/json"))
        self.assertEqual(self.ask("DELETE", "/keys/a%2Fb")[0], 204)
        self.assertEqual(self.ask("GET", "/keys/a%2Fb")[0], 404)

    def test_limits_and_methods(self):
        self.assertEqual(self.ask("PUT", "/keys/large", "x" * (64 * 1024 + 1))[0], 413)
        status, _, headers = self.ask("POST", "/keys/x")
        self.assertEqual((status, headers["allow"]), (405, "DELETE, GET, HEAD, PUT, OPTIONS"))
        self.assertEqual(self.ask("GET", "/keys/a/b")[0], 404)

    def test_group_wants_a_token(self):
        self.assertEqual(self.ask("POST", "/admin/clear")[0], 401)
        self.assertEqual(self.ask("POST", "/admin/clear", headers={"authorization": "Bearer secret"})[0], 204)


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(ROUTES, "0")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(False)

    def ask(self, *arguments, **more):
        return ask(self.server.port, *arguments, **more)

    def test_part_of_a_path(self):
        self.assertEqual(self.ask("GET", "/users/Ada%20Lovelace")[:2], (200, "user Ada Lovelace\n"))
        self.assertEqual(self.ask("GET", "/users/%zz")[0], 400)

    def test_methods(self):
        status, _, headers = self.ask("DELETE", "/users")
        self.assertEqual((status, headers["allow"]), (405, "POST, OPTIONS"))

    def test_query(self):
        self.assertEqual(self.ask("GET", "/search?q=a+b&limit=3&tag=x&tag=y")[:2], (200, "q=a b limit=3 tags: x y\n"))
        self.assertEqual(self.ask("GET", "/search?limit=many")[0], 400)

    def test_form(self):
        status, _, headers = self.ask("POST", "/users", urlencode({"name": "Ada L"}),
                                      {"content-type": "application/x-www-form-urlencoded"})
        self.assertEqual((status, headers["location"]), (201, "/users/Ada%20L"))

    def test_gate(self):
        self.assertEqual(self.ask("GET", "/admin")[0], 401)
        self.assertEqual(self.ask("GET", "/admin", headers={"authorization": "Bearer secret"})[:2], (200, "welcome\n"))

    def test_own_404(self):
        self.assertEqual(self.ask("GET", "/nothing")[:2], (404, "there is nothing here\n"))

    def test_events_go_on_until_the_client_leaves(self):
        with self.server.connect() as client:
            client.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
            got = b""
            while b"data: 2\n\n" not in got:
                piece = client.recv(4096)
                self.assertTrue(piece, got)
                got += piece


class EventsEndWithTheServer(unittest.TestCase):
    def test_ends_in_order_while_events_are_sent(self):
        with Server(ROUTES, "0") as server:
            client = server.connect()
            client.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
            client.recv(4096)
        while client.recv(4096):  # the server has ended, with status 0
            pass
        client.close()


@unittest.skipUnless(HTTPS, "TLS is not built")
class Https(unittest.TestCase):
    def test_serves_curl(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder, "site.crt"), Path(folder, "site.key")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-subj", "/CN=localhost", "-out", certificate, "-keyout", key], check=True, capture_output=True)
            self.assertEqual(subprocess.run([HTTPS, key, key], capture_output=True, timeout=PATIENCE).returncode, 1)
            with subprocess.Popen([HTTPS, certificate, key, "0"], stdout=subprocess.PIPE, text=True) as process:
                try:
                    port = re.search(r":(\d+)$", process.stdout.readline().strip())[1]
                    url = f"https://localhost:{port}/hello"
                    got = subprocess.run(["curl", "-sS", "-4", "--cacert", certificate, url], capture_output=True, timeout=PATIENCE)
                finally:
                    process.terminate()
            self.assertEqual(got.stdout, b"hello\n", got.stderr)
            self.assertEqual(process.returncode, 0)


class Redis(unittest.TestCase):
    def test_two_fibers_share_a_thread(self):
        held = held_port()
        self.addCleanup(held.close)
        port = held.getsockname()[1]
        with subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                               "--dir", "/tmp", "--loglevel", "warning"], stdout=subprocess.DEVNULL) as server:
            try:
                end = time.monotonic() + PATIENCE
                while time.monotonic() < end:
                    try:
                        socket.create_connection(("127.0.0.1", port), 1).close()
                        break
                    except OSError:
                        time.sleep(0.05)
                out = subprocess.run([REDIS, str(port)], capture_output=True, text=True, timeout=PATIENCE)
            finally:
                server.terminate()
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(out.stdout.count("busy fiber: ok\n"), 4)
        self.assertIn("waiting fiber got: hello\n", out.stdout)


if __name__ == "__main__":
    unittest.main()
