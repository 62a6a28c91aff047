#!/usr/bin/env python3
"""Sleeps and timers: how late, how many, through a storm, and what a read timeout costs. README.md tells how to read the output.

Each measurement stands beside a yardstick of the same run. With --goals one line a goal: id, value, goal, met or not met, yardstick.
"""
import argparse
import contextlib
import json
import os
import platform
import re
import select
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import cores_kept_awake  # noqa: E402: found by the line above

LIMIT_S = 100  # for one program


def pinned(core):
    return None if core is None else lambda: os.sched_setaffinity(0, {core})


def run(options, program, *arguments, core=None):
    """The lines of JSON that a program of this topic prints."""
    command = [options.bin / f"bench_sleep_{program}", *map(str, arguments)]
    result = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=LIMIT_S, preexec_fn=pinned(core))
    return [json.loads(line) for line in result.stdout.splitlines()]


@contextlib.contextmanager
def echo_server(options, timeout):
    command = [options.bin / "bench_sleep_timeout_echo", "--timeout", str(timeout)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(options.server_core))
    try:
        ready, _, _ = select.select([process.stdout], [], [], 10)
        match = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stdout.readline() if ready else "")
        if not match:
            raise RuntimeError("the echo server did not start")
        yield process.pid, int(match[1])
    finally:
        process.terminate()
        process.wait(10)


def echo_slice(options, pid, port):
    command = [options.bin / "bench_echo_load", "--port", str(port), "--server-pid", str(pid), "--connections", "100"]
    command += ["--seconds", "1", "--warmup", "0.2"]
    result = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=LIMIT_S,
                            preexec_fn=pinned(options.client_core))
    return json.loads(result.stdout)["server_cpu_ns_per_request"]


def measure(options):
    figures = {"lateness": []}
    for kind in ("timerfd", "pwait2", "public", "private"):
        figures["lateness"] += run(options, "lateness", kind, "idle")
    for kind in ("public", "private"):
        figures["lateness"] += run(options, "lateness", kind, "yield")
    figures["lateness"] += run(options, "lateness", "public", "compute")
    figures["storm"] = [run(options, "storm")[0] for _ in range(options.rounds // 3)]
    figures["sleepers"] = []
    for _ in range(options.rounds // 3):
        figures["sleepers"] += run(options, "sleepers", "raw", core=options.server_core)
        figures["sleepers"] += run(options, "sleepers", "fibers", core=options.server_core)
    figures["allocations"] = run(options, "timeout_echo", "--count-allocations")[0]
    with echo_server(options, 5) as with_timeout, echo_server(options, 0) as without:
        figures["echo"] = []
        for number in range(options.rounds):
            pair = [("with", with_timeout), ("without", without)]
            figures["echo"].append({name: echo_slice(options, *server) for name, server in pair[::-1 if number % 2 else 1]})
    return figures


def lateness(figures, kind, load):
    return [row for row in figures["lateness"] if row["kind"] == kind and row["load"] == load]


def best(rows, key, better=min):
    return better(row[key] for row in rows)


def goals(figures):
    """(id, what, value, goal, whether it is met, yardstick)."""
    out = []

    def add(name, what, value, goal, unit, yardstick="", at_least=False):
        met = value >= goal if at_least else value <= goal
        out.append({"id": name, "what": what, "value": round(value, 4), "unit": unit, "goal": f"{'>=' if at_least else '<='} {goal}", "met": met,
                    "yardstick": yardstick})

    raw = {"public": "timerfd", "private": "pwait2"}
    for kind in ("public", "private"):
        ours, theirs = lateness(figures, kind, "idle"), lateness(figures, raw[kind], "idle")
        for key, goal in (("p50_us", 100), ("p99_us", 500)):
            add("TG-7", f"{kind}, 1 ms to 3 s, worst {key[:3]} of a length", max(row[key] for row in ours), goal, "us",
                f"raw {raw[kind]} {max(row[key] for row in theirs):.1f}")
        everything = [row for row in figures["lateness"] if row["kind"] == kind]
        add("TG-7", f"{kind}, early, of {sum(row['n'] for row in everything)}", sum(row["early"] for row in everything), 0, "")
    storm = figures["storm"]
    add("TG-6", "1 M due at once, longest a request waited for the worker's CPU", best([r["gaps"] for r in storm], "max_us") / 1e3, 2,
        "ms", f"by the wall {best([r['during'] for r in storm], 'max_us') / 1e3:.2f}")
    add("C-46", "echo round trip during it, p99", best([r["during"] for r in storm], "p99_us") / 1e3, 5, "ms",
        f"before {best([r['before'] for r in storm], 'p99_us') / 1e3:.3f}")
    add("C-46", "timers that did not run exactly once", max(abs(r["timers"] - r["ran"]) for r in storm), 0, "")
    for load, name in (("yield", "C-47"), ("compute", "C-49")):
        row = next(r for r in lateness(figures, "public", load) if r["ms"] == 10)
        add(name, f"10 ms timer, {load}, max of {row['n']}", row["max_us"] / 1e3, 5, "ms", f"p99 {row['p99_us'] / 1e3:.2f}")
    ours = [row for row in figures["sleepers"] if row["kind"] == "fibers"]
    theirs = [row for row in figures["sleepers"] if row["kind"] == "raw"]
    add("P-11", "10 000 sleepers, wake-ups of the possible", best(ours, "achieved", max), 0.99, "",
        f"raw {best(theirs, 'achieved', max):.4f}", at_least=True)
    add("P-11", "their lateness, p99", best(ours, "p99_us") / 1e3, 0.25, "ms", f"raw {best(theirs, 'p99_us') / 1e3:.3f}")
    ns = best(ours, "cpu_ns_per_wake")
    add("P-11", "CPU of the core, at 1 M wake-ups a second", ns / 1e3, 0.38, "", f"raw {best(theirs, 'cpu_ns_per_wake') / 1e3:.2f}")
    ratio = statistics.median(row["with"] / row["without"] for row in figures["echo"])
    without = statistics.median(row["without"] for row in figures["echo"])
    add("P-15", "echo with SO_RCVTIMEO / without, CPU per request (TG-8)", ratio, 1.03, "", f"without {without:.0f} ns")
    add("TG-8", f"allocations of {figures['allocations']['reads']} reads with a timeout", figures["allocations"]["allocations"], 0, "")
    return out


def print_lateness(figures):
    print(f"{'kind':>8} {'load':>8} {'ms':>5} {'n':>5} {'early':>5} {'p50 us':>8} {'p99 us':>8} {'max us':>9}")
    for row in figures["lateness"]:
        print(f"{row['kind']:>8} {row['load']:>8} {row['ms']:5} {row['n']:5} {row['early']:5} {row['p50_us']:8.1f} "
              f"{row['p99_us']:8.1f} {row['max_us']:9.1f}")


def print_goals(rows):
    for row in rows:
        yardstick = f"  ({row['yardstick']})" if row["yardstick"] else ""
        print(f"{row['id']:5} {row['what']:66} {row['value']:>10.4g} {row['goal']} {row['unit']:2} "
              f"{'met' if row['met'] else 'not met'}{yardstick}")


def main():
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--bin", type=Path, default="build/release/bin", help="where the programs are")
    parser.add_argument("--out", type=Path, default="bench/results/sleep.json", help="the file for the figures")
    parser.add_argument("--rounds", type=int, default=9, help="slices of each echo server; a third as many of the others")
    parser.add_argument("--server-core", type=int, default=cores[0], help="core of the servers and sleepers")
    parser.add_argument("--client-core", type=int, default=cores[-1], help="core of the client")
    parser.add_argument("--goals", action="store_true", help="only one line a goal")
    options = parser.parse_args()
    with cores_kept_awake() as awake:
        figures = measure(options)
    rows = goals(figures)
    if not options.goals:
        print("idle cores " + ("kept from halting" if awake else "MAY HALT: expect lateness that is the machine's") + "\n")
        print_lateness(figures)
        print()
    print_goals(rows)
    load = os.getloadavg()[0]
    if load > len(cores):
        print(f"the machine was busy (load {load:.1f} on {len(cores)} cores): lateness and gaps by the wall are not the library's")
    result = {"topic": "sleep", "machine": {"kernel": platform.release(), "cores": os.cpu_count(), "kept_awake": awake, "load": load},
              "goals": rows, **figures}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
