#!/usr/bin/env python3
"""A request costs one receive and one send, and nothing else is asked for it: no option, no epoll_ctl.

    request_trace_test.py <tcp_echo>

Runs the example under strace with one worker, and counts its system calls over 1 000 requests on one connection.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from collections import Counter

REQUESTS = 1000
PROGRAM = sys.argv.pop()


def calls():
    """Number of system calls by name while the requests were made."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        with subprocess.Popen(["strace", "-f", "-qq", "-o", path, PROGRAM, "127.0.0.1:0", "1"],
                              stdout=subprocess.PIPE, text=True, start_new_session=True) as tracer:
            host, port = tracer.stdout.readline().split()[-1].split(":")
            with socket.create_connection((host, int(port))) as client:
                for byte in [b"<"] + [b"x"] * REQUESTS + [b">"]:  # marks around the requests
                    client.sendall(byte)
                    client.recv(1)
            os.killpg(tracer.pid, signal.SIGTERM)  # strace passes it over, and ends with the program
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    first = next(i for i, line in enumerate(lines) if "sendto(" in line and '"<"' in line)
    last = next(i for i, line in enumerate(lines) if "recvfrom(" in line and '">"' in line)
    return Counter(line.split(None, 1)[1].split("(")[0] for line in lines[first + 1:last] if "(" in line and "resumed" not in line)


class RequestTrace(unittest.TestCase):
    def test_one_receive_and_one_send(self):
        counts = calls()
        self.assertEqual(counts.pop("sendto"), REQUESTS)
        slack = REQUESTS // 50  # an event that comes after its byte was read costs a receive that finds nothing
        receives = counts.pop("recvfrom")
        self.assertTrue(REQUESTS <= receives <= REQUESTS + slack, f"{receives} receives")
        waits = counts.pop("epoll_pwait2", 0) + counts.pop("epoll_pwait", 0)
        self.assertLessEqual(waits, REQUESTS + slack)
        self.assertLessEqual(counts.pop("epoll_ctl", 0), 1)  # at the first wait
        self.assertEqual(counts, Counter())


if __name__ == "__main__":
    unittest.main()
