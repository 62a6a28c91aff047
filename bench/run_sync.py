#!/usr/bin/python3
"""The cost of waiting: locks, channels, groups of tasks and a select, on one worker and on two; beside std::mutex, Go, and a yield.

Each figure is a run of a program of its own; runs alternate, and ratios are taken inside a round. bench/sync/sylar_sync.cc says what
the cases do.
"""

import collections
import json

import harness
from harness import Missing, ratio, ratio_goal

PROGRAMS = {"sylar": "bench_sylar_sync", "std::mutex": "bench_sylar_sync", "Go": "bench_go_sync"}
BOTH = ["sylar", "Go"]
CASES = {  # (case, workers): (what is counted, operations of a run, programs)
    ("yield", 1): ("yield, one way", 2_000_000, ["sylar"]),
    ("lock", 1): ("lock, uncontended", 10_000_000, list(PROGRAMS)),
    ("channel", 1): ("channel round trip", 1_000_000, BOTH),
    ("tasks", 1): ("task of a group of 1 000", 500_000, BOTH),
    ("select", 1): ("select of 4", 1_000_000, BOTH),
    ("contended", 2): ("lock, contended", 1_000_000, list(PROGRAMS)),
    ("channel", 2): ("channel round trip", 500_000, BOTH),
    ("channel-apart", 2): ("channel round trip between workers", 50_000, BOTH),
}
GOALS = {  # (case, workers): (what, goal's id); each beside Go
    ("channel", 1): ("channel round trip on one worker, CPU", "P-19"),
    ("channel", 2): ("channel round trip on two workers, wall", "P-19"),
    ("channel-apart", 2): ("channel round trip between workers, wall", "P-19"),
}
TIMEOUT_S = 300


def run(options, program, case, operations, workers):
    """ns of an operation: on one worker of all threads' CPUs, on two by the wall."""
    if options.quick:
        operations = max(operations // 10, 10_000)
    name = "bench_sylar_fibers" if case == "yield" else PROGRAMS[program]
    command = [options.bin / name, f"std-{case}" if program == "std::mutex" else case, operations, workers]
    cores = {options.server_core} if workers == 1 else {options.server_core, options.client_core}
    return json.loads(harness.output_of(command, cores, TIMEOUT_S))["cpu_ns" if workers == 1 else "ns"]


def measure(options):
    """({(case, workers, program): [ns of an operation]}, {program: why it is missing})"""
    plan = [(*key, program) for key, (_, _, programs) in CASES.items() for program in programs
            if not options.goals or key in GOALS or key == ("yield", 1)]
    figures, missing = collections.defaultdict(list), {}
    for case, workers, program in harness.rounds(options.rounds, plan):
        try:
            result = run(options, program, case, CASES[case, workers][1], workers)
            figures[case, workers, program].append(result)
        except (Missing, RuntimeError) as problem:
            missing[program] = str(problem)
    return figures, missing


def goals_of(figures):
    of = lambda *key: figures.get(key)
    over_yield = ratio(of("channel", 1, "sylar"), of("yield", 1, "sylar"))
    return [ratio_goal("P-18", "channel round trip on one worker, CPU", over_yield, 6, "a yield, one way"),
            *(ratio_goal(id, what, ratio(of(*key, "sylar"), of(*key, "Go")), 1, "Go's channel") for key, (what, id) in GOALS.items())]


def main():
    options = harness.parse(harness.parser("sync", __doc__, rounds=5))
    with harness.cores_kept_awake() as awake:
        figures, missing = measure(options)
    middle = {key: harness.statistics.median(values) for key, values in figures.items()}

    print(f"waiting; {options.rounds} rounds; medians; one worker on core {options.server_core}; idle cores {harness.halting(awake)}")
    for program, why in missing.items():
        print(f"{program}: {why}")
    for workers, title in ((1, "one worker, CPU ns"), (2, "two workers, wall ns")):
        rows = [(what, *(middle.get((*key, program)) for program in PROGRAMS)) for key, (what, _, _) in CASES.items() if key[1] == workers]
        harness.table((title, *PROGRAMS), [row for row in rows if any(row[1:])])

    goals = goals_of(figures)
    harness.goals_table(goals)
    named = {key: f"{what}, {key[1]} worker{'s' * (key[1] > 1)}" for key, (what, _, _) in CASES.items()}
    ratios = {f"{named[key]}: sylar / {program}": ratio(figures.get((*key, "sylar")), figures.get((*key, program)))
              for key, (_, _, programs) in CASES.items() for program in programs if program != "sylar"}
    ratios |= {f"{named[key]}: sylar / yield": ratio(figures.get((*key, "sylar")), figures.get(("yield", 1, "sylar")))
               for key in CASES if key[1] == 1 and key[0] != "yield"}
    harness.write(options, "sync", awake, goals, ratios, missing=missing,
                  figures=[{"case": case, "workers": workers, "program": program, "ns": values} for (case, workers, program), values in figures.items()])
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": named[key], "x": "ns", "bars": {program: middle[*key, program] for program in PROGRAMS if (*key, program) in middle}}
        for key in CASES if key[0] != "yield" and (*key, "sylar") in middle], columns=3)


if __name__ == "__main__":
    main()
