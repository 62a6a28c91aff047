#!/usr/bin/env python3
"""Every name in the page's table "The way of a timer" must be defined or called in the file that stands beside it."""
import pathlib
import re
import sys


def steps(page):
    section = page.split("## The way of a timer", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", section, re.MULTILINE)


def main():
    root = pathlib.Path(sys.argv[1])
    found = steps((root / sys.argv[2]).read_text())
    wrong = [f"{name} is not in {file}" for name, file in found
             if not re.search(r"\b" + re.escape(name) + r"\(", (root / file).read_text())]
    print(f"{len(found)} names checked", *wrong, sep="\n")
    return 1 if wrong or len(found) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
