#!/usr/bin/python3
"""What the hooks cost code that does not run in a fiber: instructions of a `read` on a plain thread, over libc's own.

Two programs of one source, with the hooks linked and without, under callgrind. What a long run has more than a short one is the
reads'; nothing is timed.
"""

import tempfile

import callgrind
import harness
from harness import Missing, goal

PROGRAMS = {"libc": "bench_plain_read", "hooked": "bench_hooked_read"}
FEW, MANY = 1000, 11_000


def of_a_read(program, options):
    """{function: instructions} of one read."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = (callgrind.of_run(options.bin / program, [count], folder, "measuredReads") for count in (FEW, MANY))
    return {name: count / (MANY - FEW) for name, count in many.minus(few).functions.items()}


def main():
    options = harness.parse(harness.parser("hooks", __doc__))
    each, more = {}, None
    try:
        each = {name: of_a_read(program, options) for name, program in PROGRAMS.items()}
        more = sum(each["hooked"].values()) - sum(each["libc"].values())
    except Missing as problem:
        print(problem)
    print("read of one byte on a plain thread, callgrind")
    rows = [(name, function, count) for name, functions in each.items() for function, count in sorted(functions.items(), key=lambda item: -item[1]) if count >= 1]
    harness.table(("program", "function", "instructions"), rows)
    goals = [goal("P-14", "hooked read on a plain thread, more than libc's", more, "instr", "<=", 12, "libc's read, callgrind")]
    harness.goals_table(goals)
    harness.write(options, "hooks", None, goals, {}, instructions=each)
    if each:
        harness.plot(options.out.with_suffix(".svg"), [{"title": "read on a plain thread", "x": "instructions", "bars": {name: sum(functions.values()) for name, functions in each.items()}}])


if __name__ == "__main__":
    main()
