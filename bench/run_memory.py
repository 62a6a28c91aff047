#!/usr/bin/python3
"""Resident bytes of an idle connection: each has been served once and is kept open. The kernel's own memory is not counted.

The difference of the server's resident memory before and after the connections, over their number; README.md tells more.
"""

import contextlib
import select
import socket

import harness
import run_http
from harness import Missing, goal

REQUEST = b"GET /hello HTTP/1.1\r\nhost: a\r\n\r\n"
AS_WORKER = ["bench_fiber_echo", "--identity", "worker"]
SERVERS = {  # name: (title, program and arguments, what a connection asks, the end of its answer)
    "plain": ("raw epoll", ["bench_raw_epoll_echo", "--et"], b"x", b"x"),
    "own": ("sylar, a thread of its own, 64 B on the stack", ["bench_fiber_echo", "--buffer", 64], b"x", b"x"),
    "fiber": ("sylar, as its worker, 64 B on the stack", [*AS_WORKER, "--buffer", 64], b"x", b"x"),
    "fiber-4k": ("the same, 4 KiB on the stack", [*AS_WORKER, "--buffer", 4096], b"x", b"x"),
    "fiber-deep": ("the same, each request went 32 KiB deep", [*AS_WORKER, "--deep", 1], b"x", b"x"),
    "fiber-trimmed": ("the same, stacks trimmed after 0.1 s", [*AS_WORKER, "--deep", 1, "--trim-ms", 100], b"x", b"x"),
    "asio": ("Boost.Asio, callbacks, 4 KiB", ["bench_asio_echo"], b"x", b"x"),
    "asio-spawn": ("Boost.Asio, spawn, 4 KiB", ["bench_asio_echo", "--spawn"], b"x", b"x"),
    "go": ("Go, 4 KiB", ["bench_go_echo"], b"x", b"x"),
    "sylar-http": ("sylar::http, kept alive", ["http_hello", 0, 1], REQUEST, b"hello\n"),
    "nginx": ("nginx, kept alive", None, REQUEST, b"hello\n"),
    "beast": ("Boost.Beast, kept alive", ["bench_beast_hello"], REQUEST, b"hello\n"),
    "go-http": ("Go, net/http, kept alive", ["bench_go_hello"], REQUEST, b"hello\n"),
}
FOR_GOALS = {"own": ("handler in a thread of its own", 9.5), "fiber": ("handler without a stack buffer", 4.7),
             "fiber-4k": ("handler with 4 KiB on its stack", 8.3),
             "fiber-trimmed": ("handler that went 32 KiB deep, trimmed", 4.7), "sylar-http": ("kept HTTP connection", 5)}
TIMEOUT_S = 10


def start(stack, name, options):
    if name == "nginx":
        return run_http.start(stack, name, options)
    program, *arguments = SERVERS[name][1]
    return stack.enter_context(harness.running([options.bin / program, *arguments], {options.server_core}))


def connect(stack, port, number, asks, end):
    """Connections of which each has had one answer."""
    sockets = []
    for _ in range(number):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT_S))
        client.sendall(asks)
        sockets.append(client)
    for client in sockets:
        answer = b""
        while not answer.endswith(end):
            piece = client.recv(4096)
            if not piece:
                raise RuntimeError("the server closed a connection")
            answer += piece
    return sockets


def measure(name, options):
    """Bytes of a connection. A tenth of them come first: pools, tables and pages of code that the first ones need do not count."""
    _, _, asks, end = SERVERS[name]
    with contextlib.ExitStack() as stack:
        server = start(stack, name, options)
        before, after = (connect_and_rest(stack, server, number, asks, end) for number in (options.connections // 10, options.connections))
        return {"bytes": (after - before) / options.connections}


def connect_and_rest(stack, server, number, asks, end):
    """Resident bytes of the server with so many more connections, when the last of them have come to rest, and been trimmed."""
    connect(stack, server.port, number, asks, end)
    select.select([], [], [], 0.5)
    return server.resident_bytes()


def main():
    parser = harness.parser("memory", __doc__, rounds=3)
    parser.add_argument("--connections", type=int, default=5000, help="open at once")
    options = harness.parse(parser)
    if options.quick:
        options.connections = min(options.connections, 1000)
    harness.pinned({options.client_core})()
    runs, missing = {}, {}
    for name in harness.rounds(options.rounds, FOR_GOALS if options.goals else SERVERS):
        try:
            runs.setdefault(name, []).append(measure(name, options))
        except (Missing, RuntimeError) as problem:
            missing[name] = str(problem)
    middle = {name: harness.medians(found)["bytes"] for name, found in runs.items()}

    print(f"memory of an idle connection; {options.rounds} rounds of {options.connections} connections; medians")
    harness.table(("server", "bytes"), [(SERVERS[name][0], middle.get(name, missing.get(name))) for name in SERVERS if name in middle or name in missing])
    goals = [goal("P-9", what, middle.get(name) and middle[name] / 1024, "KiB", "<=", bound, "smaps_rollup; Go and others in the table")
             for name, (what, bound) in FOR_GOALS.items()]
    harness.goals_table(goals)
    yardstick = {name: "go-http" if SERVERS[name][2] == REQUEST else "go" for name in runs}
    ratios = {f"{SERVERS[name][0]} / {SERVERS[other][0]}": harness.ratio_of(runs, name, other, "bytes") for name, other in yardstick.items() if name != other}
    harness.write(options, "memory", None, goals, ratios, runs=runs, missing=missing)
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": "idle connection", "x": "resident bytes", "bars": {SERVERS[name][0]: value for name, value in middle.items()}}])


if __name__ == "__main__":
    main()
