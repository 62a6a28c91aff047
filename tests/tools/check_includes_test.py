#!/usr/bin/env python3
"""scripts/check_includes.py finds each kind of fault that it promises to find, names its place, and accepts a tree in order."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_includes.py"

ROOMS = """
# One comment with sylar_room(ghost LINKS nowhere) in it.
function(sylar_room name)
endfunction()
sylar_room(base
  SOURCES base/a.cc
  LIBRARIES spdlog::spdlog)
sylar_room(timer SOURCES timer/t.cc LINKS base)
sylar_room(fiber SOURCES fiber/f.cc LINKS base timer)
sylar_room(hook OBJECT SOURCES hook/h.cc LINKS fiber)
"""
ORDERLY = {
    "sylar/CMakeLists.txt": ROOMS,
    "sylar/base/a.h": "// What a is.\n//\n// More.\n#pragma once\n\n#include <vector>\n",
    "sylar/base/a.cc": '#include "sylar/base/a.h"\n// std::regex, syscall(1)\nauto x = "std::regex" "syscall(2)";\n',
    "sylar/timer/t.h": '/* What t is. */\n#pragma once\n#include "sylar/base/a.h"\n',
    "sylar/timer/t.cc": '#include "sylar/timer/t.h"\n',
    "sylar/fiber/f.cc": '#include "sylar/base/a.h"\n#include "sylar/timer/t.h"\n',
    "sylar/hook/h.cc": "",
    "sylar/sylar.h": '// All of it.\n#pragma once\n#include "sylar/timer/t.h"\n',
}
HEAD = "// Head.\n#pragma once\n"


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
        self.assertIn("7 files in 4 rooms", result.stdout)

    def testUpwardIncludeFails(self):
        self.assertFault("sylar/base/a.cc:2", "may include only: itself", {"sylar/base/a.cc": '\n#include "sylar/timer/t.h"\n'})

    # A room that is linked only through another room must still be named.
    def testIndirectLinkFails(self):
        self.assertFault("sylar/hook/h.cc:1", "may include only: fiber", {"sylar/hook/h.cc": '#include "sylar/timer/t.h"\n'})

    def testCycleOfRoomsFails(self):
        self.assertFault("sylar/CMakeLists.txt:5", "base -> timer -> base",
                         {"sylar/CMakeLists.txt": ROOMS.replace("LIBRARIES spdlog::spdlog", "LINKS timer")})

    def testLinkToUnknownRoomFails(self):
        self.assertFault("sylar/CMakeLists.txt:10", "links fibre, which is no room",
                         {"sylar/CMakeLists.txt": ROOMS.replace("LINKS fiber", "LINKS fibre")})

    def testCycleOfHeadersFails(self):
        self.assertFault("sylar/base/a.h:1", "sylar/base/a.h -> sylar/base/b.h -> sylar/base/a.h", {
            "sylar/base/a.h": HEAD + '#include "sylar/base/b.h"\n',
            "sylar/base/b.h": HEAD + '#include "sylar/base/a.h"\n',
        })

    def testUnknownRoomFails(self):
        self.assertFault("sylar/attic/x.cc:1", "attic is no room", {"sylar/attic/x.cc": ""})

    def testUnlistedSourceFails(self):
        self.assertFault("sylar/base/b.cc:1", "add base/b.cc to SOURCES of room base", {"sylar/base/b.cc": ""})

    def testHeaderWithoutHeadCommentFails(self):
        self.assertFault("sylar/base/b.h:1", "starts with a comment", {"sylar/base/b.h": "#pragma once\n// Late.\n"})

    def testHeaderWithoutPragmaOnceFails(self):
        text = "// Head.\n#include <vector>\n#pragma once\n"
        self.assertFault("sylar/base/b.h:2", "#pragma once must be", {"sylar/base/b.h": text})

    def testSpellingsOfAnInclude(self):
        for target in ('"a.h"', '"base/a.h"', '"../base/a.h"', '"sylar/./base/a.h"', '"sylar/sylar.h"', "<sylar/base/a.h>"):
            with self.subTest(target):
                self.assertFault("sylar/timer/t.cc:1", "write", {"sylar/timer/t.cc": f"#include {target}\n"})

    def testMissingHeaderFails(self):
        self.assertFault("sylar/timer/t.cc:1", "does not exist", {"sylar/timer/t.cc": '# include "sylar/base/none.h"\n'})

    def testRestrictedUses(self):
        for text, words in (
            ("#include <boost/context/fiber.hpp>", "only sylar/fiber/context.*"),
            ("#include <spdlog/logger.h>", "only sylar/base/log.cc"),
            ("#include <regex>", "std::regex"),
            ("std::regex r;", "std::regex"),
            ("std::wregex r;", "std::regex"),
            ("long r = ::syscall(1);", "sylar/base/sys.h"),
            ("char c = '\"'; long n = 1'000 + syscall (1);", "sylar/base/sys.h"),
        ):
            with self.subTest(text):
                self.assertFault("sylar/timer/t.cc:2", words, {"sylar/timer/t.cc": "/* a\n*/" + text + "\n"})

    def testRestrictedUsesAreAllowedInTheirPlace(self):
        rooms = ROOMS.replace("a.cc", "a.cc base/log.cc base/sys.cc").replace("f.cc", "f.cc fiber/context.cc")
        result = self.check({
            "sylar/CMakeLists.txt": rooms,
            "sylar/base/log.cc": "#include <spdlog/logger.h>\n",
            "sylar/base/sys.cc": "long r = ::syscall(1);\n",
            "sylar/fiber/context.cc": "#include <boost/context/detail/fcontext.hpp>\n",
        })
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
