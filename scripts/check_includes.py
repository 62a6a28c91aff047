#!/usr/bin/env python3
"""Holds the sources of sylar/ and the public headers of include/ to the modules of sylar/CMakeLists.txt.

The LINKS of a module in that file are the only source of truth: a module may include itself and what stands there, nothing else. So it
is for the rooms of a module.
A public header may include public headers only, and reaches few of them. Also held: no cycle of modules, of headers or of units (an
internal header with its source), one spelling of an include, the head of a header, every file listed, the few things that may be
used in one place only, that internals are in `detail`, and that no line is too long, which holds for tests, benchmarks and examples as
well. Prints `file:line: what is wrong; what would be right` and exits with 1.

    check_includes.py [root of the tree]
"""

import re
import sys
from pathlib import Path

MODULE = re.compile(r"sylar_(?:module|runner)\(\s*(\w+)([^)]*)\)")
ROOM = re.compile(r"sylar_room\(\s*(\w+)/(\w+)([^)]*)\)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""
    r"""|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
NAMESPACE = re.compile(r"^namespace (sylar(?:::http)?) \{\n((?:(?!namespace ).*\n)*?)\}  // namespace", re.MULTILINE)
UMBRELLA = "include/sylar/sylar.h"  # may include all
# Public headers from which sylar's users expect that one include brings a server with all that its handlers use.
MAY_REACH_MORE = {UMBRELLA, "include/sylar/application.h", "include/sylar/http/http_server.h"}
MOST_REACHED = 12
COLUMNS = 132
MARK = "sylar/api.h"  # is one macro, and not counted
NO_REGEX = "std::regex is slow and overflows the stack on long input; parse by hand"

# What may be included, or written, in one place only: (pattern, files that may, what would be right).
RESTRICTED_INCLUDES = [
    (re.compile(r"boost/(?!lexical_cast[/.])"), re.compile(r"sylar/fiber/context\.\w+"), "only sylar/fiber/context.* may use Boost"),
    (re.compile(r"boost/lexical_cast[/.]"), re.compile(r"sylar/config/lexical_cast\.cc|" + UMBRELLA), "only sylar/config/lexical_cast.cc may"),
    (re.compile(r"yaml-cpp/"), re.compile(r"sylar/config/(lexical_cast|yaml_\w+)\.cc|" + UMBRELLA), "only sources of module config may use yaml-cpp"),
    (re.compile(r"spdlog/"), re.compile(r"sylar/base/log\.cc"), "only sylar/base/log.cc may use spdlog; use sylar/base/log.h"),
    (re.compile(r"regex$"), None, NO_REGEX),
]
RESTRICTED_TEXT = [
    (re.compile(r"\bstd\s*::\s*(basic_|w)?regex\b"), None, NO_REGEX),
    (re.compile(r"\bsyscall\s*\("), re.compile(r"sylar/(base/sys\.\w+|hook/process/hook_syscall\.cc)"), "raw system calls go through sylar/base/sys.h"),
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


class Module:
    def __init__(self, line, arguments):
        self.line = line
        self.headers, self.sources, self.links, self.rooms = set(), set(), [], {}
        lists = {"HEADERS": self.headers.add, "SOURCES": self.sources.add, "PROGRAM": self.sources.add, "LINKS": self.links.append}
        add = None
        for word in arguments.split():
            if word.isupper():
                add = lists.get(word)
            elif add:
                add(word)


class Checker:
    def __init__(self, root):
        self.root = Path(root)
        self.problems = []
        self.header_includes = {}  # header -> headers
        self.unit_includes = {}  # (module, name) -> the same
        self.modules = {}
        self.module_of_public = {}
        self.cmake = "sylar/CMakeLists.txt"

    def report(self, file, line, text):
        self.problems.append(f"{file}:{line}: {text}")

    def run(self):
        self.read_modules()
        public = sorted(self.root.glob("include/sylar/**/*.h"))
        internal = sorted(p for p in self.root.glob("sylar/**/*") if p.suffix in (".h", ".cc"))
        for path in public + internal:
            self.check_file(path.relative_to(self.root).as_posix(), path.read_text())
        if cycle := find_cycle(self.header_includes):
            self.report(self.file_of(cycle[0]), 1, f"headers include each other in a cycle: {' -> '.join(cycle)}; forward-declare instead")
        elif not self.problems and (cycle := find_cycle(self.unit_includes)):
            units = " -> ".join("/".join(unit) for unit in cycle)
            self.report(self.cmake, 1, f"units, internal headers with their sources, include each other in a cycle: {units}")
        for top in ("include", "sylar", "tests", "bench", "examples"):
            for path in sorted(p for p in self.root.glob(f"{top}/**/*") if p.suffix in (".h", ".cc")):
                self.check_columns(path.relative_to(self.root).as_posix(), path.read_text())
        reached = [self.check_reach(path.relative_to(self.root / "include").as_posix()) for path in public]
        return len(public) + len(internal), sorted(reached)[:-1]  # without the umbrella

    def file_of(self, header):
        """Where the header stands that is included as `header`: a path below the root, or None."""
        return next((file for file in (f"include/{header}", header) if (self.root / file).is_file()), None)

    def read_modules(self):
        text = re.sub(r"#[^\n]*", "", (self.root / self.cmake).read_text())
        self.modules = {match[1]: Module(line_of(text, match.start()), match[2]) for match in MODULE.finditer(text)}
        if not self.modules:
            self.report(self.cmake, 1, "no sylar_module(...) found; every module is declared with it")
        for match in ROOM.finditer(text):
            module, room = self.modules[match[1]], Module(line_of(text, match.start()), match[3])
            module.rooms[match[2]] = room
            module.sources |= {f"{match[1]}/{match[2]}/{source}" for source in room.sources}
        self.check_links("module", self.modules)
        for name, module in self.modules.items():
            self.check_links(f"{name}'s room", module.rooms)
            for header in module.headers:
                self.module_of_public[f"sylar/{header}"] = name
                if not (self.root / "include/sylar" / header).is_file():
                    self.report(self.cmake, module.line, f"module {name} has {header}, which is not in include/sylar")
            self.check_acyclic(f"{name}'s rooms", module.rooms)
        self.check_acyclic("modules", self.modules)

    def check_links(self, kind, nodes):
        for name, node in nodes.items():
            for link in node.links:
                if link not in nodes:
                    self.report(self.cmake, node.line, f"{kind} {name} links {link}, which is no {kind.split()[-1]}; there are: {', '.join(nodes)}")

    def check_acyclic(self, kind, nodes):
        if cycle := find_cycle({name: node.links for name, node in nodes.items()}):
            self.report(self.cmake, nodes[cycle[0]].line, f"{kind} link each other in a cycle: {' -> '.join(cycle)}")

    def module_of(self, file):
        """The module of a file below the root; None: it has none."""
        if file.startswith("include/"):
            return self.module_of_public.get(file.removeprefix("include/"))
        parts = file.split("/")
        return parts[1] if len(parts) > 2 and parts[1] in self.modules else None

    def room_of(self, file):
        """The room of a file below the root, in its module; None: it stands in none."""
        parts = file.split("/")
        return parts[2] if len(parts) > 3 and parts[0] == "sylar" else None

    def check_file(self, file, text):
        module = self.module_of(file)
        if file == UMBRELLA:
            pass
        elif module is None:
            right = "add it to HEADERS" if file.startswith("include/") else "declare its module with sylar_module(...)"
            self.report(file, 1, f"is of no module; {right} in {self.cmake}")
            return
        elif (room := self.room_of(file)) and room not in self.modules[module].rooms:
            self.report(file, 1, f"is of no room of module {module}; declare it with sylar_room({module}/{room} ...) in {self.cmake}")
            return
        if file.endswith(".h"):
            self.check_head(file, text)
        elif file.removeprefix("sylar/") not in self.modules[module].sources:
            self.report(file, 1, f"is never compiled; add {file.removeprefix('sylar/')} to SOURCES of module {module} in {self.cmake}")
        code = blank(text, literals=False)
        for match in INCLUDE.finditer(code):
            self.check_include(file, line_of(code, match.start(1)), module, match[1], match[2])
        code = blank(text, literals=True)
        for pattern, allowed, right in RESTRICTED_TEXT:
            for match in pattern.finditer(code):
                if not (allowed and allowed.fullmatch(file)):
                    self.report(file, line_of(code, match.start()), f"{match[0]}: {right}")

    def check_columns(self, file, text):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS:
                self.report(file, number, f"has {len(line)} columns; at most {COLUMNS}, so break it")

    def check_head(self, file, text):
        if not text.startswith(("//", "/*")):
            self.report(file, 1, "a header starts with a comment: what it is and when to choose it")
        if text.startswith("// Internal.") == file.startswith("include/"):
            self.report(file, 1, 'a header starts with "// Internal." if it is not in include/, and only then')
        code = blank(text, literals=False)
        for match in NAMESPACE.finditer(text) if not file.startswith("include/") else ():
            if defined := re.search(r"^(?:class|struct|enum class) (\w+)\b(?!::)[^;\n]*\{", match[2], re.MULTILINE):
                self.report(file, line_of(text, match.start()), f"{defined[1]} is internal; it belongs in namespace {match[1]}::detail")
        first = re.search(r"\S[^\n]*", code)
        if not first or first[0].strip() != "#pragma once":
            line = line_of(code, first.start()) if first else 1
            self.report(file, line, "#pragma once must be the first line after the head comment")

    def check_include(self, file, line, module, quote, target):
        for pattern, allowed, right in RESTRICTED_INCLUDES:
            if pattern.match(target) and not (allowed and allowed.fullmatch(file)):
                self.report(file, line, f"includes {target}; {right}")
        if quote == "<":
            if target.startswith("sylar/"):
                self.report(file, line, f'includes <{target}>; write "{target}"')
            return
        if not re.fullmatch(r"sylar(/\w+){1,3}\.h", target):
            self.report(file, line, f'includes "{target}"; write "sylar/x.h" or "sylar/module/x.h", the full path (third parties: <...>)')
            return
        found = self.file_of(target)
        if found is None:
            self.report(file, line, f'includes "{target}", which does not exist')
            return
        if file.startswith("include/") and not found.startswith("include/"):
            self.report(file, line, f'is public and includes "{target}", which is internal; forward-declare, or hide it in a source')
            return
        if file.endswith(".h"):
            self.header_includes.setdefault(file.removeprefix("include/"), []).append(target)
        other = self.module_of(found)
        if module is None or other is None:
            return
        if self.unit_of(file, module) != self.unit_of(found, other):
            self.unit_includes.setdefault(self.unit_of(file, module), []).append(self.unit_of(found, other))
        links = self.modules[module].links
        if other != module and other not in links:
            allowed = ", ".join(links) or "itself"
            self.report(file, line, f'module {module} includes "{target}" of module {other}; it may include only: {allowed}')
        room, next_room = self.room_of(file), self.room_of(found)
        if other == module and room and next_room and room != next_room and next_room not in self.modules[module].rooms[room].links:
            allowed = ", ".join(self.modules[module].rooms[room].links) or "itself"
            self.report(file, line, f'room {room} includes "{target}" of room {next_room}; it may include only: {allowed}')

    @staticmethod
    def unit_of(file, module):
        """An internal header with its source, or a source alone. A public header stands below all of them, by itself."""
        return ("include" if file.startswith("include/") else module, Path(file).stem)

    def check_reach(self, header):
        """How many project headers a public one brings along."""
        reached, ahead = set(), [header]
        while ahead:
            for target in self.header_includes.get(ahead.pop(), []):
                if target not in reached:
                    reached.add(target)
                    ahead.append(target)
        reached.discard(MARK)
        if len(reached) > MOST_REACHED and f"include/{header}" not in MAY_REACH_MORE:
            self.report(f"include/{header}", 1, f"brings {len(reached)} headers of the project along; at most {MOST_REACHED}, better 8")
        return len(reached)


def main(arguments):
    root = arguments[0] if arguments else Path(__file__).resolve().parent.parent
    checker = Checker(root)
    count, reached = checker.run()
    if checker.problems:
        print("\n".join(checker.problems), file=sys.stderr)
        return 1
    print(f"includes: {count} files in {len(checker.modules)} modules are in order")
    if reached:
        middle, most_of_them = reached[len(reached) // 2], reached[len(reached) * 9 // 10]
        print(f"a public header brings along: median {middle}, p90 {most_of_them}, most {reached[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
