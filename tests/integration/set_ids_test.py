#!/usr/bin/env python3
"""HA-11. A program drops its privileges while it has threads, with the same result as natively: alone, as a service that has looked up
a name before, and as the daemons that people run. Only root can drop privileges.

    set_ids_test.py set_ids_program drop_privileges|- sylar-run|-
"""
import contextlib
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import servers

RUN = sys.argv.pop()
EXAMPLE = sys.argv.pop()
PROGRAM = sys.argv.pop()
WAYS = [[RUN], [RUN, "--threads=fibers"]] if RUN != "-" else []
NOBODY = {"65534"}


def outcome(*command):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ended.stdout.splitlines(), ended.stderr, ended.returncode


def users(process):
    """The users and groups of all threads of a process."""
    found = set()
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        for ids in re.findall(r"^[UG]id:\s(.*)$", status.read_text(), re.MULTILINE):
            found.update(ids.split())
    return found


@unittest.skipIf(os.geteuid() != 0, "only root can drop privileges")
@unittest.skipUnless(WAYS, "no sylar-run in this build")
class UnderTheRunner(unittest.TestCase):
    def test_each_call_in_each_place(self):
        calls, _, _ = outcome(PROGRAM)
        self.assertGreaterEqual(len(calls), 14)
        for call in calls:
            for where in "main", "lookup", "thread", "handler", "child":
                native = outcome(PROGRAM, call, where)
                self.assertEqual(native[1:], ("", 0), (call, where))
                for way in WAYS:
                    with self.subTest(call=call, where=where, way=way[1:]):
                        self.assertEqual(outcome(*way, PROGRAM, call, where), native)

    def test_sshd_serves_a_login(self):
        for way in WAYS:
            with self.subTest(way=way[1:]), contextlib.closing(servers.sshd(under=way)) as sshd:
                said, error, status = outcome(
                    "ssh", "-F", "none", "-p", str(sshd.port), "-i", f"{sshd.folder}/user", "-oStrictHostKeyChecking=no",
                    "-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR", "root@127.0.0.1", "echo served; exit 7")
                self.assertEqual((said, status), (["served"], 7), error)

    def test_mariadb_becomes_another_user(self):
        for way in WAYS:
            options = ["--innodb-use-native-aio=0"] if len(way) > 1 else []  # it waits by bare calls, which hold all fibers
            with self.subTest(way=way[1:]), contextlib.closing(servers.mariadb(*options, under=way, user="nobody")) as server:
                self.assertEqual(users(server.process), NOBODY)
                said, error, _ = outcome("mariadb", "--no-defaults", "-h127.0.0.1", f"-P{server.port}", "-uroot", "-NBe", "SELECT 6 * 7")
                self.assertEqual(said, ["42"], error)


@unittest.skipIf(os.geteuid() != 0, "only root can drop privileges")
@unittest.skipIf(EXAMPLE == "-", "no examples in this build")
class Service(unittest.TestCase):
    # SEC-62
    def test_serves_as_another_user(self):
        with subprocess.Popen([EXAMPLE, "nobody", "0"], stdout=subprocess.PIPE, text=True) as service:
            try:
                port = int(re.search(r":(\d+)", service.stdout.readline())[1])
                self.assertEqual(service.stdout.readline(), "now nobody\n")
                self.assertEqual(users(service), NOBODY)
                said, error, _ = outcome("curl", "-sS", "--max-time", "30", f"http://127.0.0.1:{port}/")
                self.assertEqual(said, ["served by nobody"], error)
                self.assertEqual(users(service), NOBODY)
            finally:
                service.terminate()
        self.assertEqual(service.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
