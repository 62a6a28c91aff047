#!/usr/bin/env python3
"""An idle service makes no system call: ten seconds of a service that has served, under strace.

    idle_service_test.py SERVICE
"""
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

SECONDS = 10
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "server.yml").write_text("servers: [{type: http, address: ['127.0.0.1:0'], keepalive: true}]\n")
    service = subprocess.Popen([sys.argv[1], "-c", folder], stdout=subprocess.PIPE, text=True)
    try:
        log = ""
        while "the service runs" not in log:
            log += service.stdout.readline() or sys.exit(f"it does not run:\n{log}")
        port = re.search(r"listens on [^ ]*:(\d+)", log)[1]
        urllib.request.urlopen(f"http://127.0.0.1:{port}/hello").read()
        trace = subprocess.run(["timeout", str(SECONDS), "strace", "-f", "-qq", "-p", str(service.pid)], capture_output=True, text=True).stderr
    finally:
        service.kill()

# Each thread is in one call when strace comes, which is shown without an end.
calls = [line for line in trace.splitlines() if not re.search(r"(<unfinished \.\.\.>|<detached \.\.\.>|\bdetached)$", line)]
threads = trace.count("<unfinished ...>") + trace.count("<detached ...>")
print("\n".join(calls))
print(f"{len(calls)} system calls of {threads} threads in {SECONDS} s")
sys.exit(0 if not calls and threads > 1 else 1)
