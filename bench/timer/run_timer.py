#!/usr/bin/python3
"""Runs bench_timer, compares the traces of all structures, prints one table and draws one plot; or, with --goals, judges the goals."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

SIZES = (1_000, 50_000, 100_000, 1_000_000)
SCENARIOS = ["fill", "cancel+insert", "refresh", "rpc", "expire-random", "expire-burst", "idle-tick"]


def compare_traces(rows):
    """Every structure must have fired the same timers in the same order. Returns the scenarios in which one did not."""
    seen, wrong = {}, []
    for row in rows:
        if row["trace"] and not row["structure"].startswith("lazy"):  # pushed lazily, equal deadlines change places
            first = seen.setdefault((row["scenario"], row["n"]), row)
            if first["trace"] != row["trace"]:
                wrong.append(f'{row["scenario"]}, n {row["n"]}: {row["structure"]} differs from {first["structure"]}')
    print(f"traces: {len(seen)} scenarios compared, {len(wrong)} differ")
    return wrong


def print_table(rows, value):
    structures = list(dict.fromkeys(r["structure"] for r in rows if r["scenario"] == "fill"))
    print("\nCPU ns per operation, the best of all runs")
    for n in sorted({r["n"] for r in rows if r["scenario"] == "fill"}):
        print(f'\n{n:>12,}  ' + "".join(f"{s:>15}" for s in SCENARIOS))
        for structure in structures:
            cells = (value.get((structure, n, s)) for s in SCENARIOS)
            print(f"{structure:>12}  " + "".join(f'{"-" if c is None else format(c, ".1f"):>15}' for c in cells))


def ratio(value, what, a, b, note=""):
    if a in value and b in value and value[b]:
        print(f"  {what}: {value[a]:.1f} / {value[b]:.1f} = {value[a] / value[b]:.2f} {note}")


def print_questions(rows, value):
    print("\nDesign 000: is a 4-heap better than a 2-heap at 50 000? (libev: by 5 %)")
    for scenario in ("cancel+insert", "refresh", "expire-random"):
        ratio(value, f"2-heap / 4-heap, {scenario}", ("2-heap", 50_000, scenario), ("4-heap", 50_000, scenario))
    print("Design 001: ticks late, at most, over all levels and beyond")
    print("Design 002: 100 000 requests a second, 99 % answered after 50 ms of their 5 s")
    for row in rows:
        if row["scenario"] == "requests":
            print(f'  {row["structure"]}: {row["ns"]:.0f} ns a request, {row["ns"] * 1e5 / 1e7:.1f} % of a core')
        if row["scenario"] == "late-ticks":
            print(f'  (001) {row["structure"]}: {row["ns"]:.0f}')


# Goal, what it is, (structure, timers, scenario), at most, and who does the same beside it.
GOALS = (
    ("TG-1", "startTimer + stopTimer, random", ("id/wheel", 100_000, "cancel+insert"), 45, "libev"),
    ("TG-2", "startTimer + stopTimer, oldest first", ("id/wheel", 100_000, "rpc"), 30, "libev"),
    ("TG-3", "addTimer + cancel, wheel", ("ptr/wheel", 100_000, "cancel+insert"), 150, "asio"),
    ("TG-3", "addTimer + cancel, 4-heap", ("ptr/4-heap", 100_000, "cancel+insert"), 150, "asio"),
    ("TG-4", "refresh, lazily pushed", ("lazy/4-heap", 100_000, "refresh"), 10, "libev"),
    ("TG-5", "expire and dispatch, 100 000", ("id/wheel", 100_000, "expire-random"), 100, "libev"),
    ("TG-5", "expire and dispatch, 1 000 000", ("id/wheel", 1_000_000, "expire-random"), 250, "libev"),
    ("TG-9", "KiB left by 10 000 000 arm + cancel", ("id/wheel", 10_000_000, "memory-kib"), 1024, "multimap"),
    ("TG-9", "the same, Timer::ptr", ("ptr/4-heap", 10_000_000, "memory-kib"), 1024, "multimap"),
)
TWO_THREADS = ("TG-10", "two threads, throughput over one", "id/wheel", 1.7, "multimap")


def print_goals(value):
    """One line a goal. Returns them as rows."""
    judged = []

    def judge(goal, what, measured, bound, met, unit, beside, beside_value):
        yardstick = f"{beside} {beside_value:.1f}" if beside_value is not None else f"{beside} -"
        relation = ">=" if unit == "x" else "<="
        judged.append({"id": goal, "what": what, "value": round(measured, 2), "unit": unit, "goal": f"{relation} {bound}",
                       "met": met, "yardstick": yardstick})
        print(f"{goal:<6}{what:<38}{measured:>9.1f} {unit:<4} goal {bound:>6} {unit:<4} ratio {measured / bound:>5.2f}  "
              f"{'met    ' if met else 'not met'}  ({yardstick})")

    print("\nGoals: best of all runs; beside each, another library in the same run")
    for goal, what, key, bound, beside in GOALS:
        if key in value:
            unit = "KiB" if key[2] == "memory-kib" else "ns"
            judge(goal, what, value[key], bound, value[key] <= bound, unit, beside, value.get((beside, *key[1:])))
    goal, what, structure, bound, beside = TWO_THREADS
    gain = {s: 2 * value[s, 1, "threads"] / value[s, 2, "threads"] for s in (structure, beside) if (s, 2, "threads") in value}
    if structure in gain:
        judge(goal, what, gain[structure], bound, gain[structure] >= bound, "x", beside, gain.get(beside))
    return judged


def plot(value, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 5), sharey=True)
    structures = list(dict.fromkeys(key[0] for key in value if key[2] == "fill"))
    for axis, scenario in zip(axes, ("cancel+insert", "rpc", "expire-random")):
        for structure in structures:
            points = sorted((key[1], ns) for key, ns in value.items() if key[0] == structure and key[2] == scenario)
            axis.plot(*zip(*points), marker="o", label=structure)
        axis.set(title=scenario, xscale="log", yscale="log", xlabel="timers")
    axes[0].set_ylabel("CPU ns per operation")
    axes[-1].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path)
    print(f"\nplot: {path}")


def measure(binary, *arguments):
    """The rows that the program prints; says on stderr how far it is."""
    rows = []
    with subprocess.Popen([binary, *map(str, arguments)], text=True, stdout=subprocess.PIPE) as program:
        for line in program.stdout:
            rows.append(json.loads(line))
            print(f'\r{rows[-1]["structure"]:>12} {rows[-1]["n"]:>10,}', end="", file=sys.stderr, flush=True)
    print("\r" + " " * 23 + "\r", end="", file=sys.stderr)
    if program.returncode != 0:
        raise SystemExit(f"{binary} ended with {program.returncode}")
    return rows


def measure_go(out, runs, sizes):
    """The timers of Go's runtime, if Go is there."""
    if shutil.which("go") is None:
        print("go: not installed")
        return []
    source = pathlib.Path(__file__).with_name("go_timers.go")
    binary = pathlib.Path(out).resolve().parent / "go_timers"
    cache = {"GO111MODULE": "off", "GOCACHE": str(binary.parent / "go_cache")}
    subprocess.run(["go", "build", "-o", binary, source], check=True, env={**os.environ, **cache})
    return measure(binary, runs, *sizes)


def measure_goals(binary, runs):
    """What the goals need and nothing else."""
    at = {100_000: ("id/wheel", "ptr/wheel", "ptr/4-heap", "lazy/4-heap", "libev", "asio"), 1_000_000: ("id/wheel", "libev")}
    rows = []
    for n, structures in at.items():
        for structure in structures:
            rows += measure(binary, "--runs", runs, "--min", n, "--max", n, "--only", structure)
    return rows + measure(binary, "--runs", runs, "--only", "memory") + measure(binary, "--runs", runs, "--only", "threads")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin/bench_timer")
    parser.add_argument("--out", default="bench/results/timer.json")
    parser.add_argument("--runs", type=int, default=2, help="of a million timers; of fewer three times as many")
    parser.add_argument("--max", type=int, default=1_000_000, help="the largest number of timers")
    parser.add_argument("--goals", action="store_true", help="only what the goals TG-1 to TG-10 need: a line each, met or not met")
    parser.add_argument("--from-file", help="the rows of an earlier run, instead of a new one")
    args = parser.parse_args()
    if args.from_file:
        rows = json.load(open(args.from_file))
        rows = rows["rows"] if isinstance(rows, dict) else rows
    elif args.goals:
        rows = measure_goals(args.bin, args.runs)
    else:
        rows = measure(args.bin, "--runs", args.runs, "--max", args.max)
        rows += measure_go(args.out, min(args.runs, 2), [n for n in SIZES if n <= args.max])
    value = {(r["structure"], r["n"], r["scenario"]): r["ns"] for r in rows}
    wrong = compare_traces(rows)
    if not args.goals:
        print_table(rows, value)
        print_questions(rows, value)
        plot(value, args.out.replace(".json", ".svg"))
    goals = print_goals(value)
    with open(args.out, "w") as file:
        json.dump({"goals": goals, "rows": rows}, file, indent=1)
    print(f"rows: {args.out}")
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
