#!/usr/bin/python3
"""Runs every topic as far as the goals need it, and prints one line a goal, beside its yardstick: met or not met.

A topic writes its goals into its JSON file: "goals": [{"id", "what", "value", "unit", "goal", "met", "yardstick"}, ...].
Exit status 1: a figure is missing. Goals that are not met are no failure: they are what there is to do.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

import harness

GOALS = {  # topic: goals that it measures
    "echo": ["P-1", "P-3", "P-4", "P-13", "P-16"],
    "http": ["P-5"],
    "fiber": ["P-6", "P-7", "P-8", "P-12", "P-17"],
    "memory": ["P-9"],
    "hooks": ["P-14"],
    "sleep": ["P-11", "P-15", "TG-6", "TG-7", "TG-8"],
    "timer": ["TG-1", "TG-2", "TG-3", "TG-4", "TG-5", "TG-9", "TG-10"],
}
NOT_QUICK = {"sleep", "timer"}  # whose drivers know --goals only
TIMEOUT_S = 900


def run(topic, options):
    """Runs it, unless the figures there are to be collected. Its own output stays in a file beside the figures."""
    log = options.results / f"{topic}.log"
    command = ["scripts/bench.sh", topic, "--goals"]
    if options.quick and topic not in NOT_QUICK:
        command.append("--quick")
    print(f"{topic} ...", flush=True)
    with log.open("w") as output:
        try:
            return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=TIMEOUT_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def goals_in(path):
    """What the topic wrote, or nothing."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return found.get("goals", []) if isinstance(found, dict) else []


def order(goal):
    kind, number = re.match(r"(TG|P)-(\d+)", goal["id"]).groups()
    return kind != "P", int(number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: shows that all of it works, and no figure to trust")
    parser.add_argument("--topics", default=",".join(GOALS), metavar="A,B", help="run these; of the others, take the figures that are there")
    parser.add_argument("--results", type=Path, default="bench/results")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    chosen = [topic for topic in options.topics.split(",") if topic]
    if unknown := set(chosen) - set(GOALS):
        parser.error(f"no such topic: {', '.join(unknown)}")

    goals, missing = [], []
    for topic, ids in GOALS.items():
        path = options.results / f"{topic}.json"
        if topic in chosen:
            path.unlink(missing_ok=True)  # figures of an earlier run are not this one's
            if not run(topic, options):
                print(f"{topic} failed; see {options.results / topic}.log")
        found = goals_in(path)
        goals += found
        for id in ids:
            if not any(goal["id"] == id and goal["value"] is not None for goal in found):
                missing.append(id)
        missing += [f"{goal['id']} ({goal.get('what', '')})" for goal in found if goal["value"] is None and goal["id"] not in missing]
    goals.sort(key=order)
    harness.goals_table(goals)
    met = sum(goal["met"] for goal in goals)
    print(f"\n{met} of {len(goals)} met" + (f"; MISSING: {', '.join(missing)}" if missing else ""))
    (options.results / "goals.json").write_text(json.dumps({"goals": goals, "missing": missing}, indent=1) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
