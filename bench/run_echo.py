#!/usr/bin/env python3
"""Echo over loopback TCP: the fiber server against raw epoll loops, by server CPU time per request.

All servers live from the first slice to the last, on one core; the client runs alone on another. Short slices alternate between
the servers and the ratios are taken inside a round, so that a noisy machine disturbs all of them alike. README.md tells how to
read the table.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import select
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SERVERS = {  # name: (program, arguments)
    "plain": ("bench_raw_epoll_echo", []),
    "tightest": ("bench_raw_epoll_echo", ["--et"]),
    "fiber": ("bench_fiber_echo", []),
}
TITLES = {
    "plain": "raw epoll, level-triggered, read/write",
    "tightest": "raw epoll, edge-triggered, recv/send",
    "fiber": "sylar, a fiber a connection",
}
RATIOS = {  # (ours, yardstick): what server CPU per request should be at most, at 100 connections and 64 B
    ("fiber", "plain"): 1.00,
    ("fiber", "tightest"): 1.05,
    ("tightest", "plain"): None,
}
FIGURES = ("server_cpu_ns_per_request", "requests_per_s", "p50_us", "p99_us")
START_TIMEOUT_S = 10
STOP_TIMEOUT_S = 5


@dataclass
class Server:
    name: str
    process: subprocess.Popen
    port: int

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))


def pinned(core):
    return lambda: os.sched_setaffinity(0, {core})


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


@contextlib.contextmanager
def running(name, bin_dir, core, arguments=()):
    program, own_arguments = SERVERS[name]
    command = [bin_dir / program, *own_arguments, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(core))
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
        line = process.stdout.readline() if ready else ""
        match = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        if not match:
            raise RuntimeError(f"{program} did not start: {line!r}")
        yield Server(name, process, int(match[1]))
    finally:
        status = stop(process)
    if status != 0:
        raise RuntimeError(f"{program} ended with status {status} instead of 0")


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


def measure_slice(server, options):
    command = [options.bin / "bench_echo_load"]
    command += ["--port", str(server.port), "--server-pid", str(server.process.pid)]
    for name in ("connections", "size", "seconds", "warmup"):
        command += [f"--{name}", str(getattr(options, name))]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(options.client_core))
    try:
        output, _ = client.communicate(timeout=options.seconds + options.warmup + 60)
    finally:
        stop(client)
    if client.returncode != 0:
        raise RuntimeError(f"the client failed against {server.name}")
    return json.loads(output)


def measure(options):
    """Slices by server name, one of each a round. The order rotates, so that no server always follows the same one."""
    slices = {name: [] for name in options.servers}
    with contextlib.ExitStack() as stack:
        buffer = ["--buffer", str(options.buffer)]
        servers = [stack.enter_context(running(name, options.bin, options.server_core, buffer)) for name in options.servers]
        for number in range(options.rounds):
            shift = number % len(servers)
            for server in servers[shift:] + servers[:shift]:
                slices[server.name].append(measure_slice(server, options))
            print(f"round {number + 1} of {options.rounds}", end="\r", file=sys.stderr, flush=True)
        threads = {server.name: server.threads() for server in servers}
    return slices, threads


def summarize(slices, threads):
    servers = {}
    for name, runs in slices.items():
        medians = {key: statistics.median(run[key] for run in runs) for key in (*FIGURES, "server_cpu", "client_cpu")}
        servers[name] = {"threads": threads[name], **medians}
    ratios = {}
    for (name, yardstick), goal in RATIOS.items():
        if name in slices and yardstick in slices:
            rounds = list(zip(slices[name], slices[yardstick]))
            ratio = {key: sorted(ours[key] / theirs[key] for ours, theirs in rounds) for key in FIGURES}
            cpu = ratio[FIGURES[0]]
            medians = {key: statistics.median(values) for key, values in ratio.items()}
            quartiles = [cpu[len(cpu) // 4], cpu[-1 - len(cpu) // 4]]
            ratios[f"{name} / {yardstick}"] = {**medians, "cpu_quartiles": quartiles, "goal": goal}
    return servers, ratios


def print_tables(options, servers, ratios, awake):
    print(f"TCP echo, {options.size} B, {options.connections} connections; {options.rounds} rounds, {options.seconds} s; medians")
    halting = "kept from halting" if awake else "MAY HALT: /dev/cpu_dma_latency is not ours to open, so expect noise"
    print(f"servers on core {options.server_core}, client on core {options.client_core}; idle cores {halting}")
    if options.server_core == options.client_core:
        print("ONE CORE for both: the figures of requests and latency say nothing about a server")

    figures = f"{'CPU ns/request':>14} {'requests/s':>10} {'p50 us':>8} {'p99 us':>8}"
    print(f"\n{'server':40} {'threads':>7} {figures} {'CPU':>5} {'client CPU':>10}")
    for name, row in servers.items():
        cpu, requests, p50, p99 = (row[key] for key in FIGURES)
        print(f"{TITLES[name]:40} {row['threads']:7} {cpu:14.0f} {requests:10.0f} {p50:8.1f} {p99:8.1f} "
              f"{row['server_cpu']:5.0%} {row['client_cpu']:10.0%}")

    print(f"\n{'ratio inside a round':40} {'':7} {figures} {'CPU quartiles':>15}  CPU goal")
    for name, ratio in ratios.items():
        cpu, requests, p50, p99 = (ratio[key] for key in FIGURES)
        low, high = ratio["cpu_quartiles"]
        goal = "" if ratio["goal"] is None else f"<= {ratio['goal']:.2f}: " + ("met" if cpu <= ratio["goal"] else "not met")
        print(f"{name:40} {'':7} {cpu:14.3f} {requests:10.3f} {p50:8.3f} {p99:8.3f} {f'{low:.3f} - {high:.3f}':>15}  {goal}")


def write_json(options, slices, servers, ratios, awake):
    result = {
        "topic": "echo",
        "machine": {"kernel": platform.release(), "processor": platform.machine(), "cores": os.cpu_count(), "kept_awake": awake},
        "setup": {key: value for key, value in vars(options).items() if key not in ("bin", "out", "servers")},
        "servers": servers,
        "ratios": ratios,
        "slices": slices,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten: {options.out}")


def parse_arguments():
    cores = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--bin", type=Path, default="build/release/bin", help="where the programs are")
    parser.add_argument("--out", type=Path, default="bench/results/echo.json", help="the file for the figures")
    parser.add_argument("--servers", type=lambda text: text.split(","), default=list(SERVERS), metavar="A,B", help="which of all")
    parser.add_argument("--connections", type=int, default=100, help="open at once")
    parser.add_argument("--size", type=int, default=64, help="bytes a message")
    parser.add_argument("--buffer", type=int, default=4096, choices=(512, 4096), help="bytes of a server's receive buffer")
    parser.add_argument("--rounds", type=int, default=9, help="slices of each server")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a slice")
    parser.add_argument("--warmup", type=float, default=0.2, help="seconds before each slice that do not count")
    parser.add_argument("--server-core", type=int, default=cores[0], help="core of the servers")
    parser.add_argument("--client-core", type=int, default=cores[-1], help="core of the client")
    options = parser.parse_args()
    if unknown := set(options.servers) - set(SERVERS):
        parser.error(f"no such server: {', '.join(unknown)}")
    return options


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an exception, so that every child is ended on the way out
    with cores_kept_awake() as awake:
        slices, threads = measure(options)
    servers, ratios = summarize(slices, threads)
    print_tables(options, servers, ratios, awake)
    write_json(options, slices, servers, ratios, awake)


if __name__ == "__main__":
    main()
