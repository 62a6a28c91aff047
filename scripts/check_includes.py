#!/usr/bin/env python3
"""Holds the sources of sylar/ to the rooms of sylar/CMakeLists.txt.

The LINKS of a room in that file are the only source of truth: a room may include itself and what stands there, nothing else.
Also held: no cycle of rooms or of headers, one spelling of an include, the head of a header, every source listed, and the few
things that may be used in one place only. Prints `file:line: what is wrong; what would be right` and exits with 1.

    check_includes.py [root of the tree]
"""

import re
import sys
from pathlib import Path

ROOM = re.compile(r"sylar_room\(\s*(\w+)([^)]*)\)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""
    r"""|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
NO_REGEX = "std::regex is slow and overflows the stack on long input; parse by hand"

# What may be included, or written, in one place only: (pattern, files that may, what would be right).
RESTRICTED_INCLUDES = [
    (re.compile(r"boost/(?!lexical_cast\.hpp)"), re.compile(r"sylar/fiber/context\.\w+"), "only sylar/fiber/context.* may use Boost"),
    (re.compile(r"boost/lexical_cast\.hpp"), re.compile(r"sylar/config/lexical_cast\.h"), "only sylar/config/lexical_cast.h may"),
    (re.compile(r"yaml-cpp/"), re.compile(r"sylar/config/(lexical_cast\.h|yaml_\w+\.cc)"), "only room config may use yaml-cpp"),
    (re.compile(r"spdlog/"), re.compile(r"sylar/base/log\.cc"), "only sylar/base/log.cc may use spdlog; use sylar/base/log.h"),
    (re.compile(r"regex$"), None, NO_REGEX),
]
RESTRICTED_TEXT = [
    (re.compile(r"\bstd\s*::\s*(basic_|w)?regex\b"), None, NO_REGEX),
    (re.compile(r"\bsyscall\s*\("), re.compile(r"sylar/base/sys\.\w+"), "raw system calls go through sylar/base/sys.h"),
]


def blank(code, literals):
    """`code` without comments, and without string and character literals if `literals`; every line keeps its number."""

    def replace(match):
        is_comment = match[0].startswith(("//", "/*"))
        return re.sub(r"[^\n]", " ", match[0]) if is_comment or literals else match[0]

    return COMMENT_OR_LITERAL.sub(replace, code)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def find_cycle(graph):
    """One cycle of `graph` (node -> nodes) as a list that ends where it starts, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for successor in graph.get(node, ()):
            if cycle := visit(successor):
                return cycle
        path.pop()
        done.add(node)
        return None

    return next((cycle for node in graph if (cycle := visit(node))), None)


class Room:
    def __init__(self, line, arguments):
        self.line = line
        self.sources, self.links = set(), []
        keyword = None
        for word in arguments.split():
            if word.isupper():
                keyword = word
            elif keyword == "SOURCES":
                self.sources.add(word)
            elif keyword == "LINKS":
                self.links.append(word)


class Checker:
    def __init__(self, root):
        self.root = Path(root)
        self.problems = []
        self.header_includes = {}
        self.rooms = {}
        self.cmake = "sylar/CMakeLists.txt"

    def report(self, file, line, text):
        self.problems.append(f"{file}:{line}: {text}")

    def run(self):
        self.read_rooms()
        files = sorted(p for p in self.root.glob("sylar/**/*") if p.suffix in (".h", ".cc"))
        for path in files:
            self.check_file(path.relative_to(self.root).as_posix(), path.read_text())
        if cycle := find_cycle(self.header_includes):
            self.report(cycle[0], 1, f"headers include each other in a cycle: {' -> '.join(cycle)}; forward-declare instead")
        return len(files)

    def read_rooms(self):
        text = re.sub(r"#[^\n]*", "", (self.root / self.cmake).read_text())
        self.rooms = {match[1]: Room(line_of(text, match.start()), match[2]) for match in ROOM.finditer(text)}
        if not self.rooms:
            self.report(self.cmake, 1, "no sylar_room(...) found; every room is declared with it")
        for name, room in self.rooms.items():
            for link in room.links:
                if link not in self.rooms:
                    known = ", ".join(self.rooms)
                    self.report(self.cmake, room.line, f"room {name} links {link}, which is no room; rooms: {known}")
        if cycle := find_cycle({name: room.links for name, room in self.rooms.items()}):
            self.report(self.cmake, self.rooms[cycle[0]].line, f"rooms link each other in a cycle: {' -> '.join(cycle)}")

    def check_file(self, file, text):
        parts = file.split("/")
        room = parts[1] if len(parts) > 2 else None  # None: an umbrella header right in sylar/, which may include all
        if room is not None and room not in self.rooms:
            self.report(file, 1, f"{room} is no room; declare it with sylar_room({room} ...) in {self.cmake}")
            return
        if file.endswith(".h"):
            self.check_head(file, text)
        elif room is not None and "/".join(parts[1:]) not in self.rooms[room].sources:
            self.report(file, 1, f"is never compiled; add {'/'.join(parts[1:])} to SOURCES of room {room} in {self.cmake}")
        code = blank(text, literals=False)
        for match in INCLUDE.finditer(code):
            self.check_include(file, line_of(code, match.start(1)), room, match[1], match[2])
        code = blank(text, literals=True)
        for pattern, allowed, right in RESTRICTED_TEXT:
            for match in pattern.finditer(code):
                if not (allowed and allowed.fullmatch(file)):
                    self.report(file, line_of(code, match.start()), f"{match[0]}: {right}")

    def check_head(self, file, text):
        if not text.startswith(("//", "/*")):
            self.report(file, 1, "a header starts with a comment: what it is and when to choose it")
        code = blank(text, literals=False)
        first = re.search(r"\S[^\n]*", code)
        if not first or first[0].strip() != "#pragma once":
            line = line_of(code, first.start()) if first else 1
            self.report(file, line, "#pragma once must be the first line after the head comment")

    def check_include(self, file, line, room, quote, target):
        for pattern, allowed, right in RESTRICTED_INCLUDES:
            if pattern.match(target) and not (allowed and allowed.fullmatch(file)):
                self.report(file, line, f"includes {target}; {right}")
        path = re.fullmatch(r"sylar/(\w+)/\w+\.h", target)
        if quote == "<":
            if target.startswith("sylar/"):
                self.report(file, line, f'includes <{target}>; write "{target}"')
            return
        if not path:
            self.report(file, line, f'includes "{target}"; write "sylar/room/x.h", the full path (third parties: <...>)')
            return
        if not (self.root / target).is_file():
            self.report(file, line, f'includes "{target}", which does not exist')
            return
        self.header_includes.setdefault(file, []).append(target)
        other = path[1]
        if room is None or other == room:
            return
        links = self.rooms[room].links
        if other not in links:
            allowed = ", ".join(links) or "itself"
            self.report(file, line, f'room {room} includes "{target}" of room {other}; it may include only: {allowed}')


def main(arguments):
    root = arguments[0] if arguments else Path(__file__).resolve().parent.parent
    checker = Checker(root)
    count = checker.run()
    if checker.problems:
        print("\n".join(checker.problems), file=sys.stderr)
        return 1
    print(f"includes: {count} files in {len(checker.rooms)} rooms are in order")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
