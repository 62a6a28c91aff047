#!/usr/bin/python3
"""What the hooks cost code that does not wait: a `read`, a free lock and programs that lock a lot on a plain thread, over libc's own; and
locks in fibers.

Reads and programs: two of one source, with the hooks linked and without, under callgrind. What a long run has more than a short one
is the reads', or the program's own work; nothing is timed. Locks: the same with a std::mutex, timed, in alternating runs; and in
fibers beside a yield.
"""

import collections
import json
import statistics
import tempfile

import callgrind
import harness
from harness import Missing, goal, ratio, ratio_goal

PROGRAMS = {"libc": "bench_plain_read", "hooked": "bench_hooked_read"}
FEW, MANY = 1000, 11_000

LOCKS = {  # what: (command, times)
    "free, libc": (["bench_free_lock"], 20_000_000),
    "free, hooked, on a thread": (["bench_hooked_free_lock"], 20_000_000),
    "free, in a fiber": (["bench_fiber_lock", "free"], 20_000_000),
    "handed over between fibers": (["bench_fiber_lock", "contended"], 2_000_000),
    "yield": (["bench_fiber_lock", "yield"], 2_000_000),
}
LOCK_GOALS = [  # what, over what, at most
    ("free, hooked, on a thread", "free, libc", 1.1),
    ("free, in a fiber", "free, libc", 1.3),
    ("handed over between fibers", "yield", 3),
]
HEAVY = {"libc": "bench_lock_heavy", "hooked": "bench_hooked_lock_heavy"}
HEAVY_KINDS = ["sqlite", "queue", "malloc"]
TIMEOUT_S = 60


def of_a_read(program, options):
    """{function: instructions} of one read."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = (callgrind.of_run(options.bin / program, [count], folder, "measuredReads") for count in (FEW, MANY))
    return {name: count / (MANY - FEW) for name, count in many.minus(few).functions.items()}


def of_programs(options):
    """{kind: {program: instructions for each of its steps}}"""
    def of_step(program, kind):
        with tempfile.TemporaryDirectory() as folder:
            few, many = (callgrind.of_run(options.bin / program, [kind, count], folder) for count in (FEW, MANY))
        return sum(many.minus(few).functions.values()) / (MANY - FEW)

    return {kind: {name: of_step(program, kind) for name, program in HEAVY.items()} for kind in HEAVY_KINDS}


def of_locks(options):
    """{what: [ns of one]}"""
    figures = collections.defaultdict(list)
    for what, in harness.rounds(options.rounds, [(what,) for what in LOCKS]):
        (program, *case), times = LOCKS[what]
        command = [options.bin / program, *case, times // (10 if options.quick else 1)]
        figures[what].append(json.loads(harness.output_of(command, {options.server_core}, TIMEOUT_S))["ns"])
    return figures


def main():
    options = harness.parse(harness.parser("hooks", __doc__))
    each, more, programs = {}, None, {}
    try:
        each = {name: of_a_read(program, options) for name, program in PROGRAMS.items()}
        more = sum(each["hooked"].values()) - sum(each["libc"].values())
        programs = of_programs(options)
    except Missing as problem:
        print(problem)
    print("read of one byte on a plain thread, callgrind")
    rows = [(name, function, count) for name, functions in each.items() for function, count in sorted(functions.items(), key=lambda item: -item[1]) if count >= 1]
    harness.table(("program", "function", "instructions"), rows)
    print("programs that lock or allocate a lot, callgrind")
    harness.table(("program", *HEAVY), [(kind, *steps.values()) for kind, steps in programs.items()])
    locks = {}
    try:
        locks = of_locks(options)
    except Missing as problem:
        print(problem)
    print("std::mutex, ns")
    harness.table(("what", "ns"), [(what, statistics.median(times)) for what, times in locks.items()])
    goals = [goal("P-14", "hooked read on a plain thread, more than libc's", more, "instr", "<=", 12, "libc's read, callgrind")]
    goals += [ratio_goal("P-20", f"std::mutex, {what}", ratio(locks.get(what), locks.get(over)), most, over) for what, over, most in LOCK_GOALS]
    goals += [goal("P-20", f"{kind}, hooked, on a thread", steps["hooked"] / steps["libc"], "x", "<=", 1.02, "instructions over libc, callgrind") for kind, steps in programs.items()]
    harness.goals_table(goals)
    harness.write(options, "hooks", None, goals, {}, instructions=each)
    if each:
        harness.plot(options.out.with_suffix(".svg"), [{"title": "read on a plain thread", "x": "instructions", "bars": {name: sum(functions.values()) for name, functions in each.items()}}])


if __name__ == "__main__":
    main()
