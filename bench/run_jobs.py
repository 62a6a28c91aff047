#!/usr/bin/python3
"""Measures examples/jobs with three replicas on one store.

    run_jobs.py BIN redis|postgres lateness [--jobs N] [--seconds N]   how late jobs reach what they are delivered to, beside a worker
                                                                       that polls redis ten times a second in the same run
    run_jobs.py BIN redis|postgres idle [--jobs N] [--seconds N]       how many commands the store gets while all jobs are far away
    run_jobs.py BIN redis|postgres limit [--jobs N]                    how many jobs a second the store takes, and gives away and sees ended

BIN is the folder of the programs, such as build/release/bin.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import redis

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/jobs"))
from jobs_support import Receiver, Replica, servers, store_settings  # noqa: E402

BATCH = 1000
POLL = 0.1  # seconds between two looks of the worker that polls


class Poller:
    """Looks for what is due, and sleeps, as a cron job or a simple worker does."""

    def __init__(self, deadlines):
        self.server = servers.redis()
        self.client = redis.Redis(port=self.server.port)
        for first in range(0, len(deadlines), BATCH):
            self.client.zadd("due", {str(first + i): each for i, each in enumerate(deadlines[first:first + BATCH])})
        self.lags = []
        self.thread = threading.Thread(target=self.run, args=(len(deadlines),))
        self.thread.start()

    def run(self, count):
        while len(self.lags) < count:
            now = time.time() * 1000
            due = self.client.zrangebyscore("due", 0, now, withscores=True)
            if due:
                self.client.zrem("due", *(each for each, _ in due))
            self.lags += [time.time() * 1000 - score for _, score in due]
            time.sleep(POLL)

    def close(self):
        self.thread.join()
        self.server.close()


def quantiles(lags):
    lags = sorted(lags)
    return {"p50": lags[len(lags) // 2], "p99": lags[len(lags) * 99 // 100], "max": lags[-1]}


def cpu_ms(process):
    """The CPU time of a process and its children, so far, those that have ended too."""
    children = [int(each) for path in Path(f"/proc/{process}/task").glob("*/children") for each in path.read_text().split()]
    ticks = 0
    for each, fields in (process, slice(11, 15)), *((child, slice(11, 13)) for child in children):
        try:
            ticks += sum(map(int, Path(f"/proc/{each}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[fields]))
        except FileNotFoundError:  # it has ended since
            pass
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def schedule(replicas, jobs):
    for first in range(0, len(jobs), BATCH):
        status, answer = replicas[first // BATCH % len(replicas)].ask("POST", "/jobs", jobs[first:first + BATCH])
        assert status == 200, answer


def lateness(asked, replicas, receiver, store):
    start = time.time() + 3 + asked.jobs / 10_000
    deadlines = [int((start + random.random() * asked.seconds) * 1000) for _ in range(asked.jobs)]
    schedule(replicas, [{"id": f"job:{i}", "at_ms": each} for i, each in enumerate(deadlines)])
    poller = Poller(deadlines)
    processes = {"replicas": [each.process.pid for each in replicas], "receiver": [receiver.process.pid], "store": [store.process.pid]}
    before = {name: sum(map(cpu_ms, pids)) for name, pids in processes.items()}
    poller.close()
    while (result := receiver.result())["ids"] < asked.jobs:
        time.sleep(0.1)
    return {"lag_ms": result["lag_ms"], "lag_ms of the worker that polls": quantiles(poller.lags),
            "deliveries": result["deliveries"],
            "cpu_us of a job": {name: round((sum(map(cpu_ms, pids)) - before[name]) * 1000 / asked.jobs) for name, pids in processes.items()},
            "replicas": [each.ask("GET", "/status")[1]["here"]["lag_ms"] for each in replicas]}


def commands(asked, store):
    """How many the store has got so far from clients: calls of functions, or statements."""
    if asked.store == "redis":
        stats = redis.Redis(port=store.port).info("commandstats")
        return sum(stats[f"cmdstat_{name}"]["calls"] for name in ("fcall", "ping", "subscribe") if f"cmdstat_{name}" in stats)
    log = (Path(store.folder) / "log").read_text(encoding="utf-8")
    return log.count(" LOG:  execute ") + log.count(" LOG:  statement: ")


def idle(asked, replicas, _, store):
    hour = 3_600_000
    schedule(replicas, [{"id": f"far:{i}", "in_ms": 24 * hour + i} for i in range(asked.jobs)])
    time.sleep(5)
    before = commands(asked, store)
    time.sleep(asked.seconds)
    sent = commands(asked, store) - before
    return {"jobs": replicas[0].ask("GET", "/status")[1]["jobs"]["all"], "seconds": asked.seconds, "commands": sent}


def limit(asked, store):
    """By the size of a claim. The store has what its one user, in a process of one thread, leaves of two cores."""
    where = str(store.port) if asked.store == "redis" else store_settings("postgres", store)["postgres"]
    found = {}
    for batch in 1, 16, 256:
        jobs = asked.jobs if batch > 1 else asked.jobs // 10
        before, begun = cpu_ms(store.process.pid), time.monotonic()
        done = subprocess.run([asked.bin / "bench_jobs_store", asked.store, where, str(jobs), "8", str(batch)], check=True, capture_output=True, text=True)
        found[f"claims of {batch}"] = {**json.loads(done.stdout), "cores of the store": round((cpu_ms(store.process.pid) - before) / 1000 / (time.monotonic() - begun), 2)}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=Path)
    parser.add_argument("store", choices=("redis", "postgres"))
    parser.add_argument("what", choices=("lateness", "idle", "limit"))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seconds", type=int)
    asked = parser.parse_args()
    asked.jobs = asked.jobs or {"lateness": 60_000, "idle": 1_000_000, "limit": 200_000}[asked.what]
    asked.seconds = asked.seconds or (30 if asked.what == "lateness" else 240)
    log = ["-c", "log_statement=all"] if asked.what == "idle" else []
    store = servers.redis_that_lasts() if asked.store == "redis" else servers.postgres(*log)
    if asked.what == "limit":
        try:
            print(json.dumps({asked.store: limit(asked, store)}, indent=2))
        finally:
            store.close()
        return
    receiver = Receiver(asked.bin / "jobs_receiver")
    replicas = []
    try:
        replicas += [Replica(asked.bin / "jobs", {**store_settings(asked.store, store), "deliver_url": receiver.url}) for _ in range(3)]
        print(json.dumps({asked.store: globals()[asked.what](asked, replicas, receiver, store)}, indent=2))
    finally:
        for each in replicas:
            each.kill()
        receiver.close()
        store.close()


if __name__ == "__main__":
    main()
