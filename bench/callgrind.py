"""Instructions in user space, counted by callgrind. They are the same in each run on any machine, however busy it is."""

import re
import subprocess
from pathlib import Path

import harness

VALGRIND = "/usr/bin/valgrind"


def command(out, *arguments):
    return [VALGRIND, "--tool=callgrind", "-q", f"--callgrind-out-file={out}", "--dump-instr=no", *arguments]


def instructions(program, arguments, toggle, folder):
    """Executed inside function `toggle` and what it calls, in one run."""
    harness.found(VALGRIND)
    out = Path(folder, "counts")
    subprocess.run([*command(out, f"--toggle-collect={toggle}"), harness.found(program), *map(str, arguments)], check=True, timeout=120)
    return int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)[1])
