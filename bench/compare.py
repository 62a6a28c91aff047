#!/usr/bin/python3
"""Holds two runs against each other: their goals, side by side, and their ratios that differ by 10 % or more. What repeats can be trusted.

A topic writes {what / yardstick: a median, its quartiles, and each side's own figure} into its JSON file. Where the quartiles of the
two runs overlap, the ratio moves as much within one run as it did between the two. Where they do not, the last columns say whose own
figure moved: of runs of the same programs, a side that moved alone tells of the machine.
"""

import argparse
import json
import re
from pathlib import Path

import harness

LIMIT = 0.10


def ratios_in(folder):
    """{(topic, what): ratio}"""
    result = {}
    for path in sorted(folder.glob("*.json")):
        figures = json.loads(path.read_text())
        result |= {(path.stem, what): value for what, value in figures.get("ratios", {}).items()}
    return result


def goals_in(folder):
    """{(id, what): goal}, in the order of the summary"""
    return {(goal["id"], goal["what"]): goal for goal in json.loads((folder / "goals.json").read_text())["goals"]}


def met(first, second):
    if first["met"] == second["met"]:
        return "met" if first["met"] else "not met"
    return "met once"


def show_goals(first, second):
    both = [key for key in first if key in second]
    harness.table(("goal", "what", "first", "second", "unit", "goal", "", "yardstick"),
                  [(*key, first[key]["value"], second[key]["value"], first[key]["unit"], first[key]["goal"], met(first[key], second[key]),
                    re.sub(r" \(quartiles.*\)", "", first[key]["yardstick"])) for key in both])
    states = [met(first[key], second[key]) for key in both]
    print(f"\n{states.count('met')} of {len(both)} met twice, {states.count('met once')} once\n")


def shown(ratio):
    spread = f" ({ratio['low']:.2f} - {ratio['high']:.2f})" if ratio["low"] < ratio["high"] else ""
    return f"{ratio['median']:.3f}{spread}"


def moved(first, second, side):
    return f"{100 * (second[side] / first[side] - 1):+.0f} %"


def overlap(first, second):
    return first["low"] <= second["high"] and second["low"] <= first["high"]


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    options = parser.parse_args()
    show_goals(goals_in(options.first), goals_in(options.second))
    first, second = ratios_in(options.first), ratios_in(options.second)
    both = sorted(first.keys() & second.keys())
    if not both:
        parser.error("no ratio stands in both")
    change = {key: second[key]["median"] / first[key]["median"] - 1 for key in both}
    far = [key for key in sorted(both, key=lambda key: -abs(change[key])) if abs(change[key]) >= LIMIT]
    harness.table(("topic", "ratio", "first", "second", "change", "ours", "theirs", "quartiles"),
                  [(*key, shown(first[key]), shown(second[key]), f"{100 * change[key]:+.1f} %", moved(first[key], second[key], "ours"),
                    moved(first[key], second[key], "theirs"), "overlap" if overlap(first[key], second[key]) else "") for key in far])
    middle = lambda values: harness.statistics.median(map(abs, values))
    print(f"\n{len(both) - len(far)} of {len(both)} ratios differ by less than {LIMIT:.0%}, the middle one by {middle(change.values()):.1%}; "
          f"of the others {sum(overlap(first[key], second[key]) for key in far)} have quartiles that overlap")
    print(f"the yardsticks' own figures differ by {middle(second[key]['theirs'] / first[key]['theirs'] - 1 for key in both):.1%} in the middle")
    if alone := first.keys() ^ second.keys():
        print(f"only in one of the two: {len(alone)}: {', '.join(': '.join(key) for key in sorted(alone)[:5])} ...")


if __name__ == "__main__":
    main()
