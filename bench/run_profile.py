#!/usr/bin/python3
"""Where the instructions of one echo request, one HTTP request, one yield, one spawn and the waiting go, in user space, by callgrind.

Servers run under callgrind on one core, their client outside on another, and counting begins after warm-up; requests are the calls of
`write`, `send` or `sendBatched`. Of the others: what a long run has more than a short one. Counts, not times: a busy machine changes nothing.
"""

import collections
import re
import tempfile
from pathlib import Path

import callgrind
import harness
from harness import Missing


def short(name):
    """Without parameters and the library's own namespace."""
    name = re.sub(r"'\d+$", "", name).replace("(anonymous namespace)::", "").replace("sylar::", "")
    name = re.sub(r"\bdetail::", "", name)
    name = re.sub(r"@\*?@?GLIBC.*$", "", name)
    depth, result = 0, ""
    for character in name:
        depth += character in "<("
        if not depth:
            result += character
        depth -= character in ">)"
    return result or name


def where(file):
    return re.sub(r"^.*/(?=(sylar|bench|examples)/)", "", file) if re.search(r"/(sylar|bench|examples)/", file) else Path(file).name


def rows_of(profile, operations, least):
    """Instructions of an operation by function, and by line in its function; the many first."""
    functions, lines = collections.Counter(), collections.Counter()
    for name, count in profile.functions.items():
        functions[short(name)] += count / operations
    for (name, file, line), count in profile.lines.items():
        lines[f"{where(file)}:{line}" if line else Path(file).name, short(name)] += count / operations
    return ([(name, count) for name, count in functions.most_common() if count >= least],
            [(*place, count) for place, count in lines.most_common() if count >= least])


def server_case(program, arguments, client, options, sent_by):
    with tempfile.TemporaryDirectory() as folder:
        profile = callgrind.of_server(options.bin / program, arguments, options.server_core, client, options.client_core, folder, options.seconds)
    sent = sum(count for name, count in profile.calls.items() if short(name) == sent_by)
    if sent == 0:
        raise RuntimeError(f"no call of {sent_by} was counted in {program}")
    return profile, sent


def run_case(program, case, few, many, each, options):
    with tempfile.TemporaryDirectory() as folder:
        runs = [callgrind.of_run(options.bin / program, [case, n], folder) for n in (few, many)]
    return runs[1].minus(runs[0]), each * (many - few)


def cases(options):
    length = options.seconds + 5
    echo = lambda port: [options.bin / "bench_echo_load", "--port", port, "--connections", 100, "--seconds", length]
    http = lambda port: ["/usr/bin/wrk", "-t1", "-c100", f"-d{round(length)}s", f"http://127.0.0.1:{port}/hello"]
    few, many = (1000, 11_000) if options.quick else (10_000, 110_000)
    return {
        "echo request": lambda: server_case("bench_fiber_echo", ["--engine", "epoll"], echo, options, "write"),
        "echo request of the tightest raw loop": lambda: server_case("bench_raw_epoll_echo", ["--et"], echo, options, "send"),
        "HTTP request": lambda: server_case("http_hello", [0, 1, "epoll"], http, options, "sendBatched"),
        "yield": lambda: run_case("bench_sylar_fibers", "yield", few, many, 2, options),
        "spawn": lambda: run_case("bench_sylar_fibers", "spawn", few, many, 1, options),
        "lock and unlock": lambda: run_case("bench_sylar_sync", "lock", few, many, 1, options),
        "channel round trip": lambda: run_case("bench_sylar_sync", "channel", few, many, 1, options),
        "select of 4": lambda: run_case("bench_sylar_sync", "select", few, many, 1, options),
        "task of a group": lambda: run_case("bench_sylar_sync", "tasks", few, many, 1, options),
    }


def main():
    parser = harness.parser("profile", __doc__, rounds=1, seconds=5)
    parser.add_argument("--least", type=float, default=2, help="instructions below which a function or line is not shown")
    parser.add_argument("--lines", type=int, default=25, help="source lines to show of each")
    options = harness.parse(parser)
    found = {}
    for what, measure in cases(options).items():
        try:
            profile, operations = measure()
        except (Missing, RuntimeError) as problem:
            print(f"{what}: {problem}")
            continue
        functions, lines = rows_of(profile, operations, options.least)
        total = profile.functions.total() / operations
        print(f"\n== one {what}: {total:.0f} instructions in user space ({operations} counted)")
        harness.table(("function", "instructions"), functions)
        harness.table(("line", "in", "instructions"), lines[:options.lines])
        found[what] = {"instructions": total, "operations": operations, "functions": functions, "lines": lines}
    harness.write(options, "profile", None, [], {}, profiles=found)
    if found:
        harness.plot(options.out.with_suffix(".svg"), [
            {"title": f"one {what}", "x": "instructions", "bars": dict(profile["functions"][:20])} for what, profile in found.items()])


if __name__ == "__main__":
    main()
