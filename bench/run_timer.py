#!/usr/bin/python3
"""Every timer queue at every size, beside libev, libuv, Boost.Asio and Go: CPU time of an operation, the best of all runs.

All structures of the C++ program make the same steps, and must fire the same timers in the same order; a difference is an error.
"""

import collections
import json
import sys

import harness
from harness import Missing, goal

SCENARIOS = ["fill", "cancel+insert", "refresh", "rpc", "expire-random", "expire-burst", "idle-tick"]
SIZES = (1_000, 50_000, 100_000, 1_000_000)
OURS = "id/wheel"
PEERS = ("libev", "libuv", "asio", "go")
PLOTTED = ("cancel+insert", "rpc", "expire-random")
IN_PLOT = (OURS, "id/4-heap", "ptr/wheel", "ptr/4-heap", *PEERS, "multimap")
TIMEOUT_S = 600
# P-10 is all of TG-1 to TG-10.
GOALS = (  # id, what it is, (structure, timers, scenario), unit, at most, who does the same beside it
    ("TG-1", "startTimer + stopTimer, random", (OURS, 100_000, "cancel+insert"), "ns", 45, "libev"),
    ("TG-2", "startTimer + stopTimer, oldest first", (OURS, 100_000, "rpc"), "ns", 30, "libev"),
    ("TG-3", "addTimer + cancel, wheel", ("ptr/wheel", 100_000, "cancel+insert"), "ns", 150, "asio"),
    ("TG-3", "addTimer + cancel, 4-heap", ("ptr/4-heap", 100_000, "cancel+insert"), "ns", 150, "asio"),
    ("TG-4", "refresh, lazily pushed", ("lazy/4-heap", 100_000, "refresh"), "ns", 10, "libev"),
    ("TG-5", "expire and dispatch, 100 000", (OURS, 100_000, "expire-random"), "ns", 100, "libev"),
    ("TG-5", "expire and dispatch, 1 000 000", (OURS, 1_000_000, "expire-random"), "ns", 250, "libev"),
    ("TG-9", "left by 10 000 000 arm + cancel", (OURS, 10_000_000, "memory-kib"), "KiB", 1024, "multimap"),
    ("TG-9", "the same, Timer::ptr", ("ptr/4-heap", 10_000_000, "memory-kib"), "KiB", 1024, "multimap"),
)
FOR_GOALS = {100_000: (OURS, "ptr/wheel", "ptr/4-heap", "lazy/4-heap", "libev", "asio"), 1_000_000: (OURS, "libev")}


def rows_of(program, *arguments, options):
    """The rows that a program of this topic prints, a JSON object a line."""
    output = harness.output_of([options.bin / program, *arguments], {options.server_core, options.client_core}, TIMEOUT_S)
    return [json.loads(line) for line in output.splitlines()]


def measure(options):
    """(rows, {peer: why it is missing})"""
    timers = lambda *arguments: rows_of("bench_timer", "--runs", options.rounds, *arguments, options=options)
    if options.goals:
        rows = [row for n, structures in FOR_GOALS.items() for name in structures for row in timers("--min", n, "--max", n, "--only", name)]
        return rows + timers("--only", "memory") + timers("--only", "threads"), {}
    rows = timers("--max", options.max)
    try:
        return rows + rows_of("bench_go_timers", options.rounds, *(n for n in SIZES if n <= options.max), options=options), {}
    except Missing as problem:
        return rows, {"go": str(problem)}


def differences(rows):
    """The scenarios in which a structure fired other timers, or in another order."""
    seen, wrong = {}, []
    for row in rows:
        if row["trace"] and not row["structure"].startswith("lazy"):  # pushed lazily, equal deadlines change places
            first = seen.setdefault((row["scenario"], row["n"]), row)
            if first["trace"] != row["trace"]:
                wrong.append(f'{row["scenario"]}, n {row["n"]}: {row["structure"]} differs from {first["structure"]}')
    print(f"traces: {len(seen)} scenarios compared, {len(wrong)} differ")
    return wrong


def print_tables(rows, value):
    structures = list(dict.fromkeys(row["structure"] for row in rows if row["scenario"] == "fill"))
    for n in sorted({row["n"] for row in rows if row["scenario"] == "fill"}):
        harness.table((f"{n:,} timers, CPU ns", *SCENARIOS),
                      [(name, *(value.get((name, n, scenario)) for scenario in SCENARIOS)) for name in structures])
    answers = [(f"2-heap / 4-heap, 50 000, {scenario}", value["2-heap", 50_000, scenario] / value["4-heap", 50_000, scenario])
               for scenario in ("cancel+insert", "refresh", "expire-random") if ("2-heap", 50_000, scenario) in value]
    answers += [(f"{row['structure']}, a request of 100 000 a second, 99 % answered after 50 ms of their 5 s, ns", row["ns"])
                for row in rows if row["scenario"] == "requests"]
    answers += [(f"{row['structure']}, ticks late at most, over all levels", row["ns"]) for row in rows if row["scenario"] == "late-ticks"]
    harness.table(("questions of the designs", ""), answers)


def goals_of(value):
    """Figures, not ratios: CPU time of one thread repeats well."""
    result = [goal(id, what, value.get(key), unit, "<=", bound, f"{beside} {harness.number(value.get((beside, *key[1:])))}")
              for id, what, key, unit, bound, beside in GOALS]
    gain = {name: 2 * value[name, 1, "threads"] / value[name, 2, "threads"] for name in (OURS, "multimap") if (name, 2, "threads") in value}
    return result + [goal("TG-10", "two threads, throughput over one", gain.get(OURS), "x", ">=", 1.7, f"multimap {harness.number(gain.get('multimap'))}")]


def main():
    parser = harness.parser("timer", __doc__, rounds=2)
    parser.add_argument("--max", type=int, default=SIZES[-1], help="the largest number of timers; a round of fewer is made three times")
    options = harness.parse(parser)
    rows, missing = measure(options)
    value = {(row["structure"], row["n"], row["scenario"]): row["ns"] for row in rows}
    wrong = differences(rows)
    print_tables(rows, value)
    for peer, why in missing.items():
        print(f"{peer}: {why}")
    goals = goals_of(value)
    harness.goals_table(goals)
    ratios = {f"{scenario}, {n:,} timers / {peer}": harness.ratio([value[OURS, n, scenario]], [value[peer, n, scenario]])
              for n in SIZES for scenario in SCENARIOS for peer in PEERS if value.get((peer, n, scenario)) and (OURS, n, scenario) in value}
    harness.write(options, "timer", None, goals, ratios, rows=rows, missing=missing)
    lines = {scenario: collections.defaultdict(list) for scenario in PLOTTED}
    for (name, n, scenario), ns in sorted(value.items()):
        if scenario in PLOTTED and name in IN_PLOT:
            lines[scenario][name].append((n, ns))
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": scenario, "x": "timers", "y": "CPU ns of an operation", "yscale": "log", "ours": OURS, "lines": lines[scenario]} for scenario in PLOTTED], columns=3)
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
