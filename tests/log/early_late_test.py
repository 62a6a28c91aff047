"""Runs the program that logs before and after main, and holds what it wrote to what it should have written."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.argv[1]).name[:15]  # the kernel's name of the first thread, which keeps 15 bytes
NAME = "a name that does not fit into a short string"
WANTED = f"""\
x {PROGRAM} constructor function
x {PROGRAM} first static begins
x {PROGRAM} last static begins
own {NAME} main
x {NAME} thread_local ends
x {NAME[:15]} exit handler
x {NAME[:15]} last static ends
x {NAME[:15]} first static ends
"""

run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, timeout=120)
if run.returncode != 0 or run.stdout != WANTED:
    sys.exit(f"exit status {run.returncode}, wrote:\n{run.stdout}instead of:\n{WANTED}")
