"""For tests: how long something took, and how much of a promised bound a busy machine excuses. The same as stopwatch.h."""
import re
import time


def machine_stalled():
    """Seconds in which some task was ready to run and had no processor, or waited for a disk, since the machine started."""
    total_us = 0
    for resource in ("cpu", "io"):
        try:
            with open(f"/proc/pressure/{resource}", encoding="ascii") as file:
                total_us += int(re.search(r"total=(\d+)", file.readline())[1])
        except OSError:  # not counted on this machine
            pass
    return total_us / 1e6


class Stopwatch:
    """Runs from its construction until stop(). A bound is exact on a machine with a processor for everybody. On a busier one it
    grows by the time in which some task had to wait, up to 20 times the bound."""
    MOST_EXCUSED = 20

    def __init__(self):
        self.stalled = machine_stalled()
        self.begin = time.monotonic()
        self.elapsed = None

    def stop(self):
        """Itself, with `elapsed` in seconds."""
        self.elapsed = time.monotonic() - self.begin
        self.stalled = machine_stalled() - self.stalled
        return self

    def check(self, bound, what=""):
        """It took less than `bound` seconds, and what the machine excuses."""
        allowed = bound + min(self.stalled, self.MOST_EXCUSED * bound)
        if self.elapsed >= allowed:
            raise AssertionError(f"took {self.elapsed:.3f} s of the {bound} s that are promised, {allowed:.3f} s on this machine {what}")
