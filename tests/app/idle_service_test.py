#!/usr/bin/env python3
"""An idle service makes no system call: ten seconds of a service that has served, under strace.

    idle_service_test.py SERVICE
"""
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SECONDS = 10


def is_at_rest(process, port):
    """Whether the process has closed the connections that were made to `port`, and all its threads sleep."""
    rows = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    listening, closed = "0A", "0"  # state and inode
    if any(row[1].endswith(f":{port:04X}") and row[3] != listening and row[9] != closed for row in rows):
        return False
    stats = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "server.yml").write_text("servers: [{type: http, address: ['127.0.0.1:0'], keepalive: true}]\n")
    service = subprocess.Popen([sys.argv[1], "-c", folder], stdout=subprocess.PIPE, text=True)
    try:
        log = ""
        while "the service runs" not in log:
            log += service.stdout.readline() or sys.exit(f"it does not run:\n{log}")
        port = int(re.search(r"listens on [^ ]*:(\d+)", log)[1])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/hello") as answer:
            answer.read()
        while not is_at_rest(service.pid, port):
            time.sleep(0.01)
        trace = subprocess.run(["timeout", str(SECONDS), "strace", "-f", "-qq", "-p", str(service.pid)], capture_output=True, text=True).stderr
    finally:
        service.kill()

# Each thread is in one call when strace comes, which is shown without an end.
calls = [line for line in trace.splitlines() if not re.search(r"(<unfinished \.\.\.>|<detached \.\.\.>|\bdetached)$", line)]
threads = trace.count("<unfinished ...>") + trace.count("<detached ...>")
print("\n".join(calls))
print(f"{len(calls)} system calls of {threads} threads in {SECONDS} s")
sys.exit(0 if not calls and threads > 1 else 1)
