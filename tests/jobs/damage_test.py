#!/usr/bin/env python3
"""Replicas of jobs on a Redis that loses a key, throws keys away, or is away: what they run, tell and log.

    damage_test.py JOBS RECEIVER
"""
import subprocess
import sys
import time
import unittest
from pathlib import Path

from jobs_support import LIMIT, Receiver, Replica, servers, store_settings

PROGRAM, RECEIVER = sys.argv[1:3]
HOUR = 3_600_000


def until(condition):
    """Waits for something that comes about; a test fails if it does not."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.01)


class Damage(unittest.TestCase):
    def setUp(self):
        self.redis = servers.redis()
        self.addCleanup(self.redis.close)
        self.receiver = Receiver(RECEIVER)
        self.addCleanup(self.receiver.close)

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.redis.port), *words], capture_output=True, text=True, check=True).stdout.strip()

    def replica(self, **settings):
        made = Replica(PROGRAM, {**store_settings("redis", self.redis), "deliver_url": self.receiver.url, **settings})
        self.addCleanup(lambda: made.process.poll() is None and made.kill())
        return made

    def log(self, *replicas):
        return "".join((Path(each.folder.name) / "log").read_text(encoding="utf-8") for each in replicas)

    def ran(self):
        return self.receiver.result()["effects"]

    # J-11
    def test_a_job_whose_data_are_lost_stops_no_other(self):
        replicas = [self.replica(), self.replica()]
        self.assertEqual(replicas[0].ask("POST", "/jobs", [{"id": "lost", "in_ms": 500}, {"id": "far", "in_ms": HOUR}])[0], 200)
        self.cli("DEL", "{jobs}:job:lost", "{jobs}:job:far")
        for i, replica in enumerate(replicas * 5):
            self.assertEqual(replica.ask("PUT", f"/jobs/after{i}", {"in_ms": 500 + i})[0], 200)
        until(lambda: self.ran() == 10)
        here = [each.ask("GET", "/status")[1]["here"] for each in replicas]
        self.assertEqual(sum(each["dropped"] for each in here), 1)
        self.assertEqual(self.log(*replicas).count(" lost\n"), 1, self.log(*replicas))
        self.assertEqual(replicas[0].ask("DELETE", "/jobs/far"), (200, {"id": "far", "state": "waiting"}))
        self.assertEqual(replicas[0].ask("DELETE", "/jobs/far")[0], 404)
        until(lambda: replicas[0].ask("GET", "/status")[1]["jobs"]["all"] == 0)  # the last ones may not be noted as done yet

    # J-11
    def test_a_dead_letter_whose_data_are_lost_ends_no_replica(self):
        replica = self.replica(max_attempts=1, deliver_url="http://127.0.0.1:1/")
        replica.ask("POST", "/jobs", [{"id": "a", "in_ms": 0}, {"id": "b", "in_ms": 0}])
        until(lambda: replica.ask("GET", "/status")[1]["jobs"]["dead"] == 2)
        self.cli("DEL", "{jobs}:job:a")
        self.assertEqual([each["id"] for each in replica.ask("GET", "/dead")[1]], ["b"])
        self.assertEqual(replica.end(), 0)

    # J-11
    def test_jobs_without_a_place_in_the_order_are_found_by_the_sweep(self):
        replica = self.replica(dead_sweep_ms=100)
        replica.ask("POST", "/jobs", [{"id": str(i), "in_ms": 1000 + i} for i in range(10)] + [{"id": "far", "in_ms": HOUR}])
        self.cli("DEL", "{jobs}:due")
        until(lambda: self.ran() == 10)
        until(lambda: replica.ask("GET", "/status")[1]["jobs"]["all"] == 1)
        self.assertEqual(replica.ask("GET", "/status")[1]["here"]["repaired"], 11)

    # J-11
    def test_the_start_warns_of_eviction(self):
        self.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        until(lambda replica=self.replica(): "maxmemory_policy:allkeys-lru" in self.log(replica))
        self.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
        quiet = self.replica()
        quiet.ask("PUT", "/jobs/a", {"in_ms": 0})
        until(lambda: self.ran() == 1)  # it was told of that job, so it listens
        self.assertNotIn("maxmemory", self.log(quiet))

    # J-5
    def test_who_cannot_claim_is_not_ready(self):
        replica = self.replica()
        until(lambda: replica.ask("GET", "/readyz") == (200, {"ready": True}))
        self.redis.kill()
        until(lambda: replica.ask("GET", "/readyz") == (503, {"ready": False}))
        self.redis.start()
        until(lambda: replica.ask("GET", "/readyz") == (200, {"ready": True}))
        self.assertEqual(replica.ask("PUT", "/jobs/a", {"in_ms": 0})[0], 200)
        until(lambda: self.ran() == 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
