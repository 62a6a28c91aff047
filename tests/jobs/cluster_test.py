#!/usr/bin/env python3
"""scripts/run-cluster.sh with real parts: replicas, Redis, HAProxy, and wrk in front of it.

    cluster_test.py JOBS
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack
from pathlib import Path

from jobs_support import LIMIT, request

PROGRAM = sys.argv[1]
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "run-cluster.sh"
PUTS = """
local id = 0
function request()
  id = id + 1
  return wrk.format("PUT", "/jobs/" .. id, {["Content-Type"] = "application/json"}, '{"in_ms": 3600000}')
end
"""


def seven_ports():
    """The first of seven free ports, below those that the kernel gives away."""
    while True:
        first = random.randrange(10_000, 30_000)
        with ExitStack() as stack:
            try:
                for port in range(first, first + 7):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first


class Cluster(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.port = seven_ports()
        self.environment = os.environ | {"SYLAR_JOBS": PROGRAM, "SYLAR_CLUSTER_PORT": str(self.port), "SYLAR_CLUSTER_FOLDER": str(self.folder)}
        self.cluster = subprocess.Popen([SCRIPT], env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        for line in self.cluster.stdout:
            if line.startswith("The cluster runs"):
                return
        self.fail("the cluster did not start")

    def end(self):
        self.cluster.send_signal(signal.SIGTERM)
        self.cluster.communicate(timeout=LIMIT)

    def run_script(self, option):
        return subprocess.run([SCRIPT, option], env=self.environment, check=True, capture_output=True, text=True, timeout=10 * LIMIT).stdout

    # J-8
    def test_a_rolling_restart_fails_no_request(self):
        puts = self.folder / "puts.lua"
        puts.write_text(PUTS)
        load = subprocess.Popen(["wrk", "-t1", "-c20", "-d600", "--timeout", f"{LIMIT}s", "-s", puts, f"http://127.0.0.1:{self.port}"],
                                stdout=subprocess.PIPE, text=True)
        self.addCleanup(load.kill)
        before = [int((self.folder / f"{each}.pid").read_text()) for each in (1, 2, 3)]
        while request(self.port, "GET", "/status")[1]["jobs"]["all"] == 0:
            time.sleep(0.01)
        self.run_script("--roll")
        load.send_signal(signal.SIGINT)
        report, _ = load.communicate(timeout=LIMIT)
        self.assertNotIn("Socket errors", report)
        self.assertNotIn("Non-2xx", report)
        answered = int(re.search(r"(\d+) requests in", report)[1])
        after = [int((self.folder / f"{each}.pid").read_text()) for each in (1, 2, 3)]
        self.assertFalse(set(before) & set(after))
        self.assertGreaterEqual(request(self.port, "GET", "/status")[1]["jobs"]["all"], answered)
        print(f"{answered} requests, none failed")

    # J-9
    def test_a_replica_leads_and_again_one_does_when_it_is_killed(self):
        def elections():
            """(token, replica) of each."""
            logs = ((each, (self.folder / f"{each}.log").read_text(encoding="utf-8")) for each in (1, 2, 3))
            return sorted((int(token), each) for each, log in logs for token in re.findall(r"leads, with the token (\d+)", log))
        while not (first := elections()):
            time.sleep(0.1)
        os.kill(int((self.folder / f"{first[0][1]}.pid").read_text()), signal.SIGKILL)
        while len(elections()) == len(first):
            time.sleep(0.1)
        while request(self.port, "GET", "/status")[1]["leader"] != f"r{elections()[-1][1]}":
            time.sleep(0.1)

    def test_a_second_cluster_on_the_same_ports_is_refused(self):
        second = subprocess.run([SCRIPT], env=self.environment, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"port {self.port} is in use", second.stderr)
        self.assertEqual(request(self.port, "GET", "/readyz")[0], 200)

    # J-1
    def test_no_job_is_lost_though_replicas_are_killed(self):
        self.environment["SYLAR_CLUSTER_SECONDS"] = "5"
        said = self.run_script("--kill")
        killed, jobs, lost = map(int, re.search(r"(\d+) replicas were killed; of (\d+) jobs (\d+) were lost", said).groups())
        self.assertGreaterEqual(killed, 1)
        self.assertGreaterEqual(jobs, 100)
        self.assertEqual(lost, 0)
        print(said.strip())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
