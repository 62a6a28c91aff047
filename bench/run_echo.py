#!/usr/bin/python3
"""Echo over loopback TCP: the fiber server beside raw loops and other libraries, by server CPU time per request.

All servers live from the first slice to the last, on one core; the client runs alone on another. Short slices alternate between
the servers and the ratios are taken inside a round, so that a noisy machine disturbs all of them alike. README.md tells how to
read the tables.
"""

import collections
import contextlib
import json
import mmap
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import harness
from harness import Missing, goal, ratio_goal, ratio_of

SERVERS = {  # name: (title, program and arguments)
    "uring": ("raw io_uring", ["bench_raw_uring_echo"]),
    "uring-apart": ("raw io_uring, sends apart", ["bench_raw_uring_echo", "--send", "apart"]),
    "uring-direct": ("raw io_uring, sends by system calls", ["bench_raw_uring_echo", "--send", "direct"]),
    "plain": ("raw epoll, level-triggered, read/write", ["bench_raw_epoll_echo"]),
    "tightest": ("raw epoll, edge-triggered, recv/send", ["bench_raw_epoll_echo", "--et"]),
    "fiber": ("sylar, a fiber a connection", ["bench_fiber_echo"]),
    "asio": ("Boost.Asio, callbacks", ["bench_asio_echo"]),
    "asio-spawn": ("Boost.Asio, spawn", ["bench_asio_echo", "--spawn"]),
    "go": ("Go, a goroutine a connection", ["bench_go_echo"]),
    "redis": ("redis-server, its command ECHO", None),
    "fiber-epoll": ("sylar, io.engine epoll", ["bench_fiber_echo", "--engine", "epoll"]),
    "fiber-uring": ("sylar, io.engine uring", ["bench_fiber_echo", "--engine", "uring"]),
    "fiber-spin": ("sylar, io.spin_us 100", ["bench_fiber_echo", "--spin-us", 100]),
}
USUAL = [name for name in SERVERS if name not in ("fiber-spin", "uring-apart", "uring-direct")]
FOR_GOALS = ["plain", "tightest", "uring", "fiber", "fiber-epoll", "fiber-uring"]
CPU = "server_cpu_ns_per_request"
REDIS = ["/usr/bin/redis-server", "--bind", "127.0.0.1", "--maxclients", 12000, "--save", "", "--appendonly", "no", "--loglevel", "warning"]
FIGURES = ("server_cpu_ns_per_request", "requests_per_s", "p50_us", "p99_us", "server_cpu", "client_cpu")


def load(server, connections, options, seconds=None, protocol="plain"):
    """One slice under the client, which checks every byte."""
    command = [options.bin / "bench_echo_load", "--port", server.port, "--server-pid", server.pid, "--connections", connections,
               "--size", options.size, "--seconds", seconds or options.seconds, "--warmup", options.warmup,
               "--protocol", protocol]
    return json.loads(harness.output_of(command, {options.client_core}, (seconds or options.seconds) + options.warmup + 60))


def start(stack, name, options, *more, **environment):
    if name == "redis":
        port = harness.free_port()
        return stack.enter_context(harness.running([*REDIS, "--port", port], {options.server_core}, port=port))
    command = [options.bin / SERVERS[name][1][0], *SERVERS[name][1][1:], "--buffer", options.buffer, *more]
    return stack.enter_context(harness.running(command, {options.server_core}, **environment))


def measure(names, connections, options):
    """({server: slices}, {server: threads}, {server: why it is missing})"""
    slices, threads, missing = collections.defaultdict(list), {}, {}
    with contextlib.ExitStack() as stack:
        servers = {}
        for name in names:
            try:
                servers[name] = start(stack, name, options)
            except (Missing, RuntimeError) as problem:
                missing[name] = str(problem)
        for name in harness.rounds(options.rounds, servers, f"{connections} connections:"):
            slices[name].append(load(servers[name], connections, options, protocol="redis" if name == "redis" else "plain"))
        threads = {name: server.threads() for name, server in servers.items()}
    return slices, threads, missing


def calls_of(server, options):
    """{system call: calls a request}, each of which is answered by one sendto, while 100 connections are served, every one of which has been served before."""
    command = [options.bin / "bench_echo_load", "--port", server.port, "--seconds", 2 if options.quick else 4]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "calls")
        tracer = ["/usr/bin/strace", "-f", "-qq", "-c", "-U", "name,calls", "-o", trace, "-p", server.pid]
        client = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, preexec_fn=harness.pinned({options.client_core}))
        try:
            time.sleep(0.7)
            watching = subprocess.Popen(list(map(str, tracer)))
            time.sleep(0.7 if options.quick else 2)
            watching.send_signal(signal.SIGINT)  # it lets go and writes what it has counted
            watching.wait(harness.STOP_TIMEOUT_S)
            if client.wait(harness.START_TIMEOUT_S) != 0:
                raise RuntimeError("the client failed under strace")
        finally:
            harness.stop(client)
        counted = re.findall(r"^(\w+) +(\d+)$", trace.read_text(), re.MULTILINE)
    calls = {name: int(count) for name, count in counted if name != "total"}
    return {name: count / calls["sendto"] for name, count in calls.items()}


def allocations_of(options):
    """Allocations a request: what a longer run has more than a shorter one, so that those of the connections do not count."""
    with tempfile.NamedTemporaryFile() as file, contextlib.ExitStack() as stack:
        file.write(bytes(8))
        file.flush()
        preload = str((options.bin / "libbench_count_malloc.so").resolve())
        server = start(stack, "fiber", options, env={"LD_PRELOAD": preload, "BENCH_MALLOC_COUNT": file.name})
        counter = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
        load(server, 100, options, 0.2)  # pools fill
        runs = []
        for seconds in (0.2, 1):
            before = int.from_bytes(counter[:8], "little")
            answers = load(server, 100, options, seconds)["answers"]
            runs.append((int.from_bytes(counter[:8], "little") - before, answers))
        (few, short), (many, long) = runs
        return (many - few) / (long - short)


def steady_state(options):
    with contextlib.ExitStack() as stack:
        return {"system_calls": calls_of(start(stack, "fiber-epoll", options), options), "allocations": allocations_of(options)}


def placement(options):
    """{connections: connections by worker} of two workers."""
    result = {}
    for connections in (4, 100):
        command = [options.bin / "bench_fiber_echo", "--workers", 2, "--tell", 1]
        with harness.running(command, {options.server_core, options.client_core}) as server, contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 5)) for _ in range(connections)]
            workers = collections.Counter(client.makefile("rb").readline() for client in sockets)
            result[connections] = sorted(workers.values(), reverse=True)
    return result


def goals_of(slices, counts, placed, halted):
    at = lambda connections, yardstick, key, server="fiber": ratio_of(slices.get(connections, {}), server, yardstick, key)
    calls = sum(counts["system_calls"].values()) if counts else None
    contended = counts and sum(counts["system_calls"].get(name, 0) for name in ("futex", "epoll_ctl", "write"))
    return [
        ratio_goal("P-1", "echo CPU, io.engine epoll, 100 connections", at(100, "tightest", CPU, "fiber-epoll"), 1.05, "tightest raw epoll loop"),
        ratio_goal("P-1", "the same", at(100, "plain", CPU, "fiber-epoll"), 1.00, "plain raw epoll loop"),
        *(ratio_goal("P-1u", f"echo CPU, {connections} connections", at(connections, "tightest", CPU), most, "tightest raw epoll loop")
          for connections, most in ((100, 0.97), (1000, 1.00), (10000, 0.95))),
        *(ratio_goal("P-2", f"echo CPU, io.engine uring, {connections} connections", at(connections, "uring", CPU, "fiber-uring"), 1.05, "raw io_uring loop")
          for connections in (100, 10000)),
        ratio_goal("P-3", "echo CPU, io.engine epoll, 10 000 connections", at(10000, "tightest", CPU, "fiber-epoll"), 1.06, "tightest raw epoll loop"),
        ratio_goal("P-4", "ping-pong p50, 1 connection", at(1, "tightest", "p50_us"), 1.03, "tightest raw epoll loop"),
        ratio_goal("P-4", "the same, cores halt when idle, io.spin_us 100", ratio_of(halted, "fiber-spin", "tightest", "p50_us"), 0.6,
                   "raw epoll loop that blocks"),
        goal("P-13", "echo, io.engine epoll, system calls a request", calls, "", "<=", 2.1, "strace"),
        goal("P-13", "echo, allocations a request", counts and round(counts["allocations"], 3), "", "<=", 0, "counted malloc"),
        goal("P-13", "echo, futex + epoll_ctl + tickle a request", contended and round(contended, 3), "", "<=", 0, "strace"),
        goal("P-16", "workers that serve 4 connections, of 2", placed and len(placed[4]), "", ">=", 2, "counted"),
        goal("P-16", "100 connections, most / fewest of 2 workers", placed and placed[100][0] / placed[100][-1], "x", "<=", 1.1, "counted"),
    ]


def print_tables(options, results, awake):
    print(f"TCP echo, {options.size} B; {options.rounds} rounds, {options.seconds} s a slice; medians")
    print(f"servers on core {options.server_core}, client on core {options.client_core}; idle cores {harness.halting(awake)}")
    if options.server_core == options.client_core:
        print("ONE CORE for both: the figures of requests and latency say nothing about a server")
    for connections, (slices, threads, missing) in results.items():
        rows = []
        for name in options.servers:
            if name in missing:
                rows.append((SERVERS[name][0], missing[name]))
            elif name in slices:
                figures = harness.medians(slices[name])
                against = ratio_of(slices, name, "tightest", CPU)
                spread = f"{against['low']:.3f} - {against['high']:.3f}" if against else None
                rows.append((SERVERS[name][0], threads[name], *(figures[key] for key in FIGURES), against and against["median"], spread))
        header = (f"{connections} connections", "threads", "CPU ns/request", "requests/s", "p50 us", "p99 us", "CPU", "client CPU", "CPU / tightest", "quartiles")
        harness.table(header, rows)


def draw(options, results):
    lines, ratios = collections.defaultdict(list), collections.defaultdict(list)
    for connections, (slices, _, _) in results.items():
        for name, runs in slices.items():
            lines[SERVERS[name][0]].append((connections, harness.medians(runs)[CPU]))
            if against := ratio_of(slices, name, "tightest", CPU):
                ratios[SERVERS[name][0]].append((connections, against["median"]))
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": "TCP echo, 64 B", "x": "connections", "y": "server CPU ns per request", "yscale": "log", "lines": lines},
        {"title": "the same over the tightest raw loop", "x": "connections", "y": "ratio", "lines": ratios}])


def parse_arguments():
    parser = harness.parser("echo", __doc__, rounds=5, seconds=1)
    numbers = lambda text: [int(part) for part in text.split(",")]
    parser.add_argument("--servers", type=lambda text: text.split(","), metavar="A,B", help=f"which of {','.join(SERVERS)}; all")
    parser.add_argument("--connections", type=numbers, metavar="A,B", help="open at once; 1,10,100,1000,10000")
    parser.add_argument("--size", type=int, default=64, help="bytes a message")
    parser.add_argument("--buffer", type=int, default=4096, choices=(64, 512, 4096), help="bytes of a server's receive buffer")
    parser.add_argument("--warmup", type=float, default=0.2, help="seconds before each slice that do not count")
    options = harness.parse(parser)
    options.servers = options.servers or (FOR_GOALS if options.goals else USUAL)
    options.connections = options.connections or ([1, 100, 1000, 10000] if options.goals else [1, 10, 100, 1000, 10000])
    if unknown := set(options.servers) - set(SERVERS):
        parser.error(f"no such server: {', '.join(unknown)}")
    return options


def main():
    options = parse_arguments()
    counts, placed = None, None
    with harness.cores_kept_awake() as awake:
        results = {connections: measure(options.servers, connections, options) for connections in options.connections}
        try:
            counts = steady_state(options)
            placed = placement(options)
        except (Missing, RuntimeError) as problem:
            print(f"not counted: {problem}")
    halted = measure(["tightest", "fiber", "fiber-spin"], 1, options)[0]  # nobody keeps the cores from halting
    slices = {connections: result[0] for connections, result in results.items()}
    goals = goals_of(slices, counts, placed, halted)
    ratios = {f"{connections} connections, CPU: {SERVERS[name][0]} / tightest": ratio_of(runs, name, "tightest", CPU)
              for connections, runs in slices.items() for name in runs if name != "tightest"}
    ratios |= {f"1 connection, cores halt, p50: {SERVERS[name][0]} / tightest": ratio_of(halted, name, "tightest", "p50_us")
               for name in halted if name != "tightest"}
    print_tables(options, results, awake)
    if counts:
        print("\nsystem calls of a request, fibers:", ", ".join(f"{name} {count:.3f}" for name, count in counts["system_calls"].items()))
    harness.table(("1 connection, cores halt when idle", "p50 us", "p99 us", "CPU", "p50 / tightest"),
                  [(SERVERS[name][0], *(harness.medians(runs)[key] for key in ("p50_us", "p99_us", "server_cpu")),
                    (ratio_of(halted, name, "tightest", "p50_us") or {}).get("median")) for name, runs in halted.items()])
    harness.goals_table(goals)
    harness.write(options, "echo", awake, goals, ratios, counts=counts, placement=placed, halting_ping_pong=halted,
                  results={connections: {"slices": found, "threads": threads, "missing": missing}
                           for connections, (found, threads, missing) in results.items()})
    draw(options, results)


if __name__ == "__main__":
    main()
