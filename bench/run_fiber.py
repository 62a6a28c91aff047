#!/usr/bin/python3
"""What fibers cost: switches, spawning, wake-ups, a million at once, and what a second worker brings; beside fcontext by hand,
Boost.Fiber and Go.

Each figure is a run of a program of its own; runs alternate, and ratios are taken inside a round. bench/fiber/sylar_fibers.cc says
what the cases do.
"""

import collections
import json

import harness
from harness import Missing, goal, ratio, ratio_goal

OWN = "sylar, own"  # each fiber a thread to libraries; "sylar" are fibers that run as their worker
PROGRAMS = {"sylar": "bench_sylar_fibers", OWN: "bench_sylar_fibers", "fcontext": "bench_fcontext", "futex": "bench_futex_wake",
            "Boost.Fiber": "bench_boost_fibers", "Go": "bench_go_fibers"}
ALL = ["sylar", OWN, "Boost.Fiber", "Go"]
CASES = {  # case: (what is counted, operations of a run, programs)
    "yield": ("yield, one way", 2_000_000, ["sylar", OWN, "fcontext", "Boost.Fiber", "Go"]),
    "spawn": ("spawn, run, join", 1_000_000, ["sylar", OWN, "fcontext", "Boost.Fiber", "Go"]),
    "spawn-many": ("spawn 10 000, join all", 500_000, ALL),
    "chain": ("chained spawn", 1_000_000, ALL),
    "yield-many": ("yield, 1 000 fibers", 2_000_000, ALL),
    "skynet": ("skynet, a leaf of 1 000 000, stacks of 16 KiB", 1_000_000, ALL),
    "pairs": ("message between two fibers", 500_000, ALL),
    "wake": ("message to another worker, which sleeps", 20_000, ["sylar", "futex", "Go"]),
    "wake-busy": ("message to another worker, both busy", 50_000, ["sylar", "Go"]),
}
PARALLEL = {  # case: (what is counted, operations of a run, programs, goal, goal's id)
    "tree": ("fork and join, 2 us in a leaf", 100_000, ["sylar", "Go"], 1.8, "P-12"),
    "timers": ("timer armed and stopped", 2_000_000, ["sylar", "Go"], 1.8, "P-12"),
    "pairs": ("messages within each worker", 500_000, ["sylar", "Go"], 1.8, "P-12"),
    "sockets": ("echo over socketpairs within each worker", 100_000, ["sylar"], 1.7, "P-17"),
}
OVER_OTHERS = [  # goal's id, case, workers, beside which, at most
    ("P-7", "spawn-many", 0, "Go", 0.5),
    ("P-12", "tree", 1, "Go", 1),
    ("P-12", "tree", 2, "Go", 1),
    ("P-12", "wake", 0, "futex", 1.2),
    ("P-12", "wake-busy", 0, "Go", 2),
    ("P-12", "timers", 1, "Go", 0.5),
]
OVER_WORKER = [("P-6o", "yield", 1.6), ("P-7o", "spawn", 1.3)]  # goal's id, case, own fibers beside those of the worker, at most
LIVE = {"sylar": 1_000_000, OWN: 100_000, "Boost.Fiber": 100_000, "Go": 1_000_000}
TIMEOUT_S = 300
# A run keeps several cores busy only where it says so; there the wall counts, elsewhere the CPU time of all threads.
WALL = {"wake", "wake-busy"}


def run(options, program, case, operations, workers, cores):
    if options.quick:
        operations = max(operations // 10, 10_000)
    command = [options.bin / PROGRAMS[program], case, operations]
    if program in ("sylar", OWN, "Go"):
        command.append(workers)
    if program == OWN:
        command.append("own")
    return json.loads(harness.output_of(command, cores, TIMEOUT_S))


def measure(options):
    """({(case, workers, program): [ns of an operation]}, {program: bytes of a live fiber}, {program: why it is missing})"""
    one, both = {options.server_core}, {options.server_core, options.client_core}
    plan = [(case, 0, program) for case, (_, _, programs) in CASES.items() for program in programs]
    plan += [(case, workers, program) for case, (_, _, programs, _, _) in PARALLEL.items() for workers in (1, 2) for program in programs]
    if options.goals:
        beside = {(case, workers, program) for _, case, workers, other, _ in OVER_OTHERS for program in ("sylar", other)}
        plan = [(case, workers, program) for case, workers, program in plan
                if (case, workers, program) in beside or (program in ("sylar", OWN, "fcontext") and case in ("yield", "spawn"))
                or (program == "sylar" and workers > 0)]
    figures, missing = collections.defaultdict(list), {}
    for case, workers, program in harness.rounds(options.rounds, plan):
        operations = (PARALLEL if workers else CASES)[case][1]
        alone = workers == 0 and case not in WALL
        try:
            result = run(options, program, case, operations, workers or (1 if alone else 2), one if alone else both)
            figures[case, workers, program].append(result["cpu_ns" if alone else "ns"])
        except (Missing, RuntimeError) as problem:
            missing[program] = str(problem)
    memory = {}
    for program, fibers in LIVE.items():
        try:
            if program in ("sylar", OWN) or not options.goals:
                memory[program] = run(options, program, "live", fibers, 1, one)["bytes"]
        except (Missing, RuntimeError) as problem:
            missing[program] = str(problem)
    return figures, memory, missing


def speedups(figures):
    """{(case, program): ratio of the throughput of two workers over that of one}"""
    return {(case, program): ratio(figures.get((case, 1, program)), figures.get((case, 2, program)))
            for case, (_, _, programs, _, _) in PARALLEL.items() for program in programs}


def goals_of(figures, memory, fast, options):
    over = lambda case: ratio(figures.get((case, 0, "sylar")), figures.get((case, 0, "fcontext")))
    live = {program: LIVE[program] // (10 if options.quick else 1) for program in ("sylar", OWN)}
    resident = {program: memory.get(program) and memory[program] / 1024 for program in live}
    result = [
        ratio_goal("P-6", "yield through the scheduler, one way, CPU", over("yield"), 2.5, "fcontext jump"),
        ratio_goal("P-7", "spawn, run and join, CPU", over("spawn"), 6, "fcontext made anew on one stack"),
        goal("P-8", f"{live['sylar']} live guarded fibers, resident each", resident["sylar"], "KiB", "<=", 4.4, "statm"),
        goal("P-8o", f"{live[OWN]} live fibers that are threads, resident each", resident[OWN], "KiB", "<=", 9.5, "statm")]
    for id, case, bound in OVER_WORKER:
        own = ratio(figures.get((case, 0, OWN)), figures.get((case, 0, "sylar")))
        result.append(ratio_goal(id, f"{CASES[case][0]}, a thread of its own, CPU", own, bound, "as its worker"))
    for id, case, workers, other, bound in OVER_OTHERS:
        what = (PARALLEL if workers else CASES)[case][0] + (f", workers: {workers}" if workers else "")
        result.append(ratio_goal(id, what, ratio(figures.get((case, workers, "sylar")), figures.get((case, workers, other))), bound, other))
    for (case, program), value in fast.items():
        if program == "sylar":
            what, _, _, bound, id = PARALLEL[case]
            result.append(ratio_goal(id, f"two workers over one: {what}", value, bound, "the same with one worker", ">="))
    return result


def main():
    options = harness.parse(harness.parser("fiber", __doc__, rounds=5))
    with harness.cores_kept_awake() as awake:
        figures, memory, missing = measure(options)
    fast = speedups(figures)
    middle = {key: harness.statistics.median(values) for key, values in figures.items()}

    print(f"fibers; {options.rounds} rounds; medians; one worker on core {options.server_core}: CPU ns of all threads; idle cores {harness.halting(awake)}")
    for program, why in missing.items():
        print(f"{program}: {why}")
    rows = [(what + (" (wall)" if case in WALL else ""), *(middle.get((case, 0, program)) for program in PROGRAMS)) for case, (what, _, _) in CASES.items()]
    rows.append(("live at once, resident bytes each", *(memory.get(program) for program in PROGRAMS)))
    harness.table(("ns of an operation", *PROGRAMS), [row for row in rows if any(row[1:])])
    rows = [(PARALLEL[case][0], program, middle.get((case, 1, program)), middle.get((case, 2, program)), value and value["median"])
            for (case, program), value in fast.items() if value]
    harness.table(("two workers, wall ns", "", "1 worker", "2 workers", "throughput 2 / 1"), rows)

    goals = goals_of(figures, memory, fast, options)
    harness.goals_table(goals)
    ratios = {f"{what}: sylar / {program}": ratio(figures.get((case, 0, "sylar")), figures.get((case, 0, program)))
              for case, (what, _, programs) in CASES.items() for program in programs if program != "sylar"}
    ratios |= {f"{PARALLEL[case][0]}: {program}, 2 workers / 1": value for (case, program), value in fast.items()}
    harness.write(options, "fiber", awake, goals, ratios, missing=missing, live_bytes=memory,
                  figures=[{"case": case, "workers": workers or 1, "program": program, "ns": values} for (case, workers, program), values in figures.items()])
    cases = [case for case in CASES if (case, 0, "sylar") in middle]
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": CASES[case][0], "x": "ns", "bars": {program: middle[case, 0, program] for program in PROGRAMS if (case, 0, program) in middle}}
        for case in cases], columns=3)


if __name__ == "__main__":
    main()
