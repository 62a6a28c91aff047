#!/usr/bin/python3
"""Latency of normal requests while one of a hundred takes 5 ms: by a sleep, which others should not feel, or by computing, which
they do on one core. The fiber server beside Go, 100 connections, an echo; README.md tells how to read it.
"""

import contextlib
import json

import harness
from harness import Missing, ratio

SERVERS = {  # name: (title, program and arguments)
    "sylar": ("sylar, usleep", ["bench_slow_echo"]),
    "go": ("Go, time.Sleep", ["bench_go_echo", "--slow"]),
}
SLOW = {"none": "no slow requests", "sleep": "1 % sleep 5 ms", "compute": "1 % compute 5 ms"}
QUANTILES = (0.5, 0.9, 0.99, 0.999)
CONNECTIONS = 100


def load(server, slow, options):
    command = [options.bin / "bench_echo_load", "--port", server.port, "--connections", CONNECTIONS, "--seconds", options.seconds,
               "--slow", slow, "--quantiles", 1]
    return json.loads(harness.output_of(command, {options.client_core}, options.seconds + 60))


def measure(options):
    """({(server, slow): slices}, {server: why it is missing})"""
    slices, missing = {}, {}
    with contextlib.ExitStack() as stack:
        servers = {}
        for name, (_, (program, *arguments)) in SERVERS.items():
            try:
                servers[name] = stack.enter_context(harness.running([options.bin / program, *arguments], {options.server_core}))
            except (Missing, RuntimeError) as problem:
                missing[name] = str(problem)
        for name, slow in harness.rounds(options.rounds, [(name, slow) for name in servers for slow in SLOW]):
            slices.setdefault((name, slow), []).append(load(servers[name], slow, options))
    return slices, missing


def latency(run, quantile):
    """In us: the smallest printed one that so many requests did not exceed."""
    return next((us for q, us in run["quantiles"] if q >= quantile - 1e-6), run["quantiles"][-1][1])


def curve(runs):
    """The middle run, by its p99, as (us, share of the requests that took longer)."""
    middle = sorted(runs, key=lambda run: run["p99_us"])[len(runs) // 2]
    return [(us, 1 - quantile) for quantile, us in middle["quantiles"]]


def main():
    options = harness.parse(harness.parser("latency", __doc__, rounds=5, seconds=1))
    with harness.cores_kept_awake() as awake:
        slices, missing = measure(options)
    print(f"echo, {CONNECTIONS} connections; {options.rounds} rounds, {options.seconds} s a slice; medians; us of requests that are not slow")
    for name, why in missing.items():
        print(f"{SERVERS[name][0]}: {why}")
    rows, ratios = [], {}
    for (name, slow), runs in slices.items():
        against = ratio([latency(run, 0.99) for run in runs], [latency(run, 0.99) for run in slices[name, "none"]])
        rows.append((SERVERS[name][0], SLOW[slow], harness.medians(runs)["requests_per_s"],
                     *(harness.statistics.median(latency(run, quantile) for run in runs) for quantile in QUANTILES), against["median"]))
        if slow != "none":
            ratios[f"{name}: p99 of the others, {SLOW[slow]} / none"] = against
    harness.table(("server", "", "requests/s", *(f"p{100 * quantile:g}" for quantile in QUANTILES), "p99 / without"), rows)
    harness.write(options, "latency", awake, [], ratios, missing=missing,
                  slices=[{"server": name, "slow": slow, "runs": runs} for (name, slow), runs in slices.items()])
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": f"echo, {what}", "x": "us", "y": "share of requests that took longer", "yscale": "log", "marker": "",
         "lines": {SERVERS[name][0]: curve(slices[name, slow]) for name in SERVERS if (name, slow) in slices}} for slow, what in SLOW.items()], columns=3)


if __name__ == "__main__":
    main()
