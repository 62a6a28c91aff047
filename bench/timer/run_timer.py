#!/usr/bin/python3
"""Runs bench_timer, compares the traces of all structures, prints one table and draws one plot."""
import argparse
import json
import subprocess
import sys

SCENARIOS = ["fill", "cancel+insert", "refresh", "rpc", "expire-random", "expire-burst", "idle-tick"]


def compare_traces(rows):
    """Every structure must have fired the same timers in the same order. Returns the scenarios in which one did not."""
    seen, wrong = {}, []
    for row in rows:
        if row["trace"]:
            first = seen.setdefault((row["scenario"], row["n"]), row)
            if first["trace"] != row["trace"]:
                wrong.append(f'{row["scenario"]}, n {row["n"]}: {row["structure"]} differs from {first["structure"]}')
    print(f"traces: {len(seen)} scenarios compared, {len(wrong)} differ")
    return wrong


def print_table(rows):
    value = {(r["structure"], r["n"], r["scenario"]): r["ns"] for r in rows}
    structures = list(dict.fromkeys(r["structure"] for r in rows if r["scenario"] == "fill"))
    print("\nCPU ns per operation, the best of all runs")
    for n in sorted({r["n"] for r in rows if r["scenario"] == "fill"}):
        print(f'\n{n:>12,}  ' + "".join(f"{s:>15}" for s in SCENARIOS))
        for structure in structures:
            cells = (value.get((structure, n, s)) for s in SCENARIOS)
            print(f"{structure:>12}  " + "".join(f'{"-" if c is None else format(c, ".1f"):>15}' for c in cells))
    return value


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
    print("Goals: measured / goal")
    for what, key, goal in (
        ("TG-1 startTimer + stopTimer, 100k, wheel", ("id/wheel", 100_000, "cancel+insert"), 45),
        ("TG-1 the same, 4-heap", ("id/4-heap", 100_000, "cancel+insert"), 45),
        ("TG-2 rpc, wheel", ("id/wheel", 100_000, "rpc"), 30),
        ("TG-2 rpc, 4-heap", ("id/4-heap", 100_000, "rpc"), 30),
        ("TG-3 Timer::ptr add + cancel, 100k", ("ptr/4-heap", 100_000, "cancel+insert"), 150),
        ("TG-4 refresh in a wheel, 100k", ("wheel", 100_000, "refresh"), 10),
        ("TG-5 expire and dispatch, 100k, wheel", ("id/wheel", 100_000, "expire-random"), 100),
        ("TG-5 expire and dispatch, 1M, wheel", ("id/wheel", 1_000_000, "expire-random"), 250),
        ("TG-5 expire and dispatch, 100k, 4-heap", ("id/4-heap", 100_000, "expire-random"), 100),
        ("TG-5 expire and dispatch, 1M, 4-heap", ("id/4-heap", 1_000_000, "expire-random"), 250),
        ("TG-9 KiB that stay after 10M arm + cancel, id", ("id/4-heap", 10_000_000, "memory-kib"), 1024),
        ("TG-9 the same, Timer::ptr", ("ptr/4-heap", 10_000_000, "memory-kib"), 1024),
    ):
        if key in value:
            print(f"  {what}: {value[key]:.1f} / {goal} = {value[key] / goal:.2f}")
    for structure in ("wheel", "id/4-heap"):
        one, two = (value.get((structure, n, "threads")) for n in (1, 2))
        if one and two:
            print(f"  TG-10 {structure}, throughput of two threads over one (goal 1.7): {2 * one / two:.2f}")


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin/bench_timer")
    parser.add_argument("--out", default="bench/results/timer.json")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--max", type=int, default=1_000_000, help="the largest number of timers")
    parser.add_argument("--from-file", help="the lines of an earlier run, instead of a new one")
    args = parser.parse_args()
    if args.from_file:
        lines = open(args.from_file).read()
    else:
        command = [args.bin, "--runs", str(args.runs), "--max", str(args.max)]
        lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    with open(args.out, "w") as out:
        json.dump(rows, out, indent=1)
    wrong = compare_traces(rows)
    value = print_table(rows)
    print()
    print_questions(rows, {(r["structure"], r["n"], r["scenario"]): r["ns"] for r in rows})
    plot(value, args.out.replace(".json", ".png"))
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
