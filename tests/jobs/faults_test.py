#!/usr/bin/env python3
"""Three replicas run jobs while they are killed and stopped, and while their store, their etcd and the network to the store are away.
No job is lost, and a handler that keeps the rule does each exactly once.

    faults_test.py JOBS RECEIVER redis|postgres [--jobs N] [--seconds N] [--kill N] [--stop N] [--restart 0|1] [--etcd N] [--network N] [--work MS]

--kill: a replica is killed so often, in seconds. --stop: the leader, or another replica if none leads, stands still for so long. --restart: the store is killed and comes back.
--etcd: etcd is away for so long. --network: nothing gets through to the store for so long, then all connections are dropped. 0 is for never. The
defaults are for a test of half a minute.
"""
import argparse
import json
import random
import signal
import sys
import time

from jobs_support import LIMIT, Receiver, Replica, etcd_settings, servers, store_settings

BATCH = 1000


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("receiver")
    parser.add_argument("store", choices=("redis", "postgres"))
    for name, value in ("jobs", 4000), ("seconds", 8), ("kill", 1), ("stop", 4), ("restart", 1), ("etcd", 3), ("network", 2), ("work", 5), ("seed", time.time_ns() % 10**6):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


class Run:
    def __init__(self, asked):
        self.asked = asked
        print(f"seed {asked.seed}", flush=True)
        self.chance = random.Random(asked.seed)
        self.store = servers.redis_that_lasts() if asked.store == "redis" else servers.postgres()
        self.network = servers.proxy(self.store.port)
        self.etcd = servers.etcd()
        self.receiver = Receiver(asked.receiver, asked.work)
        # The replicas hear of jobs only by what the store tells them: they sweep once a day. On a slow machine, too, they run what they
        # claim before the next replica may have it.
        self.settings = {**store_settings(asked.store, self.network), **etcd_settings(self.etcd), "deliver_url": self.receiver.url,
                         "max_claimed": 32, "visibility_ms": 2000, "handler_timeout_ms": 2000,
                         "sweep_ms": 86_400_000, "retry_first_ms": 100, "retry_longest_ms": 1000, "max_attempts": 1000}
        self.replicas = [Replica(asked.program, self.settings) for _ in range(3)]
        self.stopped = None
        self.kills = 0

    def schedule(self, jobs):
        """Through one replica after the other; one that cannot reach the store says so, and is asked again."""
        end = time.monotonic() + LIMIT
        while (status := self.chance.choice(self.replicas).ask("POST", "/jobs", jobs)[0]) != 200:
            assert status == 503 and time.monotonic() < end, status
            time.sleep(0.05)

    def schedule_all(self):
        """Returns when the first of them is due, in seconds since 1970."""
        start = time.time() + 0.5 + self.asked.jobs / 20_000
        for first in range(0, self.asked.jobs, BATCH):
            self.schedule([{"id": f"job:{i}", "at_ms": int((start + self.chance.random() * self.asked.seconds) * 1000), "payload": i}
                           for i in range(first, min(first + BATCH, self.asked.jobs))])
        return start

    def make_trouble(self, start):
        """Until the last job is due."""
        asked, end = self.asked, start + self.asked.seconds
        plan = [(start + i * asked.kill, self.kill) for i in range(1, asked.seconds // asked.kill)] if asked.kill else []
        if asked.stop:
            begin = start + asked.seconds / 8
            plan += [(begin, self.stop), (begin + asked.stop, self.go_on)]
        if asked.restart:
            plan += [(start + asked.seconds * 0.6, self.restart_store)]
        if asked.etcd:
            begin = start + asked.seconds * 0.3
            plan += [(begin, self.etcd.kill), (begin + asked.etcd, self.etcd.start)]
        if asked.network:
            begin = start + asked.seconds * 0.8
            plan += [(begin, self.network.suspend), (begin + asked.network, self.drop_connections)]
        for moment, action in sorted(plan, key=lambda each: each[0]):
            time.sleep(max(0, moment - time.time()))
            action()
        time.sleep(max(0, end - time.time()))

    def kill(self):
        victim = self.chance.choice([each for each in self.replicas if each is not self.stopped])
        victim.kill()
        self.kills += 1
        self.replicas[self.replicas.index(victim)] = Replica(self.asked.program, self.settings)

    def leaders(self):
        """Those that lead, as they know themselves."""
        said = [(each, *each.ask("GET", "/status")) for each in self.replicas]
        return [each for each, status, answer in said if status == 200 and answer["leader"] == answer["replica"]]

    def stop(self):
        self.stopped = self.chance.choice(self.leaders() or self.replicas)
        self.stopped.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.stopped.process.send_signal(signal.SIGCONT)
        self.stopped = None

    def restart_store(self):
        self.store.kill()
        time.sleep(1)
        self.store.start()

    def drop_connections(self):
        self.network.kill()
        self.network.start()

    def left(self):
        """The jobs in the store, or None if it cannot say."""
        status, answer = self.replicas[0].ask("GET", "/status")
        return answer["jobs"] if status == 200 else None

    def await_end(self):
        end = time.monotonic() + 8 * LIMIT
        while (left := self.left()) is None or left["all"] > 0:
            assert time.monotonic() < end, f"lost or stuck: {left}, {self.receiver.result()}"
            time.sleep(0.1)
        return left

    def await_leader(self):
        end = time.monotonic() + LIMIT
        while len(leaders := self.leaders()) != 1:
            assert time.monotonic() < end, f"{len(leaders)} lead"
            time.sleep(0.1)

    def close(self):
        for each in self.replicas:
            each.kill()
        self.receiver.close()
        self.network.close()
        self.etcd.close()
        self.store.close()


def main():
    run = Run(options())
    try:
        run.make_trouble(run.schedule_all())
        left = run.await_end()
        run.await_leader()  # J-9
        result = run.receiver.result()
        print(f"{run.asked.store}, {run.asked.jobs} jobs, {run.kills} kills: {json.dumps(result)}, dead letters: {left['dead']}", flush=True)
        # J-2: none is lost. J-3: each takes effect exactly once.
        assert left["dead"] == 0, "a dead letter"
        assert result["ids"] == run.asked.jobs, "jobs are lost"
        assert result["effects"] == run.asked.jobs, "not exactly once"
        status = [each.end() for each in run.replicas]
        run.replicas = []
        assert status == [0, 0, 0], f"the replicas ended with {status}"
    finally:
        run.close()


if __name__ == "__main__":
    sys.exit(main())
