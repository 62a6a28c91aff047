#!/usr/bin/python3
"""Latency of echoes while the same worker serves a large file by HTTP that is not in the page cache, over that without the file; and the
same where a read that waits for the disk blocks the worker (`hook.files: off`), and where the file stays in the page cache. 1 000 connections.

The client takes 100 MB a second. At full speed both cores would mostly copy the file: curl shares one with the echoes' client, and the
helper threads that read share the other with the worker.
"""

import contextlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import harness
from harness import Missing, ratio, ratio_goal

CONNECTIONS = 1000
GIB = 1 << 30
CURL = "/usr/bin/curl"
RATE = "100M"
CASES = {"none": "no file", "suspend": "a file, whose reads suspend", "block": "a file, whose reads block",
         "cached": "a file in the page cache"}


def make_file(folder, size):
    """Bytes that a disk cannot guess."""
    path = Path(folder, "file")
    piece = os.urandom(1 << 20)
    with path.open("wb") as file:
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "little") + piece[8:])
        file.flush()
        os.fsync(file.fileno())
    return path


def leave_cache(path):
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill_cache(path):
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


@contextlib.contextmanager
def downloads(port, path, options, cached):
    """Reads the file again and again, each time from the page cache, or each time from the disk."""
    between = ":" if cached else drop_command(path)
    script = f'while :; do {CURL} -sS --limit-rate {RATE} -o /dev/null -w "%{{size_download}}\\n" http://127.0.0.1:{port}/file || exit 1; {between}; done'
    (fill_cache if cached else leave_cache)(path)
    shell = subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=harness.pinned({options.client_core}))
    try:
        yield
    finally:
        os.killpg(shell.pid, 15)
        shell.wait()


def drop_command(path):
    return f"dd if={path} iflag=nocache count=0 status=none"  # drops all of it: dd(1)


def bytes_of_disk(server):
    """As many as its threads have caused to be read so far: proc_pid_io(5)."""
    return int(re.search(r"^read_bytes: (\d+)", Path(f"/proc/{server.pid}/io").read_text(), re.MULTILINE)[1])


def measure(options, path):
    """{case: runs}, each with the bytes that the disk has read meanwhile"""
    slices = {}
    for case, in harness.rounds(options.rounds, [(case,) for case in CASES]):
        http_port = harness.free_port()
        command = [options.bin / "bench_file_and_echo", http_port, path, "block" if case == "block" else "suspend"]
        with harness.running(command, {options.server_core}) as server:
            echo = [options.bin / "bench_echo_load", "--port", server.port, "--connections", CONNECTIONS, "--seconds", options.seconds, "--quantiles", 1]
            with downloads(http_port, path, options, case == "cached") if case != "none" else contextlib.nullcontext():
                run = json.loads(harness.output_of(echo, {options.client_core}, options.seconds + 60))
            slices.setdefault(case, []).append({**run, "disk_bytes": bytes_of_disk(server)})
    return slices


def main():
    parser = harness.parser("files", __doc__, rounds=5, seconds=5)
    parser.add_argument("--folder", type=Path, default="build/bench", help="where the file is made; on the disk to be measured")
    options = harness.parse(parser)
    options.folder.mkdir(parents=True, exist_ok=True)
    harness.found(CURL)
    slices, missing = {}, ""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, harness.cores_kept_awake() as awake:
        try:
            slices = measure(options, make_file(folder, GIB // 8 if options.quick else 2 * GIB))
        except Missing as problem:
            missing = str(problem)
            print(missing)
    print(f"echo, {CONNECTIONS} connections, beside an HTTP download; {options.rounds} rounds, {options.seconds} s a slice; medians")
    against = {case: ratio([run["p99_us"] for run in runs], [run["p99_us"] for run in slices["none"]]) for case, runs in slices.items()}
    harness.table(("", "requests/s", "p99, us", "p99 / without", "MB of the disk a s"),
                  [(CASES[case], harness.medians(runs)["requests_per_s"], harness.medians(runs)["p99_us"], against[case]["median"],
                    harness.medians(runs)["disk_bytes"] / options.seconds / 1e6) for case, runs in slices.items()])
    goals = [ratio_goal("P-21", "p99 of echoes beside a file from the disk", against.get("suspend"), 1.5, "without the file")]
    harness.goals_table(goals)
    harness.write(options, "files", awake, goals, {f"p99, {CASES[case]} / {CASES['none']}": value for case, value in against.items() if case != "none"},
                  slices=[{"case": case, "runs": runs} for case, runs in slices.items()])
    if slices:
        harness.plot(options.out.with_suffix(".svg"), [{"title": f"echo, {CONNECTIONS} connections", "x": "p99, us",
                     "bars": {CASES[case]: harness.medians(runs)["p99_us"] for case, runs in slices.items()}}])


if __name__ == "__main__":
    main()
