#!/usr/bin/env python3
"""scripts/check_includes.py finds each kind of fault that it promises to find, names its place, and accepts a tree in order."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_includes.py"

MODULES = """
# One comment with sylar_module(ghost LINKS nowhere) in it.
function(sylar_module name)
endfunction()
sylar_module(base
  HEADERS a.h
  SOURCES base/a.cc
  LIBRARIES spdlog::spdlog)
sylar_module(timer HEADERS t.h SOURCES timer/t.cc LINKS base)
sylar_module(fiber SOURCES fiber/f.cc LINKS base timer)
sylar_module(hook OBJECT SOURCES hook/h.cc LINKS fiber)
"""
ORDERLY = {
    "sylar/CMakeLists.txt": MODULES,
    "include/sylar/a.h": "// What a is.\n//\n// More.\n#pragma once\n\n#include <vector>\n",
    "sylar/base/a.cc": '#include "sylar/a.h"\n// std::regex, syscall(1)\nauto x = "std::regex" "syscall(2)";\n',
    "include/sylar/t.h": '/* What t is. */\n#pragma once\n#include "sylar/a.h"\n',
    "sylar/timer/n.h": '// Internal. What n is.\n#pragma once\n#include "sylar/a.h"\n',
    "sylar/timer/t.cc": '#include "sylar/t.h"\n#include "sylar/timer/n.h"\n',
    "sylar/fiber/f.cc": '#include "sylar/a.h"\n#include "sylar/timer/n.h"\n',
    "sylar/hook/h.cc": "",
    "include/sylar/sylar.h": '// All of it.\n#pragma once\n#include "sylar/t.h"\n',
}
HEAD = "// Internal. Head.\n#pragma once\n"


class CheckIncludes(unittest.TestCase):
    def check(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (ORDERLY | changes).items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)

    def assertFault(self, place, words, changes):
        result = self.check(changes)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith(place + ": "), lines[0])
        self.assertIn(words, lines[0])

    def testOrderlyTreePasses(self):
        result = self.check({})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("8 files in 4 modules", result.stdout)

    def testUpwardIncludeFails(self):
        self.assertFault("sylar/base/a.cc:2", "may include only: itself", {"sylar/base/a.cc": '\n#include "sylar/t.h"\n', "include/sylar/t.h": "// T.\n#pragma once\n"})

    # A module that is linked only through another module must still be named.
    def testIndirectLinkFails(self):
        self.assertFault("sylar/hook/h.cc:1", "may include only: fiber", {"sylar/hook/h.cc": '#include "sylar/timer/n.h"\n'})

    def testRoomsOfAModuleIncludeWhatTheyLink(self):
        rooms = MODULES + "sylar_room(timer/low SOURCES l.cc)\nsylar_room(timer/high LINKS low SOURCES h.cc)\n"
        files = {"sylar/CMakeLists.txt": rooms, "sylar/timer/low/l.h": HEAD, "sylar/timer/low/l.cc": "", "sylar/timer/high/h.h": HEAD,
                 "sylar/timer/high/h.cc": '#include "sylar/timer/low/l.h"\n'}
        self.assertEqual(self.check(files).returncode, 0)
        self.assertFault("sylar/timer/low/l.cc:1", 'room low includes "sylar/timer/high/h.h" of room high; it may include only: itself',
                         files | {"sylar/timer/low/l.cc": '#include "sylar/timer/high/h.h"\n'})
        self.assertFault("sylar/timer/new/n.cc:1", "is of no room of module timer", files | {"sylar/timer/new/n.cc": ""})
        self.assertFault("sylar/CMakeLists.txt:12", "timer's rooms link each other in a cycle: low -> high -> low",
                         files | {"sylar/CMakeLists.txt": rooms.replace("low SOURCES", "low LINKS high SOURCES", 1)})
        self.assertFault("sylar/CMakeLists.txt:13", "timer's room high links lower, which is no room",
                         files | {"sylar/CMakeLists.txt": rooms.replace("LINKS low", "LINKS lower"), "sylar/timer/high/h.cc": ""})

    def testCycleOfModulesFails(self):
        self.assertFault("sylar/CMakeLists.txt:5", "base -> timer -> base",
                         {"sylar/CMakeLists.txt": MODULES.replace("LIBRARIES spdlog::spdlog", "LINKS timer")})

    def testLinkToUnknownModuleFails(self):
        self.assertFault("sylar/CMakeLists.txt:11", "links fibre, which is no module",
                         {"sylar/CMakeLists.txt": MODULES.replace("LINKS fiber", "LINKS fibre")})

    def testCycleOfHeadersFails(self):
        self.assertFault("sylar/base/a.h:1", "sylar/base/a.h -> sylar/base/b.h -> sylar/base/a.h", {
            "sylar/base/a.h": HEAD + '#include "sylar/base/b.h"\n',
            "sylar/base/b.h": HEAD + '#include "sylar/base/a.h"\n',
        })

    def testUnknownModuleFails(self):
        self.assertFault("sylar/attic/x.cc:1", "is of no module", {"sylar/attic/x.cc": ""})

    def testUnlistedSourceFails(self):
        self.assertFault("sylar/base/b.cc:1", "add base/b.cc to SOURCES of module base", {"sylar/base/b.cc": ""})

    def testHeaderWithoutHeadCommentFails(self):
        self.assertFault("include/sylar/a.h:1", "starts with a comment", {"include/sylar/a.h": "#pragma once\n// Late.\n"})

    def testHeaderWithoutPragmaOnceFails(self):
        text = "// Internal. Head.\n#include <vector>\n#pragma once\n"
        self.assertFault("sylar/base/b.h:2", "#pragma once must be", {"sylar/base/b.h": text})

    def testSpellingsOfAnInclude(self):
        for target in ('"a.h"', '"base/a.h"', '"../base/a.h"', '"sylar/./base/a.h"', "<sylar/a.h>"):
            with self.subTest(target):
                self.assertFault("sylar/timer/t.cc:1", "write", {"sylar/timer/t.cc": f"#include {target}\n"})

    def testPublicHeaderThatIncludesAnInternalFails(self):
        self.assertFault("include/sylar/t.h:3", "is public and includes", {"include/sylar/t.h": '// T.\n#pragma once\n#include "sylar/timer/n.h"\n'})

    def testPublicHeaderThatNoModuleListsFails(self):
        self.assertFault("include/sylar/b.h:1", "add it to HEADERS", {"include/sylar/b.h": "// B.\n#pragma once\n"})

    def testListedHeaderThatIsMissingFails(self):
        self.assertFault("sylar/CMakeLists.txt:5", "has b.h, which is not in include/sylar",
                         {"sylar/CMakeLists.txt": MODULES.replace("HEADERS a.h", "HEADERS a.h b.h")})

    def testWordInternalIsForInternalHeadersOnly(self):
        self.assertFault("include/sylar/a.h:1", "if it is not in include/", {"include/sylar/a.h": HEAD})
        self.assertFault("sylar/base/b.h:1", "if it is not in include/", {"sylar/base/b.h": "// B.\n#pragma once\n"})

    def testInternalOutsideOfDetailFails(self):
        text = HEAD + "namespace sylar {{\n{}\n}}  // namespace sylar\nnamespace sylar::detail {{\nclass N {{}};\n}}  // namespace sylar::detail\n"
        self.assertFault("sylar/timer/n.h:3", "B is internal; it belongs in namespace sylar::detail", {"sylar/timer/n.h": text.format("class B final : A {\n};")})
        self.assertEqual(self.check({"sylar/timer/n.h": text.format("class B;\nstruct A::Impl {\n};")}).returncode, 0)

    def testPublicHeaderThatBringsTooManyFails(self):
        many = [f"p{i}.h" for i in range(13)]
        headers = {f"include/sylar/{name}": "// P.\n#pragma once\n" for name in many}
        includes = "".join(f'#include "sylar/{name}"\n' for name in many)
        self.assertFault("include/sylar/a.h:1", "brings 13 headers", headers | {
            "include/sylar/a.h": "// A.\n#pragma once\n" + includes,
            "include/sylar/t.h": "// T.\n#pragma once\n",
            "sylar/timer/n.h": HEAD,
            "sylar/CMakeLists.txt": MODULES.replace("HEADERS a.h", "HEADERS a.h " + " ".join(many)),
        })

    # No header includes the other's: only the sources do.
    def testCycleOfUnitsFails(self):
        self.assertFault("sylar/CMakeLists.txt:1", "base/b -> base/c -> base/b", {
            "sylar/CMakeLists.txt": MODULES.replace("base/a.cc", "base/a.cc base/b.cc base/c.cc"),
            "sylar/base/b.h": HEAD,
            "sylar/base/c.h": HEAD,
            "sylar/base/b.cc": '#include "sylar/base/c.h"\n',
            "sylar/base/c.cc": '#include "sylar/base/b.h"\n',
        })

    def testMissingHeaderFails(self):
        self.assertFault("sylar/timer/t.cc:1", "does not exist", {"sylar/timer/t.cc": '# include "sylar/base/none.h"\n'})

    # RD-6, RD-9, SEC-57
    def testRestrictedUses(self):
        for text, words in (
            ("#include <boost/context/fiber.hpp>", "only sylar/fiber/context.*"),
            ("#include <spdlog/logger.h>", "only sylar/base/log.cc"),
            ("#include <yaml-cpp/yaml.h>", "only sources of module config"),
            ("#include <regex>", "std::regex"),
            ("std::regex r;", "std::regex"),
            ("std::wregex r;", "std::regex"),
            ("long r = ::syscall(1);", "sylar/base/sys.h"),
            ("char c = '\"'; long n = 1'000 + syscall (1);", "sylar/base/sys.h"),
        ):
            with self.subTest(text):
                self.assertFault("sylar/timer/t.cc:2", words, {"sylar/timer/t.cc": "/* a\n*/" + text + "\n"})

    def testRestrictedUsesAreAllowedInTheirPlace(self):
        modules = MODULES.replace("a.cc", "a.cc base/log.cc base/sys.cc").replace("f.cc", "f.cc fiber/context.cc")
        result = self.check({
            "sylar/CMakeLists.txt": modules,
            "sylar/base/log.cc": "#include <spdlog/logger.h>\n",
            "sylar/base/sys.cc": "long r = ::syscall(1);\n",
            "sylar/fiber/context.cc": "#include <boost/context/detail/fcontext.hpp>\n",
        })
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def testLongLines(self):
        for file in ("include/sylar/t.h", "sylar/timer/t.cc", "tests/timer/support.h", "bench/timer/run.cc", "examples/timers.cc"):
            with self.subTest(file):
                head = ORDERLY.get(file, "")
                place = f"{file}:{len(head.splitlines()) + 2}"
                self.assertFault(place, "has 133 columns; at most 132", {file: head + "//" + "\u00e9" * 130 + "\n//" + "x" * 131 + "\n"})


if __name__ == "__main__":
    unittest.main()
