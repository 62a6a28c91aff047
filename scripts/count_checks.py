#!/usr/bin/python3
"""How many checks (SYLAR_CHECK, SYLAR_DCHECK) the modules of fibers and waiting have for each function. Prints one line a module.

Functions are counted by their form, so the source must be as .clang-format makes it: a parameter list that a body follows, and no
keyword or lambda before it. Members that the compiler makes are none.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("fiber", "sched", "io", "timer", "hook")
CHECK = re.compile(r"\bSYLAR_D?CHECK(?:_(?:EQ|NE|LT|LE|GT|GE))?\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
KEYWORDS = {"if", "for", "while", "switch", "catch", "return", "do", "else", "sizeof", "requires", "decltype", "alignas", "noexcept"}
BODY = re.compile(r"([~\w:<>]+|operator[^\s\w(]+)\s*\(([^(){};]|\([^()]*\))*\)"
                  r"(?:\s*(?:const|noexcept|override|final|SYLAR_\w+(?:\([^()]*\))?|->\s*[\w:<>*& ]+(?:\([^()]*\))?))*"
                  r"(?:\s*:\s(?:[^{};]|\{[^{}]*\})*?)?\s*\{")


def functions(text):
    return sum(re.sub(r".*::", "", match[1]) not in KEYWORDS and not match[1].startswith("SYLAR_") for match in BODY.finditer(text))


def main():
    sums = [0, 0]
    for module in (*MODULES, None):
        if module:
            texts = [COMMENT.sub("", path.read_text()) for path in sorted((ROOT / "sylar" / module).rglob("*")) if path.suffix in (".h", ".cc")]
            counts = [sum(map(functions, texts)), sum(len(CHECK.findall(text)) for text in texts)]
            sums = [a + b for a, b in zip(sums, counts)]
        else:
            counts = sums
        print(f"{module or 'all':6} {counts[0]:5} functions {counts[1]:4} checks {counts[1] / counts[0]:.2f} a function")


if __name__ == "__main__":
    main()
