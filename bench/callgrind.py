"""Instructions in user space, counted by callgrind. They are nearly the same in each run on any machine, however busy it is."""

import collections
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import harness

VALGRIND = "/usr/bin/valgrind"
CONTROL = "/usr/bin/callgrind_control"
NUMBER = re.compile(r"([+-]?\d+|\*) (\d+)")
NAMED = re.compile(r"(fl|fi|fe|fn|cfn|cfi|cfl|ob|cob)=\((\d+)\)(?: (.*))?")


@dataclass
class Profile:
    functions: collections.Counter = field(default_factory=collections.Counter)  # instructions of their own, by name
    lines: collections.Counter = field(default_factory=collections.Counter)  # the same by (function, file, line)
    calls: collections.Counter = field(default_factory=collections.Counter)  # by name

    def minus(self, other):
        result = Profile(*(collections.Counter(part) for part in (self.functions, self.lines, self.calls)))
        for mine, theirs in zip((result.functions, result.lines, result.calls), (other.functions, other.lines, other.calls)):
            mine.subtract(theirs)
        return result


def command(out, *arguments):
    return [VALGRIND, "--tool=callgrind", "-q", f"--callgrind-out-file={out}", f"--log-file={out}.log", "--compress-pos=no", *arguments]


def read(path):
    """Callgrind's format: https://valgrind.org/docs/manual/cl-format.html, as it is with one event and positions by line."""
    profile, names, current, of_call = Profile(), collections.defaultdict(dict), {}, False
    for line in path.read_text().splitlines():
        if match := NAMED.fullmatch(line):
            kind, number, name = match.groups()
            space = {"fn": "fn", "cfn": "fn", "ob": "ob", "cob": "ob"}.get(kind, "fl")
            if name is not None:
                names[space][number] = name
            current["fl" if kind in ("fi", "fe") else kind] = names[space].get(number, "?")
        elif line.startswith("calls="):
            profile.calls[current["cfn"]] += int(line[6:].split()[0])
            of_call = True
        elif match := NUMBER.fullmatch(line):
            if not of_call:
                count = int(match[2])
                profile.functions[current["fn"]] += count
                profile.lines[current["fn"], current["fl"], int(match[1])] += count
            of_call = False
    return profile


def of_run(program, arguments, folder, toggle=None):
    """One run from its beginning to its end; with `toggle` only what happens inside that function."""
    harness.found(VALGRIND)
    out = Path(folder, "counts")
    only = [f"--toggle-collect={toggle}"] if toggle else []
    subprocess.run([*command(out, *only), harness.found(program), *map(str, arguments)], check=True, timeout=300, stdout=subprocess.DEVNULL)
    return read(out)


def of_server(program, arguments, core, client, client_core, folder, seconds):
    """While `client(port)` is served, after it has been served for a while."""
    harness.found(VALGRIND)
    out = Path(folder, "counts")
    server = [*command(out, "--instr-atstart=no"), harness.found(program), *map(str, arguments)]
    with harness.running(server, {core}) as running:
        load = subprocess.Popen(list(map(str, client(running.port))), stdout=subprocess.DEVNULL, preexec_fn=harness.pinned({client_core}))
        try:
            time.sleep(1)
            for state in ("on", "off"):
                subprocess.run([CONTROL, "-i", state, str(running.pid)], check=True, timeout=30, stdout=subprocess.DEVNULL)
                time.sleep(seconds if state == "on" else 0)
            if load.wait(60) != 0:
                raise RuntimeError("the client failed under callgrind")
        finally:
            harness.stop(load)
    return read(out)
