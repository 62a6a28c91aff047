#!/usr/bin/env python3
"""Counts what should grow and what should not, and exits with 1 if one of the latter is above its ceiling.

First, one line a module: how many checks (SYLAR_CHECK, SYLAR_DCHECK) the modules of fibers and waiting have for each function.
Functions are counted by their form, so the source must be as .clang-format makes it: a parameter list that a body follows, and no
keyword or lambda before it. Members that the compiler makes are none. Then, of the whole library, what makes code harder to follow.

    count_checks.py [root of the tree]
"""

import re
import sys
from pathlib import Path

MODULES = ("fiber", "sched", "io", "timer", "hook")
CHECK = re.compile(r"\bSYLAR_D?CHECK(?:_(?:EQ|NE|LT|LE|GT|GE))?\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "do", "else", "sizeof", "requires", "decltype", "alignas", "noexcept"}
# Who needs one more takes another away, or raises the ceiling in a commit that says why. Who takes many away lowers it.
CEILINGS = {
    "friend": (r"\bfriend\b", 53),
    "virtual": (r"\bvirtual\b", 143),
    "thread_local": (r"\bthread_local\b", 47),
    "reinterpret_cast": (r"\breinterpret_cast\b", 155),
    "#define": (r"^\s*#\s*define\b", 142),
    "NOLINT": (r"\bNOLINT", 48),
    "noinline, always_inline": (r"\b(?:noinline|always_inline)\b", 189),
    "pthread_atfork": (r"\bpthread_atfork\b", 12),
}
BODY = re.compile(r"([~\w:<>]+|operator[^\s\w(]+)\s*\(([^(){};]|\([^()]*\))*\)"
                  r"(?:\s*(?:const|noexcept|override|final|SYLAR_\w+(?:\([^()]*\))?|->\s*[\w:<>*& ]+(?:\([^()]*\))?))*"
                  r"(?:\s*:\s(?:[^{};]|\{[^{}]*\})*?)?\s*\{")


def functions(text):
    return sum(re.sub(r".*::", "", match[1]) not in KEYWORDS and not match[1].startswith("SYLAR_") for match in BODY.finditer(text))


def count_checks(root):
    sums = [0, 0]
    for module in (*MODULES, None):
        if module:
            paths = [path for path in sorted((root / "sylar" / module).rglob("*")) if path.suffix in (".h", ".cc")]
            texts = [COMMENT.sub("", path.read_text()) for path in paths]
            counts = [sum(map(functions, texts)), sum(len(CHECK.findall(text)) for text in texts)]
            sums = [a + b for a, b in zip(sums, counts)]
        else:
            counts = sums
        print(f"{module or 'all':6} {counts[0]:5} functions {counts[1]:4} checks {counts[1] / max(counts[0], 1):.2f} a function")


def count_growth(root):
    """Prints the counts, and returns how many are above their ceilings."""
    texts = [path.read_text() for top in ("sylar", "include") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc")]
    code = [COMMENT.sub("", text) for text in texts]
    above = 0
    for name, (pattern, ceiling) in CEILINGS.items():
        searched = texts if name == "NOLINT" else code  # which is a comment
        count = sum(len(re.findall(pattern, text, re.MULTILINE)) for text in searched)
        print(f"{name:23} {count:4}, at most {ceiling}{' - too many' if count > ceiling else ''}")
        above += count > ceiling
    return above


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    count_checks(root)
    return min(count_growth(root), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
