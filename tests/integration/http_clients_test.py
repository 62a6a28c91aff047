#!/usr/bin/env python3
"""Clients that people use, against the HTTP examples: curl, python's http.client, bare sockets, nginx as a proxy in front.

    http_clients_test.py http_hello http_echo http_waiting
"""
import concurrent.futures
import hashlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from http_support import Nginx, Server, Stopwatch, held_port, read_response, run

WAITING, ECHO, HELLO = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()


class Curl(unittest.TestCase):
    def curl(self, *arguments, **more):
        return run("curl", "--silent", "--show-error", "--max-time", "30", *arguments, **more)

    def test_get(self):
        with Server(HELLO, "0") as server:
            self.assertEqual(self.curl(server.url + "/hello"), b"hello\n")

    def test_head_has_the_length_and_no_body(self):
        with Server(HELLO, "0") as server:
            answer = self.curl("--head", server.url + "/hello").lower()
            self.assertIn(b"content-length: 6\r\n", answer)
            self.assertTrue(answer.endswith(b"\r\n\r\n"))

    def test_one_connection_serves_many_requests(self):
        with Server(HELLO, "0") as server:
            out = self.curl("-w", "%{num_connects} ", *[server.url + "/hello"] * 10)
            self.assertEqual(out, b"hello\n1 " + b"hello\n0 " * 9)

    def test_unknown_path_is_404_and_keeps_the_connection(self):
        with Server(HELLO, "0") as server:
            out = self.curl("-o", "/dev/null", "-o", "/dev/null", "-w", "%{http_code} %{num_connects};",
                            server.url + "/nothing", server.url + "/nothing")
            self.assertEqual(out, b"404 1;404 0;")

    def test_options_of_the_server(self):
        with Server(HELLO, "0") as server:
            out = self.curl("-X", "OPTIONS", "--request-target", "*", "-w", "%{http_code}", server.url)
            self.assertEqual(out, b"200")

    def test_uploads_come_back(self):
        body = os.urandom(5_000_000)
        with Server(ECHO, "0") as server, tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            kinds = {
                "with a length": [],  # curl itself asks `Expect: 100-continue` for this much
                "chunked": ["-H", "Transfer-Encoding: chunked"],
                "expect": ["-H", "Expect: 100-continue"],
                "expect and chunked": ["-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue"],
                "without expect": ["-H", "Expect:"],
            }
            for kind, options in kinds.items():
                with self.subTest(kind):
                    watch = Stopwatch()
                    back = self.curl("--data-binary", f"@{file.name}", *options, server.url + "/")
                    self.assertEqual(hashlib.sha256(back).digest(), hashlib.sha256(body).digest())
                    # curl gives up waiting for 100 after a second; a server that sends it makes nobody wait.
                    if "expect" in kind and not kind.startswith("without"):
                        watch.stop().check(0.95)

    def test_http_1_0(self):
        with Server(HELLO, "0") as server:
            self.assertEqual(self.curl("--http1.0", server.url + "/hello"), b"hello\n")

    def test_http_2_is_refused_and_an_upgrade_to_it_ignored(self):
        with Server(HELLO, "0") as server:
            self.assertEqual(self.curl("--http2", server.url + "/hello"), b"hello\n")
            refused = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--max-time", "5", server.url + "/hello"],
                                     capture_output=True, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertNotEqual(refused.returncode, 28, "it must be told, not time out")


class HttpClient(unittest.TestCase):
    def test_kept_connection_with_all_kinds_of_bodies(self):
        with Server(ECHO, "0") as server:
            client = http.client.HTTPConnection(server.host, server.port, timeout=120)
            sockets = set()
            for size in (0, 1, 100, 4095, 4096, 4097, 65536, 1_000_000):
                body = os.urandom(size)
                client.request("POST", "/", body)
                sockets.add(client.sock.getsockname())
                self.assertEqual(client.getresponse().read(), body)
                client.request("POST", "/", iter([body[: size // 2], body[size // 2:]]), encode_chunked=True,
                               headers={"Transfer-Encoding": "chunked"})
                self.assertEqual(client.getresponse().read(), body)
            self.assertEqual(len(sockets), 1)
            client.close()

    def test_many_threads(self):
        with Server(ECHO, "0") as server:

            def talk(seed):
                client = http.client.HTTPConnection(server.host, server.port, timeout=120)
                for i in range(50):
                    body = hashlib.sha256(f"{seed}:{i}".encode()).digest() * (1 + (seed * 7 + i * 13) % 400)
                    client.request("POST", "/", body)
                    if client.getresponse().read() != body:
                        return False
                client.close()
                return True

            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                self.assertTrue(all(pool.map(talk, range(16))))


class Sockets(unittest.TestCase):
    # SEC-08, SEC-33
    def test_pipelined_requests_are_answered_in_their_order(self):
        with Server(HELLO, "0") as server, server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n" * 500)
            for i in range(1000):
                self.assertEqual(read_response(answers)[0], 404 if i % 2 else 200)

    # The client reads nothing until it has written all.
    def test_pipelined_uploads_come_back_byte_for_byte(self):
        bodies = [os.urandom(1000 + 37 * i) for i in range(200)]
        with Server(ECHO, "0") as server, server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"".join(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(b), b) for b in bodies))
            for body in bodies:
                self.assertEqual(read_response(answers)[2], body)

    # FM-06
    def test_half_closed_client_gets_its_answer(self):
        with Server(HELLO, "0") as server, server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(read_response(answers)[::2], (200, b"hello\n"))
            self.assertEqual(answers.read(), b"")

    # SEC-03: the answer reaches a client that is still sending.
    def test_too_large_a_body_is_refused_and_the_refusal_arrives(self):
        with Server(HELLO, "0") as server, server.connect() as client, client.makefile("rb") as answers:
            client.sendall(b"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 30_000)
            status, headers, _ = read_response(answers)
            self.assertEqual((status, headers["connection"]), (413, "close"))
            self.assertEqual(answers.read(), b"")

    # SEC-20 and its kin: the exact table is a unit test; here it meets the server.
    def test_broken_requests_are_400_and_close(self):
        broken = [
            b"GET /hello HTTP/1.1\r\n\r\n",
            b"GET /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"GET /hello HTTP/1.1\r\nHost : a\r\n\r\n",
            b"GET /hel\x01lo HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client\r\n\r\n",
        ]
        with Server(HELLO, "0") as server:
            for request in broken:
                with self.subTest(request), server.connect() as client, client.makefile("rb") as answers:
                    client.sendall(request + b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
                    status, headers, _ = read_response(answers)
                    self.assertEqual((status, headers["connection"]), (400, "close"))
                    self.assertEqual(answers.read(), b"", "what is behind it is not served")

    def test_requests_byte_by_byte(self):
        with Server(ECHO, "0") as server, server.connect() as client, client.makefile("rb") as answers:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n":
                client.sendall(bytes([byte]))
            self.assertEqual(read_response(answers)[::2], (200, b"abcde"))


class Waiting(unittest.TestCase):
    """The handler blocks, and only its fiber waits."""

    # 200 requests that sleep 300 ms each, on two workers.
    def test_sleeping_handlers_overlap(self):
        with Server(WAITING, "0") as server:
            clients = [server.connect() for _ in range(200)]
            watch = Stopwatch()
            for client in clients:
                client.sendall(b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n")
            for client in clients:
                with client.makefile("rb") as answers:
                    self.assertEqual(read_response(answers)[0], 200)
                client.close()
            watch.stop().check(5, "(one after the other it would be 30 s and more)")

    def test_handlers_that_ask_redis(self):
        with tempfile.TemporaryDirectory() as folder, held_port() as held:
            port = held.getsockname()[1]
            redis = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly",
                                      "no", "--dir", folder, "--loglevel", "warning"], stdout=subprocess.DEVNULL)
            try:
                self.wait_for(port)
                with Server(WAITING, "0", str(port)) as server, concurrent.futures.ThreadPoolExecutor(20) as pool:
                    counts = list(pool.map(lambda _: int(run("curl", "-sS", server.url + "/redis")), range(100)))
                self.assertEqual(sorted(counts), list(range(1, 101)))
            finally:
                redis.terminate()
                redis.wait(20)

    def test_no_redis_is_502(self):
        with held_port() as held, Server(WAITING, "0", str(held.getsockname()[1])) as server:
            self.assertEqual(run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", server.url + "/redis"), b"502")

    # What runs is finished, and who waits for a request is sent home.
    def test_end_answers_what_was_asked_and_closes_the_rest(self):
        with Server(WAITING, "0") as server, server.connect() as idle, server.connect() as asking:
            for client in (idle, asking):  # both are served: what is still in the queue of the listener goes with it
                client.sendall(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n")
                with client.makefile("rb") as file:
                    self.assertEqual(read_response(file)[0], 404)
            asking.sendall(b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n")
            server.process.terminate()
            with idle.makefile("rb") as file:
                self.assertEqual(file.read(), b"")
            with asking.makefile("rb") as file:
                status, headers, _ = read_response(file)
                self.assertEqual((status, headers["connection"]), (200, "close"))
                self.assertEqual(file.read(), b"")
            self.assertEqual(server.process.wait(10), 0)

    def wait_for(self, port):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)
        self.fail("redis does not start")


class Proxied(unittest.TestCase):
    def test_everything_through_nginx(self):
        body = os.urandom(900_000)
        with Server(ECHO, "0") as server, Nginx(server) as nginx, tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            for options in ([], ["-H", "Transfer-Encoding: chunked"]):
                back = run("curl", "-sS", "--max-time", "30", "--data-binary", f"@{file.name}", *options, nginx.url + "/")
                self.assertEqual(hashlib.sha256(back).digest(), hashlib.sha256(body).digest())
            self.assertEqual(nginx.errors(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
