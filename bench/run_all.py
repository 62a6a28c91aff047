#!/usr/bin/python3
"""Runs every topic, wholly or (--goals) as far as the goals need it, and prints one line a goal, beside its yardstick: met or not met.

A topic writes its goals into its JSON file: "goals": [{"id", "what", "value", "unit", "goal", "met", "yardstick"}, ...]. A whole run
also writes a page that shows all tables and plots. Exit status 1: a topic failed or a figure is missing. Goals that are not met are no
failure: they are what there is to do.
"""

import argparse
import contextlib
import io
import json
import subprocess
import time
from pathlib import Path

import harness

TOPICS = {  # topic: goals that it measures
    "echo": ["P-1", "P-3", "P-4", "P-13", "P-16"],
    "http": ["P-5"],
    "latency": [],
    "files": ["P-21"],
    "fiber": ["P-6", "P-7", "P-8", "P-12", "P-17"],
    "sync": ["P-18", "P-19"],
    "memory": ["P-9"],
    "hooks": ["P-14", "P-20"],
    "profile": [],
    "sleep": ["P-11", "P-15", "TG-6", "TG-7", "TG-8"],
    "ttlkv": [],
    "timer": ["TG-1", "TG-2", "TG-3", "TG-4", "TG-5", "TG-9", "TG-10"],
}
TIMEOUT_S = 1800
LOGS = Path("build/bench/logs")


def run(topic, options):
    """Whether it went well. Its tables stay in one file, what else is said in another."""
    command = ["scripts/bench.sh", topic, "--out", options.results / f"{topic}.json"]
    command += [f"--{flag}" for flag in ("goals", "quick") if getattr(options, flag)]
    start = time.monotonic()
    print(f"{topic} ...", end=" ", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{topic}.txt").open("w") as tables, (LOGS / f"{topic}.log").open("w") as log:
        try:
            good = subprocess.run(list(map(str, command)), stdout=tables, stderr=log, timeout=TIMEOUT_S).returncode == 0
        except subprocess.TimeoutExpired:
            good = False
    print(f"{time.monotonic() - start:.0f} s" if good else f"FAILED; see {log.name}", flush=True)
    return good


def figures_of(path):
    """What the topic wrote, or nothing."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def order(goal):
    kind, _, number = goal["id"].partition("-")
    return ("P", "TG", "C", "K", "ttlkv").index(kind), int(number.rstrip("u") or 0), goal["id"]  # P-1u is behind P-1


def missing_of(ids, goals):
    """Goals, or parts of them, without a figure."""
    return ([id for id in ids if not any(goal["id"] == id for goal in goals)]
            + [f"{goal['id']} ({goal['what']})" for goal in goals if goal["value"] is None])


def write_page(options, found, summary):
    """All that was measured, to be looked at: results/README.md."""
    first = next(iter(found.values()))
    about = first["machine"]
    parts = [f"# A whole run of the benchmarks\n\n{first['when'][:16].replace('T', ' ')} UTC, {about['cores']} cores of {about['processor']}, "
             f"Linux {about['kernel']}. Made by `scripts/bench.sh all`; [how to read it](../README.md).\n\n## Goals\n\n```\n{summary.strip()}\n```\n"]
    for topic in found:
        parts.append(f"\n## {topic}\n\n![{topic}]({topic}.svg)\n")
        if topic == "profile":
            parts.append("\nThe tables stand in [pages.md](pages.md#performance).\n")
            continue
        tables = (LOGS / f"{topic}.txt").read_text().strip()
        parts.append(f"\n```\n{tables}\n```\n")
    (options.results / "README.md").write_text("".join(parts))


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goals", action="store_true", help="only what the goals need")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that all of it works, and no figure to trust")
    parser.add_argument("--topics", default=",".join(TOPICS), metavar="A,B", help="run these; of the others, take the figures that are there")
    parser.add_argument("--results", type=Path, default="bench/results")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    chosen = options.topics.split(",")
    if unknown := set(chosen) - set(TOPICS):
        parser.error(f"no such topic: {', '.join(unknown)}")

    found, goals, missing, failed = {}, [], [], []
    for topic, ids in TOPICS.items():
        path = options.results / f"{topic}.json"
        if topic in chosen and (ids or not options.goals):
            path.unlink(missing_ok=True)  # figures of an earlier run are not this one's
            if not run(topic, options):
                failed.append(topic)
        if figures := figures_of(path):
            found[topic] = figures
        goals += figures.get("goals", [])
        missing += missing_of(ids, figures.get("goals", []))
    goals.sort(key=order)
    summary = io.StringIO()
    with contextlib.redirect_stdout(summary):
        harness.goals_table(goals)
        print(f"\n{sum(goal['met'] for goal in goals)} of {len(goals)} met" + (f"; MISSING: {', '.join(missing)}" if missing else ""))
    print(summary.getvalue(), end="")
    (options.results / "goals.json").write_text(json.dumps({"goals": goals, "missing": missing}, indent=1) + "\n")
    if not options.goals and found:
        write_page(options, found, summary.getvalue())
    return 1 if missing or failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
