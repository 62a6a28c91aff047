#!/usr/bin/env python3
"""The HTTP interface of jobs, with the store in memory: what it does, what it refuses, and how a replica ends.

    api_test.py JOBS RECEIVER
"""
import http.server
import sys
import threading
import time
import unittest
import urllib.request

from jobs_support import Receiver, Replica

PROGRAM, RECEIVER = sys.argv[1:3]
HOUR = 3_600_000


def until(condition):
    """Waits for something that comes about; the limit of the test ends it else."""
    while not condition():
        time.sleep(0.01)


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers 500 until it is told not to."""

    answer = 500

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.answer)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Api(unittest.TestCase):
    def replica(self, **settings):
        made = Replica(PROGRAM, settings)
        self.addCleanup(lambda: made.process.poll() is None and made.kill())
        return made

    def test_jobs_run_and_are_cancelled(self):
        receiver = Receiver(RECEIVER)
        self.addCleanup(receiver.close)
        replica = self.replica(deliver_url=receiver.url)
        self.assertEqual(replica.ask("PUT", "/jobs/a%2Fb", {"in_ms": 0, "payload": {"x": 1}}), (200, {"id": "a/b"}))
        self.assertEqual(replica.ask("PUT", "/jobs/later", {"in_ms": HOUR})[0], 200)
        self.assertEqual(replica.ask("POST", "/jobs", [{"id": "c", "at_ms": 1}, {"id": "d", "every_ms": HOUR}]), (200, {"jobs": 2}))
        until(lambda: receiver.result()["effects"] == 2)
        until(lambda: replica.ask("GET", "/status")[1]["here"]["done"] == 2)
        self.assertEqual(replica.ask("GET", "/status")[1]["jobs"], {"all": 2, "late": 0, "dead": 0})
        self.assertEqual(replica.ask("DELETE", "/jobs/later"), (200, {"id": "later", "state": "waiting"}))
        self.assertEqual(replica.ask("DELETE", "/jobs/later")[0], 404)
        self.assertEqual(replica.ask("DELETE", "/jobs/d")[0], 200)
        self.assertEqual(replica.ask("GET", "/status")[1]["jobs"]["all"], 0)
        self.assertEqual(replica.end(), 0)

    # J-7
    def test_what_is_wrong_is_refused_with_the_reason(self):
        replica = self.replica()
        for method, path, body, status in (
                ("PUT", "/jobs/a", {}, 400), ("PUT", "/jobs/a", {"in_ms": -1}, 400), ("PUT", "/jobs/", {"in_ms": 1}, 400),
                ("PUT", "/jobs/%20", {"in_ms": 1}, 400), ("PUT", "/jobs/%zz", {"in_ms": 1}, 400), ("PUT", "/jobs/a", None, 400),
                ("POST", "/jobs", [], 400), ("POST", "/jobs", [{"id": "a", "in_ms": 1}] * 2, 400),
                ("POST", "/jobs", [{"id": str(i), "in_ms": HOUR} for i in range(1001)], 400),
                ("POST", "/jobs", [{"id": "a", "in_ms": HOUR}, {"id": "b", "in_ms": "soon"}], 400),
                ("GET", "/dead?limit=0", None, 400), ("GET", "/dead?limit=x", None, 400), ("POST", "/dead/a", None, 400),
                ("POST", "/dead/a/retry", None, 404), ("DELETE", "/jobs/a", None, 404)):
            got, answer = replica.ask(method, path, body)
            self.assertEqual(got, status, (method, path, body, answer))
            self.assertRegex(answer["error"], r"\w+ \w+ \w+")
        self.assertEqual(replica.ask("GET", "/status")[1]["jobs"]["all"], 0)
        self.assertEqual(replica.end(), 0)

    # J-4
    def test_dead_letters_are_listed_and_retried(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        replica = self.replica(deliver_url=f"http://127.0.0.1:{server.server_port}/", max_attempts=3, retry_first_ms=1)
        replica.ask("PUT", "/jobs/a", {"at_ms": 5000, "payload": [1, 2]})
        until(lambda: replica.ask("GET", "/dead")[1])
        self.assertEqual(replica.ask("GET", "/dead?limit=1")[1], [
            {"id": "a", "payload": [1, 2], "due_ms": 5000, "attempts": 3, "error": "the handler answered 500"}])
        Refusing.answer = 204
        self.assertEqual(replica.ask("POST", "/dead/a/retry"), (200, {"id": "a"}))
        until(lambda: replica.ask("GET", "/status")[1]["here"]["done"] == 1)
        self.assertEqual(replica.ask("GET", "/dead")[1], [])
        here = replica.ask("GET", "/status")[1]["here"]
        self.assertEqual((here["failed"], here["buried"]), (3, 1))
        self.assertEqual(replica.end(), 0)

    # J-5
    def test_a_replica_that_drains_is_not_ready_and_claims_nothing(self):
        replica = self.replica()
        self.assertEqual(replica.ask("GET", "/readyz"), (200, {"ready": True}))
        self.assertEqual(replica.ask("POST", "/drain")[0], 200)
        self.assertEqual(replica.ask("GET", "/readyz"), (503, {"ready": False}))
        self.assertEqual(replica.ask("GET", "/healthz"), (200, {"alive": True}))
        self.assertEqual(replica.ask("PUT", "/jobs/a", {"in_ms": 0})[0], 200, "the store takes it, for other replicas")
        self.assertEqual(replica.ask("GET", "/status")[1]["here"]["claimed"], 0)
        self.assertEqual(replica.end(), 0)

    def test_the_page_shows_what_the_status_says(self):
        replica = self.replica(replica="<one>")
        with urllib.request.urlopen(f"http://127.0.0.1:{replica.port}/") as answer:
            page = answer.read().decode()
            self.assertEqual(answer.headers["content-type"], "text/html; charset=utf-8")
        for text in "<th>in memory<th>all<th>late<th>dead\n<tr><th><td>0<td>0", "<th>lag p99, ms", "<tr><th>&lt;one><td>0<td>0", "This page is by &lt;one>":
            self.assertIn(text, page)
        status = replica.ask("GET", "/status")[1]
        self.assertEqual((status["leader"], [each["name"] for each in status["replicas"]]), (None, ["<one>"]))
        self.assertEqual(replica.end(), 0)

    def test_a_store_that_is_away_is_503(self):
        replica = self.replica(store="redis", redis={"host": "127.0.0.1", "port": 1})
        status, answer = replica.ask("PUT", "/jobs/a", {"in_ms": 1})
        self.assertEqual((status, answer), (503, {"error": "the store cannot be reached; ask again"}))
        self.assertEqual(replica.ask("GET", "/healthz")[0], 200)
        self.assertEqual(replica.end(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
