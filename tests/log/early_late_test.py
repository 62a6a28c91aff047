"""Runs the program that logs before and after main, and holds what it wrote to what it should have written."""

import subprocess
import sys

NAME = "a name that does not fit into a short string"
WANTED = f"""\
x UNKNOW constructor function
x UNKNOW first static begins
x UNKNOW last static begins
own {NAME} main
x {NAME} thread_local ends
x UNKNOW exit handler
x UNKNOW last static ends
x UNKNOW first static ends
"""

run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, timeout=120)
if run.returncode != 0 or run.stdout != WANTED:
    sys.exit(f"exit status {run.returncode}, wrote:\n{run.stdout}instead of:\n{WANTED}")
