#!/usr/bin/python3
"""ttlkv of examples/ beside redis-server: redis-benchmark in alternating runs, and how late keys expire beside others that live on.

The throughput depends on the client as much as on the server, so the server's CPU time of a request stands beside it.
"""

import collections
import contextlib
import csv
import string
import sys
import tempfile
from pathlib import Path

import harness
from harness import goal, ratio_goal, ratio_of

sys.path.append(str(Path(__file__).parent / "ttlkv"))
import expiry  # noqa: E402: it lies in a folder of its own

REDIS = ["/usr/bin/redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning",
         "--notify-keyspace-events", "Ex"]
LOADS = {  # name: (requests at 1 s a run, arguments of redis-benchmark)
    "SET, P1": (60_000, ["-t", "set", "-P", 1]),
    "GET, P1": (60_000, ["-t", "get", "-P", 1]),
    "SET, P16": (400_000, ["-t", "set", "-P", 16]),
    "GET, P16": (400_000, ["-t", "get", "-P", 16]),
    "SET EX, P16, 100k keys": (200_000, ["-P", 16, "-r", 100_000, "SET", "key:__rand_int__", "value", "EX", 100]),
}
OTHERS = (0, 10_000, 100_000, 1_000_000)
IN_ENTRY = 12  # bytes of a key's entry that belong to expiry: the time and the place in the heap


@contextlib.contextmanager
def ttlkv(options, workers, cores):
    port = harness.free_port()
    template = Path(__file__).with_name("ttlkv") / "ttlkv.yml"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "ttlkv.yml").write_text(string.Template(template.read_text()).substitute(port=port, workers=workers))
        with harness.running([options.bin / "ttlkv", "-c", folder], cores, port=port) as server:
            yield server


def redis(cores):
    port = harness.free_port()
    return harness.running([*REDIS, "--port", port], cores, port=port)


def load(server, name, options, cores):
    """One run of redis-benchmark."""
    at_one_second, arguments = LOADS[name]
    requests = max(int(at_one_second * options.seconds), 1000)
    before = server.cpu_ns()
    output = harness.output_of(["/usr/bin/redis-benchmark", "-p", server.port, "-c", 50, "-n", requests, "-q", "--csv", *arguments], cores, 120)
    rows = list(csv.DictReader(output.splitlines()))
    return {"requests_per_s": float(rows[0]["rps"]), "server_cpu_ns_per_request": (server.cpu_ns() - before) / requests,
            "p99_ms": float(rows[0]["p99_latency_ms"])}


def throughput(options):
    """{load: {server: runs}}"""
    both = {options.server_core, options.client_core}
    runs = {name: collections.defaultdict(list) for name in LOADS}
    with ttlkv(options, 1, {options.server_core}) as one, redis({options.server_core}) as theirs, ttlkv(options, 2, both) as two:
        servers = {"ttlkv": one, "redis": theirs, "ttlkv, 2 workers": two}
        for name in LOADS:
            for server in harness.rounds(options.rounds, servers, name):
                runs[name][server].append(load(servers[server], name, options, both if server.endswith("workers") else {options.client_core}))
    return runs


def lags(options):
    """{server: {others: sorted lags}}, and the timer memory of a key by the number of others."""
    result, memory = {}, {}
    others = OTHERS[:2] if options.quick else OTHERS
    for name in ("ttlkv", "redis"):
        with (ttlkv(options, 1, {options.server_core}) if name == "ttlkv" else redis({options.server_core})) as server:
            result[name] = {count: expiry.lag(server.port, count, patience_s=1 if options.quick else 10) for count in others}
            if name == "ttlkv":
                memory = memory_of(server)
            else:
                continue
    return result, memory


def memory_of(server):
    """Bytes that order the volatile keys, of one key."""
    with expiry.Client(server.port) as client:
        info = dict(line.split(":", 1) for line in client.ask("INFO", "expiry").decode().split("\r\n") if ":" in line)
    keys = int(info["volatile_keys"])
    return {"keys": keys, "bytes_of_a_key": int(info["expiry_heap_bytes"]) / max(keys, 1) + IN_ENTRY}


def quantile(values, of, share):
    """None: fewer values are there."""
    index = int(of * share) - 1
    return values[index] if index < len(values) else None


def goals_of(figures):
    result = []
    for name, bound in (("SET, P1", 1.0), ("GET, P1", 1.0), ("SET, P16", 1.0), ("GET, P16", 1.0)):
        runs = figures["throughput"][name]
        result.append(ratio_goal("ttlkv", f"{name}, requests a second / redis-server", ratio_of(runs, "ttlkv", "redis", "requests_per_s"), bound,
                                 "redis-server", ">="))
    for name in ("SET, P16", "GET, P16"):
        runs = figures["throughput"][name]
        result.append(ratio_goal("ttlkv", f"{name}, two workers / redis-server", ratio_of(runs, "ttlkv, 2 workers", "redis", "requests_per_s"), 1.6,
                                 "redis-server", ">="))
    for others, values in figures["lags"]["ttlkv"].items():
        theirs = figures["lags"]["redis"][others]
        result.append(goal("ttlkv", f"p99 of the lag beside {others} keys", quantile(values, 1000, 0.99), "ms", "<=", 5,
                           f"redis-server: {len(theirs) / 10:.0f} % gone in 10 s"))
    result.append(goal("ttlkv", "timer memory of a volatile key", figures["memory"]["bytes_of_a_key"], "B", "<=", 64, "counted"))
    storm = figures["storm"]
    result += [goal("K-4", f"{storm['keys']} keys at once, PING p99, of the server's CPU", storm["p99_cpu_ms"], "ms", "<=", 5,
                    f"by the wall {storm['p99_ms']:.1f}"),
               goal("K-4", "all gone after", storm["gone_ms"] / 1000, "s", "<=", 3, "redis-server is not asked"),
               goal("K-4", "values that a GET still saw", storm["values_seen"], "", "<=", 0, "counted")]
    return result


def main():
    options = harness.parse(harness.parser("ttlkv", __doc__, rounds=5, seconds=1))
    with harness.cores_kept_awake() as awake:
        figures = {"throughput": throughput(options)}
        figures["lags"], figures["memory"] = lags(options)
        with ttlkv(options, 1, {options.server_core}) as server:
            figures["storm"] = expiry.storm(server.port, server.cpu_ns, 20_000 if options.quick else 1_000_000, 2 if options.quick else 45)
    print(f"ttlkv beside redis-server; idle cores {harness.halting(awake)}")
    rows, ratios = [], {}
    for name, runs in figures["throughput"].items():
        for server, values in runs.items():
            middle = harness.medians(values)
            cpu = ratio_of(runs, server, "redis", "server_cpu_ns_per_request")
            rows.append((name, server, middle["requests_per_s"], middle["server_cpu_ns_per_request"], cpu["median"]))
            ratios[f"{name}, CPU of a request, {server} / redis-server"] = cpu
    harness.table(("load", "server", "requests/s", "CPU ns/request", "/ redis"), rows)
    harness.table(("keys that live on", "server", "gone of 1000", "p50 ms", "p99 ms", "last ms"),
                  [(str(others), server, len(values), quantile(values, 1000, 0.5), quantile(values, 1000, 0.99), values[-1] if values else None)
                   for server, by_others in figures["lags"].items() for others, values in by_others.items()])
    goals = goals_of(figures)
    harness.goals_table(goals)
    harness.write(options, "ttlkv", awake, goals, ratios, **figures)
    lines = {f"{server}, {others} others": [(max(lag, 0.1), (i + 1) / 10) for i, lag in enumerate(values)]
             for server, by_others in figures["lags"].items() for others, values in by_others.items() if values}
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": "1000 keys with one deadline, beside keys that live on", "x": "ms after the deadline", "y": "% that a subscriber knows to be gone",
         "lines": lines, "marker": "", "ours": "ttlkv"},
        {"title": "server CPU of a request", "x": "ns", "bars": {f"{row[0]}, {row[1]}": row[3] for row in rows}}])


if __name__ == "__main__":
    main()
