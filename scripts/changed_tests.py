#!/usr/bin/env python3
"""Which folders of tests/ a change can reach. Prints one a line, nothing if there is none, or `all` if it cannot tell.

A test reaches the modules that it links by name or includes, and those that these link (LINKS in sylar/CMakeLists.txt); the files
of tests/ that it includes; the examples that it runs, with their modules; and what its tests.cmake names by its path.

    changed_tests.py [BASE]      what differs from commit BASE, committed or not; by default from where this branch left main
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from check_includes import INCLUDE, UMBRELLA, Checker

LINKED = re.compile(r"\bsylar(?:::|_|-)(\w+)")
EXAMPLE = re.compile(r"\bexample_(\w+)|sylar_example_test\(\w+ (\w+)|\bTARGET (\w+)\b")
OF_TESTS = re.compile(r"(?:DIR\}|\.\.|tests)/((?:\w+/)+\w+\.\w+)")
NO_TEST = re.compile(r"(?:docs|bench)/.*|.*\.md|LICENSE|\.gitignore|\.clang-(?:format|tidy)")  # benchmarks are never run by ctest
BUILD = re.compile(r"(?:.*/)?CMakeLists\.txt|.*\.cmake")


class Reach:
    def __init__(self, root):
        self.root = Path(root)
        self.checker = Checker(root)
        self.checker.read_modules()
        self.modules = self.checker.modules
        self.folders = {path.parent.name: path.read_text() for path in sorted(self.root.glob("tests/*/tests.cmake"))}
        self.files = {folder: self.files_of(folder) for folder in self.folders}
        self.examples = {folder: self.examples_of(folder) for folder in self.folders}
        self.reached_modules = {folder: self.modules_of(folder) for folder in self.folders}

    def included(self, file):
        return [target for _, target in INCLUDE.findall((self.root / file).read_text())]

    def below(self, folder):
        paths = (path for path in (self.root / folder).rglob("*") if path.suffix in (".cc", ".h", ".py", ".cmake"))
        return [path.relative_to(self.root).as_posix() for path in paths]

    def files_of(self, folder):
        """The folder's own files, and those of other folders that they use."""
        found, ahead = set(), self.below(f"tests/{folder}")
        ahead += [f"tests/{file}" for file in OF_TESTS.findall(self.folders[folder])]
        while ahead:
            file = ahead.pop()
            if file in found or not (self.root / file).is_file():
                continue
            found.add(file)
            if file.endswith(".py"):  # extends its path by other folders
                for other in re.findall(r'"(\w+)"', (self.root / file).read_text()):
                    ahead += [each for each in self.below(f"tests/{other}") if other in self.folders and each.endswith(".py")]
            else:
                ahead += [target for target in self.included(file) if target.startswith("tests/")]
        return found

    def examples_of(self, folder):
        """The names of the examples that the tests run."""
        return {name for names in EXAMPLE.findall(self.folders[folder]) for name in names if name}

    def modules_of(self, folder):
        files = list(self.files[folder])
        for name in self.examples[folder]:
            files += [f"examples/{name}.cc", *self.below(f"examples/{name}")]
        sources = [file for file in files if file.endswith((".cc", ".h")) and (self.root / file).is_file()]
        headers = {self.checker.file_of(target) for file in sources for target in self.included(file)}
        if UMBRELLA in headers:
            headers |= {self.checker.file_of(target) for target in self.included(UMBRELLA)}
        ahead = [folder, *LINKED.findall(self.folders[folder]), *(self.checker.module_of(header) for header in headers if header)]
        found = set()
        while ahead:
            name = ahead.pop()
            if name in self.modules and name not in found:
                found.add(name)
                ahead += self.modules[name].links
        return found

    def named(self, file):
        """The folders whose tests.cmake names the file, or a folder that it is in."""
        paths = [path.as_posix() for path in (Path(file), *Path(file).parents) if path.parent.name]
        name = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, paths))})(?![\w/]|\.\w)")
        return {folder for folder, text in self.folders.items() if paths and name.search(text)}

    def tests_of(self, file):
        """The folders that a file can reach. None: cannot tell."""
        top, *below = file.split("/")
        if BUILD.fullmatch(file):
            return None
        if top in ("sylar", "include"):
            module = self.checker.module_of(file)
            return {folder for folder in self.folders if module in self.reached_modules[folder]} if module else None
        if top == "tests":
            users = {folder for folder in self.folders if file in self.files[folder]}
            return users | {below[0]} if below[0] in self.folders else None
        if top == "examples":
            return self.named(file) | {folder for folder in self.folders if Path(below[0]).stem in self.examples[folder]}
        return self.named(file) or (set() if NO_TEST.fullmatch(file) else None)

    def tests(self, changed):
        found = set()
        for file in changed:
            reached = self.tests_of(file)
            if reached is None:
                return ["all"]
            found |= reached
        return sorted(found)


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def main(arguments):
    os.chdir(git("rev-parse", "--show-toplevel")[0])
    base = arguments[0] if arguments else git("merge-base", "HEAD", "main")[0]
    changed = git("diff", "--name-only", "--no-renames", base) + git("ls-files", "--others", "--exclude-standard")
    print(*Reach(".").tests(changed), sep="\n", end="\n" if changed else "")


if __name__ == "__main__":
    main(sys.argv[1:])
