#!/usr/bin/python3
"""Sleeps and timers: how late, how many, through a storm, and what a read timeout costs; beside a raw timerfd, a raw epoll_pwait2 and
reads without a timeout, in the same run.
"""

import json

import harness
from harness import goal, ratio, ratio_goal

TIMEOUT_S = 100  # of one program
CPU = "server_cpu_ns_per_request"


def run(options, program, *arguments, cores=None):
    """The lines of JSON that a program of this topic prints."""
    both = {options.server_core, options.client_core}
    output = harness.output_of([options.bin / f"bench_sleep_{program}", *arguments], cores or both, TIMEOUT_S)
    return [json.loads(line) for line in output.splitlines()]


def echo_slice(server, options):
    command = [options.bin / "bench_echo_load", "--port", server.port, "--server-pid", server.pid, "--connections", 100, "--seconds", options.seconds]
    return json.loads(harness.output_of(command, {options.client_core}, TIMEOUT_S))[CPU]


def measure(options):
    figures = {"lateness": []}
    for kind in ("timerfd", "pwait2", "public", "private"):
        figures["lateness"] += run(options, "lateness", kind, "idle")
    for kind in ("public", "private"):
        figures["lateness"] += run(options, "lateness", kind, "yield")
    figures["lateness"] += run(options, "lateness", "public", "compute")
    few = range(max(options.rounds // 3, 1))
    figures["storm"] = [run(options, "storm")[0] for _ in few]
    figures["sleepers"] = [row for _ in few for kind in ("raw", "fibers") for row in run(options, "sleepers", kind, cores={options.server_core})]
    figures["allocations"] = run(options, "timeout_echo", "--count-allocations")[0]
    program, core = options.bin / "bench_sleep_timeout_echo", {options.server_core}
    with harness.running([program, "--timeout", 5], core) as limited, harness.running([program, "--timeout", 0], core) as unlimited:
        figures["echo"] = {"with": [], "without": []}
        for name, server in harness.rounds(options.rounds, {"with": limited, "without": unlimited}.items()):
            figures["echo"][name].append(echo_slice(server, options))
    return figures


def lateness(figures, kind, load):
    return [row for row in figures["lateness"] if row["kind"] == kind and row["load"] == load]


def best(rows, key, better=min):
    return better(row[key] for row in rows)


def goals_of(figures):
    result = []
    raw = {"public": "timerfd", "private": "pwait2"}
    for kind in raw:
        ours, theirs = lateness(figures, kind, "idle"), lateness(figures, raw[kind], "idle")
        for key, bound in (("p50_us", 100), ("p99_us", 500)):
            result.append(goal("TG-7", f"{kind}, 1 ms to 3 s, worst {key[:3]} of a length", max(row[key] for row in ours), "us", "<=", bound,
                               f"raw {raw[kind]} {max(row[key] for row in theirs):.1f}"))
        everything = [row for row in figures["lateness"] if row["kind"] == kind]
        result.append(goal("TG-7", f"{kind}, early, of {sum(row['n'] for row in everything)}", sum(row["early"] for row in everything), "", "<=", 0, "counted"))
    storm = figures["storm"]
    result += [
        goal("TG-6", "1 M due at once, longest a request waited for the worker's CPU", best([r["gaps"] for r in storm], "max_us") / 1e3, "ms", "<=", 2,
             f"by the wall {best([r['during'] for r in storm], 'max_us') / 1e3:.2f}"),
        goal("C-46", "echo round trip during it, p99", best([r["during"] for r in storm], "p99_us") / 1e3, "ms", "<=", 5,
             f"before it {best([r['before'] for r in storm], 'p99_us') / 1e3:.3f}"),
        goal("C-46", "timers that did not run exactly once", max(abs(r["timers"] - r["ran"]) for r in storm), "", "<=", 0, "counted")]
    for load, id in (("yield", "C-47"), ("compute", "C-49")):
        row = next(r for r in lateness(figures, "public", load) if r["ms"] == 10)
        result.append(goal(id, f"10 ms timer, {load}, max of {row['n']}", row["max_us"] / 1e3, "ms", "<=", 5, f"p99 {row['p99_us'] / 1e3:.2f}"))
    ours, theirs = ([row for row in figures["sleepers"] if row["kind"] == kind] for kind in ("fibers", "raw"))
    echo = figures["echo"]
    return result + [
        goal("P-11", "10 000 sleepers, wake-ups of the possible", best(ours, "achieved", max), "", ">=", 0.99, f"raw {best(theirs, 'achieved', max):.4f}"),
        goal("P-11", "their lateness, p99", best(ours, "p99_us") / 1e3, "ms", "<=", 0.25, f"raw {best(theirs, 'p99_us') / 1e3:.3f}"),
        goal("P-11", "CPU of the core, at 1 M wake-ups a second", best(ours, "cpu_ns_per_wake") / 1e3, "", "<=", 0.38,
             f"raw {best(theirs, 'cpu_ns_per_wake') / 1e3:.2f}"),
        ratio_goal("P-15", "echo with SO_RCVTIMEO / without, CPU per request (TG-8)", ratio(echo["with"], echo["without"]), 1.03, "without"),
        goal("TG-8", f"allocations of {figures['allocations']['reads']} reads with a timeout", figures["allocations"]["allocations"], "", "<=", 0, "counted")]


def main():
    options = harness.parse(harness.parser("sleep", __doc__, seconds=1))
    with harness.cores_kept_awake() as awake:
        figures = measure(options)
    print(f"sleeps; idle cores {harness.halting(awake)}")
    harness.table(("sleep", "beside", "ms", "n", "early", "p50 us", "p99 us", "max us"),
                  [tuple(row[key] for key in ("kind", "load", "ms", "n", "early", "p50_us", "p99_us", "max_us")) for row in figures["lateness"]])
    goals = goals_of(figures)
    harness.goals_table(goals)
    ratios = {}
    for kind, raw in (("public", "timerfd"), ("private", "pwait2")):
        for ours, theirs in zip(lateness(figures, kind, "idle"), lateness(figures, raw, "idle")):
            ratios[f"lateness p50, {kind}, {ours['ms']} ms / raw {raw}"] = ratio([ours["p50_us"]], [theirs["p50_us"]])
    wakes = {kind: [row["cpu_ns_per_wake"] for row in figures["sleepers"] if row["kind"] == kind] for kind in ("fibers", "raw")}
    ratios["10 000 sleepers, CPU of a wake-up / raw"] = ratio(wakes["fibers"], wakes["raw"])
    ratios["echo with SO_RCVTIMEO / without"] = ratio(figures["echo"]["with"], figures["echo"]["without"])
    harness.write(options, "sleep", awake, goals, ratios, **figures)
    lines = {f"{kind}, {quantile}": [(row["ms"], row[quantile + "_us"]) for row in lateness(figures, kind, "idle")]
             for kind in ("timerfd", "public", "pwait2", "private") for quantile in ("p50", "p99")}
    harness.plot(options.out.with_suffix(".svg"), [{"title": "a sleeping fiber, idle worker", "x": "ms to sleep", "y": "us late", "lines": lines}])


if __name__ == "__main__":
    main()
