"""What the drivers of all topics share: servers on a core of their own, rounds that alternate, medians and ratios inside a round,
goals, one table, one JSON file and one plot a topic. README.md tells how to read them.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 5


class Missing(Exception):
    """This machine does not have the program. Its row says so, and the rest goes on."""


# ---- Programs -----------------------------------------------------------------------------------------------------------------


@dataclass
class Server:
    process: subprocess.Popen
    port: int

    @property
    def pid(self):
        return self.process.pid

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def cpu_ns(self):
        """CPU time of all its threads so far: the clock that clock_getcpuclockid(3) names."""
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def resident_bytes(self):
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(re.search(r"^Rss: +(\d+) kB", rollup, re.MULTILINE)[1]) * 1024


def pinned(cores):
    """For a new child: its cores, and as many descriptors as it may have."""
    def prepare():
        os.sched_setaffinity(0, cores)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return prepare


def stop(process):
    """Ends one child by its own pid, whatever state it is in; returns its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


def found(program):
    if not Path(program).exists():
        raise Missing(f"{Path(program).name} is not there")
    return program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    """Until somebody listens there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def running(command, cores, port=None, env=None):
    """A server. It says `listening on 127.0.0.1:PORT`, or is known to listen on `port`. It ends with status 0 on SIGTERM."""
    found(command[0])
    environment = {**os.environ, **(env or {})}
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cores), env=environment)
    try:
        if port is None:
            ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
            line = process.stdout.readline() if ready else ""
            match = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
            if not match:
                raise RuntimeError(f"{command[0]} did not start: {line!r}")
            port = int(match[1])
        elif not wait_for(port, process):
            raise RuntimeError(f"{command[0]} did not start")
        yield Server(process, port)
    finally:
        status = stop(process)
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with status {status} instead of 0")


def output_of(command, cores, timeout_s):
    """What a program prints, run to its end on those cores."""
    found(command[0])
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cores))
    try:
        output, _ = child.communicate(timeout=timeout_s)
    finally:
        stop(child)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with status {child.returncode}")
    return output


@contextlib.contextmanager
def cores_kept_awake():
    """While /dev/cpu_dma_latency is held open at 0, cores spin instead of halting when idle. Yields whether that was allowed."""
    try:
        file = open("/dev/cpu_dma_latency", "wb", buffering=0)
    except OSError:
        yield False
        return
    with file:
        file.write((0).to_bytes(4, sys.byteorder))
        yield True


# ---- Figures ------------------------------------------------------------------------------------------------------------------


def rounds(count, items, what="all"):
    """Every item once a round. The order rotates, so that none always follows the same one."""
    items = list(items)
    for number in range(count):
        shift = number % max(len(items), 1)
        yield from items[shift:] + items[:shift]
        if sys.stderr.isatty():
            print(f"{what} round {number + 1} of {count}\x1b[K", end="\r", file=sys.stderr, flush=True)


def medians(runs):
    """{figure: median} over runs that have the same figures."""
    return {key: statistics.median(run[key] for run in runs) for key, value in runs[0].items() if isinstance(value, (int, float))}


def ratio(ours, theirs):
    """Of figures of the same rounds: the median of the ratios inside a round, their quartiles, and each side's own median. None: a
    side is missing."""
    if not ours or not theirs:
        return None
    values = sorted(a / b for a, b in zip(ours, theirs))
    return {"median": statistics.median(values), "low": values[len(values) // 4], "high": values[-1 - len(values) // 4],
            "ours": statistics.median(ours), "theirs": statistics.median(theirs)}


def ratio_of(slices, name, yardstick, key):
    return ratio([run[key] for run in slices.get(name, [])], [run[key] for run in slices.get(yardstick, [])])


def goal(id, what, value, unit, comparison, bound, yardstick):
    """One line of `scripts/bench.sh --goals`. `value` None: the figure is missing."""
    met = value is not None and (value <= bound if comparison == "<=" else value >= bound)
    return {"id": id, "what": what, "value": value, "unit": unit, "goal": f"{comparison} {bound:g}", "met": met, "yardstick": yardstick}


def ratio_goal(id, what, value, bound, yardstick, comparison="<="):
    """The same for a ratio(); its quartiles stand beside the yardstick."""
    if value is None:
        return goal(id, what, None, "x", comparison, bound, yardstick)
    return goal(id, what, value["median"], "x", comparison, bound, f"{yardstick} (quartiles {value['low']:.3f} - {value['high']:.3f})")


# ---- Arguments, tables, files -------------------------------------------------------------------------------------------------


def parser(topic, doc, rounds=9, seconds=1.5):
    cores = sorted(os.sched_getaffinity(0))
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    result.add_argument("--bin", type=Path, default="build/release/bin", help="where the programs are")
    result.add_argument("--out", type=Path, default=f"build/bench/{topic}.json", help="the file for the figures; the plot lies beside it")
    result.add_argument("--rounds", type=int, default=rounds, help="runs of each")
    result.add_argument("--seconds", type=float, default=seconds, help="length of a run of load")
    result.add_argument("--goals", action="store_true", help="only what the goals need")
    result.add_argument("--quick", action="store_true", help="one short round: shows that all of it works, and no figure to trust")
    result.add_argument("--server-core", type=int, default=cores[0], help="core of what is measured")
    result.add_argument("--client-core", type=int, default=cores[-1], help="core of the client")
    return result


def parse(arguments):
    options = arguments.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, min(options.seconds, 0.3)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an exception, so that every child is ended on the way out
    return options


def number(value):
    """As many digits as a reader uses."""
    if value is None or isinstance(value, str):
        return "-" if value is None else value
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.3g}" if abs(value) < 0.01 else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.0f}"


def table(header, rows):
    """Text to the left, numbers to the right."""
    rows = [tuple(row) + ("",) * (len(header) - len(row)) for row in rows]
    cells = [[number(value) for value in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    text = [column == 0 or all(isinstance(row[column], str) for row in rows) for column in range(len(header))]
    print()
    for row in cells:
        print("  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row, widths, text)).rstrip())


def goals_table(goals):
    table(("goal", "what", "value", "unit", "goal", "", "yardstick"),
          [(g["id"], g.get("what", ""), g["value"], g["unit"], g["goal"], "met" if g["met"] else "not met", g["yardstick"]) for g in goals])


def halting(awake):
    return "kept from halting" if awake else "MAY HALT: /dev/cpu_dma_latency is not ours to open, so expect noise"


def machine(awake):
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"kernel": platform.release(), "processor": model[1] if model else platform.machine(), "cores": os.cpu_count(), "kept_awake": awake}


def write(options, topic, awake, goals, ratios, **figures):
    """`ratios`: {what / yardstick: ratio()}, which compare.py holds against those of another run."""
    result = {
        "topic": topic,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(awake),
        "setup": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
        "goals": goals,
        "ratios": {what: {key: round(figure, 4) for key, figure in value.items()} for what, value in ratios.items() if value is not None},
        **figures,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {options.out}", file=sys.stderr)


def plot(path, panels, columns=2):
    """`panels`: dictionaries with a title, labels for x and y, and lines {name: [(x, y), ...]} on logarithmic x, or bars {name: y}.
    The rest is optional: xscale, yscale, marker; ours: how the names of thick lines begin."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(7 * columns, 4.5 * lines), squeeze=False)
    for axis, panel in zip(axes.flat, panels):
        for name, points in panel.get("lines", {}).items():
            axis.plot(*zip(*points), marker=panel.get("marker", "o"), label=name,
                      linewidth=3 if name.startswith(panel.get("ours", "sylar")) else 1.3)
        if "lines" in panel:
            axis.set_xscale(panel.get("xscale", "log"))
            axis.set_yscale(panel.get("yscale", "linear"))
            axis.legend(fontsize="small")
        if "bars" in panel:
            bars = axis.barh(list(panel["bars"]), list(panel["bars"].values()))
            axis.bar_label(bars, [number(value) for value in panel["bars"].values()], padding=2)
            axis.invert_yaxis()
            axis.margins(x=0.15)
        axis.set(title=panel["title"], xlabel=panel.get("x", ""), ylabel=panel.get("y", ""))
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(panels):]:
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    print(f"plot: {path}", file=sys.stderr)
