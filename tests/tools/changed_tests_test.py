#!/usr/bin/env python3
"""scripts/changed_tests.py finds the folders of tests that a change can reach, all if it cannot tell, and sees every change."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "changed_tests.py"

TREE = {
    "sylar/CMakeLists.txt": """
sylar_module(base HEADERS a.h SOURCES base/a.cc)
sylar_module(timer HEADERS t.h SOURCES timer/t.cc LINKS base)
sylar_module(hook HEADERS h.h SOURCES hook/h.cc LINKS base timer)
sylar_module(http HEADERS w.h SOURCES http/w.cc LINKS hook)
sylar_runner(run SOURCES run/main.cc LINKS hook)
""",
    "include/sylar/a.h": "",
    "include/sylar/t.h": "",
    "include/sylar/h.h": "",
    "include/sylar/w.h": "",
    "include/sylar/sylar.h": '#include "sylar/t.h"\n#include "sylar/w.h"\n',
    "sylar/timer/t.cc": "",
    "tests/base/tests.cmake": "sylar_tests(base LINKS sylar::base FILES a)",
    "tests/base/a_test.cc": '#include "tests/support/s.h"\n',
    "tests/timer/tests.cmake": "sylar_tests(timer LINKS sylar::timer FILES t)\nadd_test(NAME x COMMAND x docs/design/timer.md)",
    "tests/timer/t_test.cc": '#include "sylar/t.h"\n#include "tests/base/shared.h"\n',
    "tests/base/shared.h": "",
    "tests/hook/tests.cmake": "sylar_test(hook/h_test LINKS sylar::sylar)\n$<TARGET_FILE:sylar-run> ${DIR}/base/more.cc",
    "tests/hook/h_test.cc": '#include "sylar/h.h"\n',
    "tests/base/more.cc": "",
    "tests/integration/tests.cmake": "$<TARGET_FILE:example_fibers> $<TARGET_FILE:example_server>",
    "tests/integration/servers.py": "",
    "tests/jobs/tests.cmake": "if(TARGET jobs)\nadd_test(NAME x COMMAND jobs -c ${SOURCE}/examples/jobs/config)",
    "tests/jobs/jobs_test.py": 'sys.path.append(parents[1] / "integration")\n',
    "tests/support/s.h": "",
    "examples/fibers.cc": '#include "sylar/t.h"\n',
    "examples/server.cc": '#include "sylar/sylar.h"\n',
    "examples/other.cc": '#include "sylar/sylar.h"\n',
    "examples/jobs/main.cc": '#include "sylar/a.h"\n',
}


class ChangedTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in TREE.items():
            self.write(name, text)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()

    def write(self, name, text="changed\n"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.root, check=True)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=one")

    def reached(self, *arguments):
        run = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], cwd=self.root, capture_output=True, text=True, check=True)
        return run.stdout.split()

    def assertReaches(self, file, *folders):
        self.write(file)
        self.assertEqual(self.reached("HEAD"), sorted(folders), file)
        self.git("add", "--all")
        self.git("reset", "--quiet", "--hard")

    def testAModuleReachesWhatLinksIt(self):
        self.assertReaches("sylar/base/a.cc", "base", "hook", "integration", "jobs", "timer")
        self.assertReaches("include/sylar/t.h", "hook", "integration", "timer")
        self.assertReaches("sylar/hook/h.cc", "hook", "integration")
        self.assertReaches("sylar/http/new.cc", "integration")  # tests/hook links all, and includes nothing of it
        self.assertReaches("sylar/run/main.cc", "hook")

    def testATestsFileReachesItsUsers(self):
        self.assertReaches("tests/timer/t_test.cc", "timer")
        self.assertReaches("tests/timer/corpus/new", "timer")
        self.assertReaches("tests/base/shared.h", "base", "timer")
        self.assertReaches("tests/base/more.cc", "base", "hook")
        self.assertReaches("tests/integration/servers.py", "integration", "jobs")

    def testAnExampleReachesWhatRunsIt(self):
        self.assertReaches("examples/fibers.cc", "integration")
        self.assertReaches("examples/other.cc")
        self.assertReaches("examples/jobs/main.cc", "jobs")
        self.assertReaches("examples/jobs/config/jobs.yml", "jobs")

    def testDocumentsReachOnlyWhatNamesThem(self):
        self.assertReaches("README.md")
        self.assertReaches("docs/guide/1.md")
        self.assertReaches("docs/design/http.md")
        self.assertReaches("docs/design/timer.md", "timer")
        self.assertReaches("bench/run_all.py")

    def testWhatCannotBeMappedRunsAll(self):
        for file in ("CMakePresets.json", "sylar/CMakeLists.txt", "tests/timer/tests.cmake", "tests/support/s.h", "scripts/x.sh",
                     ".ci/run", "include/sylar/sylar.h", "include/sylar/of_no_module.h", "sylar/none/x.cc"):
            self.write(file, TREE.get(file, "") + "\n")
            self.assertEqual(self.reached("HEAD"), ["all"], file)
            self.git("add", "--all")
            self.git("reset", "--quiet", "--hard")

    def testWhatIsCommittedAndWhatIsNotCount(self):
        self.assertEqual(self.reached(), [])
        self.git("checkout", "--quiet", "-b", "work")
        self.write("tests/timer/t_test.cc")
        self.commit()
        self.assertEqual(self.reached(), ["timer"])
        self.assertEqual(self.reached("HEAD"), [])
        self.write("tests/base/a_test.cc")
        (self.root / "examples/fibers.cc").unlink()
        self.write("tests/jobs/new_test.py")
        self.assertEqual(self.reached(), ["base", "integration", "jobs", "timer"])

    # A folder that is included otherwise has no label, so its tests would never be chosen.
    def testEachFolderOfThisTreeIsLabelled(self):
        labelled = re.findall(r"^sylar_test_folder\((\w+)", (ROOT / "tests/CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertEqual(sorted(labelled), sorted(path.parent.name for path in ROOT.glob("tests/*/tests.cmake")))


if __name__ == "__main__":
    unittest.main()
