#!/usr/bin/env python3
"""Holds the guide to the examples: every C++ snippet of README.md and docs/guide/ is part of a program that the tests run.

In a page the line `<!-- examples/x.cc: name -->` stands directly before the fence; in examples/x.cc the part lies between two lines
`// [name]`. Relative links of README.md and docs/ must lead somewhere. Prints `file:line: what is wrong; how to mend it`, exits with 1.

    check_guide.py [--write]      --write: takes the snippets anew from the examples
"""
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"<!-- (\S+): (\S+) -->")
MARK = re.compile(r"\s*// \[\S+\]")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def snippet(path, name):
    """The lines of that part, without what they are all indented by. Throws ValueError."""
    if not (ROOT / path).is_file():
        raise ValueError(f"there is no file {path}; correct the line above")
    lines = (ROOT / path).read_text().splitlines()
    at = [i for i, line in enumerate(lines) if line.strip() == f"// [{name}]"]
    if len(at) != 2:
        raise ValueError(f"{path} has {len(at)} lines '// [{name}]'; put one before the part and one behind it")
    return textwrap.dedent("\n".join(line for line in lines[at[0]:at[1]] if not MARK.fullmatch(line))).strip("\n").splitlines()


def check(page, write, problems):
    old, new, fence = page.read_text().splitlines(), [], None
    for number, line in enumerate(old, 1):
        where = f"{page.relative_to(ROOT)}:{number}"
        if fence is None and line.startswith("```"):
            fence = where, len(new) + 1, SOURCE.fullmatch(old[number - 2])
            if line == "```cpp" and fence[2] is None and "docs/design/" not in where:
                problems.append(f"{where}: a snippet without a source; write <!-- examples/FILE: PART --> on the line before")
        elif fence is not None and line == "```":
            (begin, first, source), fence = fence, None
            try:
                right = snippet(source[1], source[2]) if source else new[first:]
                if right != new[first:] and not write:
                    problems.append(f"{begin}: differs from {source[1]}: {source[2]}; run scripts/check_guide.py --write")
                new[first:] = right
            except ValueError as error:
                problems.append(f"{begin}: {error}")
        elif fence is None:
            for target in LINK.findall(line):
                if "://" not in target and not (page.parent / target).exists():
                    problems.append(f"{where}: the link leads to {target}, which is not there; correct it")
        new.append(line)
    if write and new != old:
        page.write_text("\n".join(new) + "\n")


found, pages = [], [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
for each in pages:
    check(each, "--write" in sys.argv[1:], found)
sys.exit("\n".join(found) or print(f"guide: {len(pages)} pages are in order"))
