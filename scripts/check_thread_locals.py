#!/usr/bin/env python3
"""Checks that each thread_local variable of the library is on the list below, which says whose it is. A fiber may run under a thread
pointer of its own (sylar/fiber/borrowed_thread.h), and then has a copy of each.

    check_thread_locals.py [root of the tree]
"""

import re
import sys
from pathlib import Path

# worker    Its copies in borrowed threads are not used: it is reached by ofWorker(), or made by ThreadFibers::callAsWorker().
# adopted   Every thread that fibers run has a copy, which is set when the worker changes or the thread gets the word.
# thread    It belongs to the thread, as a library's do.
# call      It says that a call is being made that does not suspend, or that belongs to the thread while it does.
OWNERS = {
    "t_ids": "worker", "t_own": "worker", "t_queues": "worker", "t_unused": "worker", "s_mine": "worker",
    "t_free": "worker", "t_closed": "worker", "t_last_time": "worker", "t_thread": "worker", "t_name": "worker",
    "own": "worker",
    "t_running": "adopted", "t_this": "adopted", "t_owner": "adopted", "t_worker": "adopted", "t_number": "adopted",
    "t_thread_id": "adopted", "t_to_worker": "adopted",
    "t_recent": "thread", "t_is_known": "thread", "t_in_exit": "thread", "t_signal_mask": "thread", "t_mine": "thread", "t_locals": "thread",
    "t_hook_enabled": "thread", "t_innermost": "thread", "t_lets_through": "thread", "t_caller_of": "thread",
    "t_marks": "call", "t_locked": "call", "t_converting": "call", "t_making": "call", "t_here": "call", "t_makes_own_thread": "call",
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)
DECLARED = re.compile(r"\bthread_local\b[^;={(]*?(\w+)\s*(?:\[[^\]]*\])?\s*[;={(]")
WORD = re.compile(r"\bthread_local\b")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    found, wrong = set(), 0
    for path in sorted(p for top in ("sylar", "include") for p in (root / top).rglob("*") if p.suffix in (".h", ".cc")):
        text = COMMENT.sub("", path.read_text())
        names = DECLARED.findall(text)
        if len(names) != len(WORD.findall(text)):
            print(f"{path.relative_to(root)}: a thread_local variable that this check cannot read")
            wrong += 1
        for name in names:
            found.add(name)
            if name not in OWNERS:
                print(f"{path.relative_to(root)}: nobody has said whose the thread_local {name} is (scripts/check_thread_locals.py)")
                wrong += 1
    for name in OWNERS.keys() - found:
        print(f"scripts/check_thread_locals.py: there is no thread_local {name} any more")
        wrong += 1
    print(f"{len(found)} thread_local variables, each with an owner" if wrong == 0 else f"{wrong} faults")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
