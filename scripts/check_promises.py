#!/usr/bin/env python3
"""Holds docs/promises.md and the tests to one another.

Every id that a file names is defined on that page, once; every id defined there is named by a test (a speed goal, by a benchmark),
or its line says "Not tested: " and why. Prints `file:line: what is wrong; what would be right` and exits with 1.

    check_promises.py [root of the tree]
"""

import re
import sys
from pathlib import Path

PAGE = "docs/promises.md"
SEARCHED = ("bench", "config", "docs", "examples", "scripts", "sylar", "tests", "README.md")
SUFFIXES = {".cc", ".h", ".py", ".sh", ".md", ".cmake", ".txt", ".in", ".yml", ".yaml"}
# The families are spelt out: "UTF-8", "RFC 9112" and "C-1a" are no ids.
ID = re.compile(r"(?<![\w.-])(?:(?:C|FM|HA|J|K|M|P|Q|RD|RG|SEC|TD|TG)-\d+|CD-[A-Z]\d+|WEB-[DL]?\d+|RT-\d\.\d+|P[1-6]|Trap \d+)(?![\w-]|\.\d)")
DEFINITION = re.compile(rf"- \*\*(?P<id>{ID.pattern})\*\* (?P<text>.+)")
SPEED_GOAL = re.compile(r"(?:P|TG)-")
NOT_TESTED = re.compile(r" Not tested: \S.*\.$")


def read_page(path, report):
    """id -> (line, what it promises)."""
    defined = {}
    for line, text in enumerate(path.read_text().splitlines(), 1):
        match = DEFINITION.fullmatch(text)
        if not match:
            if text.startswith("- "):
                report(PAGE, line, "is no definition; write '- **ID** What it promises.', all on one line")
            continue
        if match["id"] in defined:
            report(PAGE, line, f"defines {match['id']} again; it stands in line {defined[match['id']][0]} already")
        defined.setdefault(match["id"], (line, match["text"]))
    return defined


def files_of(root):
    for name in SEARCHED:
        path = root / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in found if file.suffix in SUFFIXES and file.is_file())


def check(root):
    """The faults, and how many ids there are."""
    faults = []

    def report(file, line, text):
        faults.append(f"{file}:{line}: {text}")

    defined = read_page(root / PAGE, report)
    first_test = {}  # id -> the first place in a test that names it
    for path in files_of(root):
        file = path.relative_to(root).as_posix()
        for line, text in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for match in ID.finditer(text):
                id = match[0]
                if id not in defined:
                    report(file, line, f"{id} is defined nowhere; say in {PAGE} what it promises, or name another")
                if file.startswith("tests/") or (file.startswith("bench/") and SPEED_GOAL.match(id)):
                    first_test.setdefault(id, f"{file}:{line}")
    for id, (line, text) in defined.items():
        untested = "Not tested" in text
        if untested and not NOT_TESTED.search(text):
            report(PAGE, line, f"{id} is not tested, and does not say why; end the line with 'Not tested: the reason.'")
        if untested and id in first_test:
            report(PAGE, line, f"{id} says that it is not tested, but {first_test[id]} names it; one of them is wrong")
        if not untested and id not in first_test:
            report(PAGE, line, f"no test names {id}; name it above the test that proves it, or end with 'Not tested: the reason.'")
    return faults, len(defined), len(first_test)


if __name__ == "__main__":
    faults, ids, tested = check(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent))
    if faults:
        sys.exit("\n".join(faults))
    print(f"promises: {ids} ids are defined, {tested} of them named by tests")
