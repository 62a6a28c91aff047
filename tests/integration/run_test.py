#!/usr/bin/env python3
"""sylar-run itself: what it starts and refuses, how main ends, what the program finds of its thread and its stack.

    run_test.py run_program sylar-run
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from run_support import RUN, both, result

PROGRAM = sys.argv.pop()
EPOLL_WAITS = {"x86_64": {"232", "281", "441"}}.get(os.uname().machine, {"22", "441"})


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def script(self, name, text, mode=0o755):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path


class Start(Folder):
    def test_main_is_suspended_in_a_fiber(self):
        with subprocess.Popen([RUN, "sleep", "100"]) as process:
            try:
                waits = Path(f"/proc/{process.pid}/syscall")
                deadline = time.monotonic() + 60
                while (call := waits.read_text(encoding="ascii").split()[0]) not in EPOLL_WAITS:
                    self.assertLess(time.monotonic(), deadline, f"sleep waits in system call {call}")
                    time.sleep(0.01)
            finally:
                process.kill()

    def test_arguments_and_environment_arrive(self):
        status, out, _ = both(self, "sh", "-c", 'echo "$0|$1|$X"', "a b", "*", env=dict(os.environ, X="y z"))
        self.assertEqual((status, out), (0, b"a b|*|y z\n"))

    def test_options_after_the_program_are_its_own(self):
        self.assertEqual(result(RUN, "echo", "--help")[1], result("echo", "--help")[1])
        self.assertEqual(result(RUN, "--", "echo", "x"), (0, b"x\n", b""))

    def test_report_tells_what_waited_and_what_held_the_thread(self):
        program = "import os, time; time.sleep(0.05); sum(range(10_000_000)); r, w = os.pipe(); os.write(w, b'x'); os.read(r, 1)"
        status, out, err = result(RUN, "--report", "python3", "-c", program)
        self.assertEqual((status, out), (0, b""))
        rows = {row[0]: row[1:] for row in (line.split() for line in err.decode().splitlines()) if len(row) >= 2}
        self.assertEqual(rows["clock_nanosleep"][1], "1", err)
        self.assertGreaterEqual(int(rows["clock_nanosleep"][2]), 49)
        self.assertGreaterEqual(int(rows["read"][0]), 1)
        self.assertGreaterEqual(int(rows["computing"][0]), 1)
        self.assertIn(b"sylar-run: python3", err)

    # Some close their stderr in a handler of exit, as all of the GNU coreutils do, and some all that they have.
    def test_report_of_a_program_that_has_closed_its_stderr(self):
        for program in ["sleep", "0.01"], ["python3", "-c", "import os; os.closerange(0, 4096)"]:
            status, _, err = result(RUN, "--report", *program)
            self.assertEqual((status, err.count(b"made these calls in main")), (0, 1), program)

    # The report needs stderr at the end, a daemon that has left it does not.
    def test_report_keeps_no_stderr_of_a_child_open(self):
        program = "import os; os.fork() or (os.closerange(0, 3), os.read(%d, 1))"
        told, tells = os.pipe()
        with subprocess.Popen([RUN, "--report", "python3", "-c", program % told], stderr=subprocess.PIPE, pass_fds=[told]) as run:
            os.close(told)
            try:
                self.assertIn(b"made these calls in main", run.communicate(timeout=60)[1])
            finally:
                os.close(tells)

    # A wait was counted from when its worker had last looked at the clock, before all that main had computed.
    def test_report_counts_no_computing_as_waiting(self):
        program = (
            "import time\nbegin = time.monotonic()\nwhile time.monotonic() < begin + 0.3: pass\n"
            "begin = time.monotonic_ns(); time.sleep(0.02); print(time.monotonic_ns() - begin)"
        )
        _, out, err = result(RUN, "--report", "python3", "-c", program)
        (waited,) = [line.split()[3] for line in err.decode().splitlines() if line.startswith("  clock_nanosleep")]
        self.assertGreaterEqual(int(waited), 19)
        self.assertLessEqual(int(waited), int(out) // 1_000_000)

    def test_a_child_of_fork_reports_nothing(self):
        status, _, err = result(RUN, "--report", "--", "python3", "-c", "import os, sys; sys.exit(0) if os.fork() == 0 else os.wait()")
        self.assertEqual((status, err.count(b"made these calls in main")), (0, 1))

    def test_help_and_version(self):
        status, out, err = result(RUN, "--help")
        self.assertEqual((status, out[:6], err), (0, b"Usage:", b""))
        status, out, err = result(RUN, "--version")
        self.assertEqual((status, out[:10], err), (0, b"sylar-run ", b""))

    def test_misuse(self):
        for arguments in [], ["--nothing"], ["--"]:
            status, out, err = result(RUN, *arguments)
            self.assertEqual((status, out, err[:6]), (125, b"", b"Usage:"), arguments)

    def test_not_found_and_not_executable(self):
        status, out, err = result(RUN, "no-such-program")
        self.assertEqual((status, out), (127, b""))
        self.assertIn(b"no-such-program: No such file", err)
        path = self.script("plain", "echo\n", 0o644)
        status, out, err = result(RUN, path)
        self.assertEqual((status, out), (126, b""))
        self.assertIn(b"Permission denied", err)

    def test_scripts(self):
        inner = self.script("inner", "#!/bin/sh\necho inner $1 $2\nexit 3\n")
        self.assertEqual(both(self, inner, "a")[:2], (3, b"inner a\n"))
        outer = self.script("outer", f"#! {inner} b\n")
        self.assertEqual(both(self, outer)[0], 3)
        bare = self.script("bare", "echo bare\n")  # execvp(3) hands it to the shell
        self.assertEqual(result(RUN, bare), (0, b"bare\n", b""))

    def test_what_was_preloaded_stays(self):
        other = self.folder / "libother.so"
        subprocess.run(["cc", "-shared", "-o", other, "-xc", "/dev/null"], check=True)
        _, out, _ = result(RUN, "sh", "-c", "echo $LD_PRELOAD; cat /proc/self/maps", env=dict(os.environ, LD_PRELOAD=str(other)))
        self.assertRegex(out.decode().splitlines()[0], rf"^/\S+/libsylar-run\.so:{other}$")
        self.assertIn(bytes(other), out.split(b"\n", 1)[1])
        self.assertIn(b"libsylar-run.so", out.split(b"\n", 1)[1], "what the program starts runs in the same way")

    def test_the_object_brings_no_library_into_the_program(self):
        with subprocess.Popen([RUN, "sleep", "100"], stdout=subprocess.DEVNULL) as process:
            try:
                maps = Path(f"/proc/{process.pid}/maps")
                while not (found := re.search(r"/\S+/libsylar-run\.so", maps.read_text(encoding="utf-8"))):
                    time.sleep(0.01)
            finally:
                process.kill()
        needed = subprocess.run(["readelf", "-d", found[0]], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(set(re.findall(r"\(NEEDED\).*\[(.*?)\]", needed)),
                             {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})
        names = subprocess.run(["nm", "-D", "--defined-only", found[0]], capture_output=True, text=True, check=True).stdout.split()
        for name in names:
            self.assertNotRegex(name, r"^(_Z|__cxa_|__gxx_|__gnu_cxx|_Unwind_)|spdlog|fmt|sylar|^connect_with_timeout$")

    def test_a_static_program_is_told(self):
        source = self.script("program.c", 'int puts(const char*); int main(void) { puts("static"); return 3; }')
        program = self.folder / "static"
        subprocess.run(["cc", "-static", "-o", program, source], check=True)
        script = self.script("script", f"#!{program}\n")
        for start in program, script:
            status, out, err = result(RUN, start)
            self.assertEqual((status, out), (3, b"static\n"))
            self.assertEqual(err.decode(), f"sylar-run: {start} is statically linked, so it runs without fibers\n")

    def test_a_program_with_other_rights_is_told(self):
        program = "/usr/bin/su"  # root's on every Debian
        if os.getuid() == 0:
            program = shutil.copy("/usr/bin/su", self.folder)
            os.chown(program, 65534, 0)
            os.chmod(program, 0o4755)
        status, _, err = result(RUN, program, "--version")
        self.assertEqual(status, 0)
        self.assertIn(b"runs with other rights than yours, so it runs without fibers", err)


class Main(unittest.TestCase):
    """Each way in which main ends, and what it finds, is as without sylar-run."""

    def test_returns(self):
        self.assertEqual(both(self, PROGRAM, "return")[:2], (5, b"at exit\n"))

    def test_exits(self):
        self.assertEqual(both(self, PROGRAM, "exit")[:2], (6, b"at exit\n"))
        self.assertEqual(both(self, PROGRAM, "quick exit")[:2], (7, b""))

    def test_is_killed(self):
        self.assertEqual(both(self, PROGRAM, "abort")[0], -6)
        self.assertEqual(both(self, PROGRAM, "kill")[0], -15)
        status, _, err = both(self, PROGRAM, "throw")
        self.assertEqual(status, -6)
        self.assertIn(b"out of main", err)

    def test_leaves_by_pthread_exit(self):
        self.assertEqual(both(self, PROGRAM, "pthread_exit")[:2], (0, b"the other thread\nunwound\nat exit\n"))

    def test_signal_handlers_jump_back(self):
        self.assertEqual(both(self, PROGRAM, "jump")[0], 0)
        self.assertEqual(both(self, PROGRAM, "jump from a signal stack")[0], 0)

    def test_signal_handlers_jump_within(self):
        self.assertEqual(both(self, PROGRAM, "jump in a handler")[0], 0)

    def test_threads_are_real(self):
        self.assertEqual(both(self, PROGRAM, "thread")[:2], (0, b"another thread: 1\nmain thread: 1\nat exit\n"))

    def test_a_close_leaves_the_call_of_main_alone(self):
        self.assertEqual(both(self, PROGRAM, "close")[1], b"reads: 1, closed: 1, end: 1\nat exit\n")

    def test_a_forked_child_goes_on_alone(self):
        status, out, _ = both(self, PROGRAM, "fork")
        self.assertEqual((status, sorted(out.splitlines())), (4, [b"at exit", b"at exit", b"child: 3"]))

    def test_a_handler_forks(self):
        out = both(self, PROGRAM, "fork in a handler")[1]
        self.assertEqual(out, b"parent: -1, child: 24\nparent: 1, child: 10\n" + 2 * b"parent: -1, child: 24\n"
                         + b"parent: 0, child: 10\nat exit\n")

    def test_the_stack_is_the_kernels(self):
        self.assertEqual(both(self, PROGRAM, "stack")[1], b"within its stack: 1\nat exit\n")
        self.assertEqual(both(self, PROGRAM, "recursion")[0], 0)
        for limit in "1024", "65536", "unlimited":
            self.assertEqual(both(self, "sh", "-c", f'ulimit -s {limit} && exec "$0" stack', PROGRAM)[1],
                             b"within its stack: 1\nat exit\n")

    def test_faults_are_the_programs_own(self):
        self.assertEqual(both(self, PROGRAM, "faults")[1], b"default: 1, no signal stack: 1\nat exit\n")

    def test_without_descriptors_it_runs_without_fibers(self):
        for limit in range(4, 12):
            both(self, "sh", "-c", f'ulimit -n {limit} && exec "$0" return', PROGRAM)

    def test_ctrl_c_ends_it(self):
        with subprocess.Popen([RUN, "sleep", "100"]) as process:
            process.send_signal(2)
            self.assertEqual(process.wait(60), -2)


if __name__ == "__main__":
    unittest.main()
