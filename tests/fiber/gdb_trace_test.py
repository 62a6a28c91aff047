#!/usr/bin/env python3
"""RT-3.5: gdb's `bt` in a running fiber ends at the fiber's entry, without garbage.

gdb_trace_test.py PROGRAM: one that calls Fiber::YieldToHold in a fiber. Exit status 77: there is no gdb, or it may not trace.
"""
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    if shutil.which("gdb") is None:
        return SKIPPED
    commands = ["set debuginfod enabled off", "set confirm off", "break sylar::Fiber::YieldToHold", "run", "bt", "kill"]
    arguments = [word for command in commands for word in ("-ex", command)]
    run = subprocess.run(["gdb", "-nx", "-batch", *arguments, sys.argv[1]], capture_output=True, text=True, timeout=100)
    if "Operation not permitted" in run.stderr or "ptrace" in run.stderr:
        return SKIPPED
    print(run.stdout, run.stderr)
    frames = re.findall(r"^#(\d+) +(.*)$", run.stdout, re.MULTILINE)
    text = [frame for _, frame in frames]
    assert text and "YieldToHold" in text[0], "it stopped elsewhere"
    assert len(text) < 40 and "Backtrace stopped" not in run.stdout, "the trace does not end"
    assert any("fiberMain" in frame for frame in text), "the trace ends too early"
    unknown = [frame for frame in text if "??" in frame]
    assert all(re.match(r"0x0+ in \?\?", frame) for frame in unknown), "garbage: " + str(unknown)
    assert not unknown or "??" in text[-1], "something beyond the end"
    return 0


if __name__ == "__main__":
    sys.exit(main())
