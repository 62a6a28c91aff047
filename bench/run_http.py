#!/usr/bin/python3
"""HTTP hello over kept connections under wrk: ours beside nginx, Boost.Beast, Go's net/http and a raw loop that parses nothing, by
server CPU time per request.

All servers live from the first slice to the last, on one core; wrk runs alone on another. Slices alternate as in topic echo.
README.md tells how to read the tables.
"""

import collections
import contextlib
import re
import resource
import tempfile
from pathlib import Path

import harness
from harness import Missing, ratio_goal, ratio_of

SERVERS = {  # name: (title, program and arguments)
    "raw": ("raw epoll, parses nothing", ["bench_raw_epoll_hello"]),
    "nginx": ("nginx, return 200, no log", None),
    "sylar": ("sylar::http", ["http_hello", 0, 1]),
    "sylar-epoll": ("sylar::http, io.engine epoll", ["http_hello", 0, 1, "epoll"]),
    "beast": ("Boost.Beast, callbacks", ["bench_beast_hello"]),
    "go": ("Go, net/http", ["bench_go_hello"]),
}
FOR_GOALS = ["nginx", "sylar", "sylar-epoll"]
CPU = "server_cpu_ns_per_request"
FIGURES = (CPU, "requests_per_s", "p50_us", "p99_us", "server_cpu", "client_cpu")
# One process: what a worker of nginx does, without a master above it. As much is answered as by the others.
NGINX = """
daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 12000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; default_type text/plain;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 "hello\\n"; }} }}
}}
"""
UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}


def start(stack, name, options):
    if name != "nginx":
        program, *arguments = SERVERS[name][1]
        return stack.enter_context(harness.running([options.bin / program, *arguments], {options.server_core}))
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    port = harness.free_port()
    Path(folder, "nginx.conf").write_text(NGINX.format(port=port))
    command = ["/usr/sbin/nginx", "-p", folder, "-c", "nginx.conf", "-e", "stderr"]
    return stack.enter_context(harness.running(command, {options.server_core}, port=port))


def load(server, connections, options):
    seconds = max(1, round(options.seconds))  # wrk knows whole seconds only
    command = ["/usr/bin/wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{server.port}/hello"]
    spent, waited = server.cpu_ns(), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = harness.output_of(command, {options.client_core}, seconds + 60)
    spent, after = server.cpu_ns() - spent, resource.getrusage(resource.RUSAGE_CHILDREN)
    if wrong := re.search(r"(Socket errors|Non-2xx).*", output):
        raise RuntimeError(f"wrk: {wrong[0]}")
    requests, window_s = re.search(r"(\d+) requests in ([\d.]+)s", output).groups()
    quantile = {name: float(value) * UNITS_US[unit] for name, value, unit in re.findall(r"^ +(50|99)% +([\d.]+)(us|ms|s)$", output, re.MULTILINE)}
    window_ns = float(window_s) * 1e9
    client_s = after.ru_utime + after.ru_stime - waited.ru_utime - waited.ru_stime
    return {"requests": int(requests), "requests_per_s": int(requests) / float(window_s), "p50_us": quantile["50"], "p99_us": quantile["99"],
            CPU: spent / int(requests), "server_cpu": spent / window_ns, "client_cpu": client_s / float(window_s)}


def measure(names, connections, options):
    """({server: slices}, {server: why it is missing})"""
    slices, missing = collections.defaultdict(list), {}
    with contextlib.ExitStack() as stack:
        servers = {}
        for name in names:
            try:
                servers[name] = start(stack, name, options)
            except (Missing, RuntimeError) as problem:
                missing[name] = str(problem)
        for name in harness.rounds(options.rounds, servers, f"{connections} connections:"):
            slices[name].append(load(servers[name], connections, options))
    return slices, missing


def print_tables(options, results, awake):
    print(f"HTTP hello, kept connections, wrk -t1; {options.rounds} rounds, {max(1, round(options.seconds))} s a slice; medians")
    print(f"servers on core {options.server_core}, client on core {options.client_core}; idle cores {harness.halting(awake)}")
    for connections, (slices, missing) in results.items():
        rows = []
        for name in options.servers:
            if name in missing:
                rows.append((SERVERS[name][0], missing[name]))
                continue
            figures, against = harness.medians(slices[name]), ratio_of(slices, name, "nginx", CPU)
            spread = f"{against['low']:.3f} - {against['high']:.3f}" if against else None
            rows.append((SERVERS[name][0], *(figures[key] for key in FIGURES), against and against["median"], spread))
        header = (f"{connections} connections", "CPU ns/request", "requests/s", "p50 us", "p99 us", "CPU", "client CPU", "CPU / nginx", "quartiles")
        harness.table(header, rows)


def main():
    parser = harness.parser("http", __doc__, rounds=5, seconds=2)
    parser.add_argument("--servers", type=lambda text: text.split(","), metavar="A,B", help=f"which of {','.join(SERVERS)}; all")
    parser.add_argument("--connections", type=lambda text: [int(part) for part in text.split(",")], default="100,1000", metavar="A,B")
    options = harness.parse(parser)
    options.servers = options.servers or (FOR_GOALS if options.goals else list(SERVERS))
    with harness.cores_kept_awake() as awake:
        results = {connections: measure(options.servers, connections, options) for connections in options.connections}
    print_tables(options, results, awake)
    goals = [ratio_goal("P-5", f"HTTP hello CPU, {engine}, {connections} connections", ratio_of(slices, name, "nginx", CPU), most, "nginx, one process")
             for connections, (slices, _) in results.items()
             for name, engine, most in (("sylar", "auto", 0.85), ("sylar-epoll", "epoll", 0.95)) if name in slices]
    harness.goals_table(goals)
    ratios = {f"{connections} connections, CPU: {SERVERS[name][0]} / nginx": ratio_of(slices, name, "nginx", CPU)
              for connections, (slices, _) in results.items() for name in slices if name != "nginx"}
    harness.write(options, "http", awake, goals, ratios,
                  results={connections: {"slices": slices, "missing": missing} for connections, (slices, missing) in results.items()})
    harness.plot(options.out.with_suffix(".svg"), [
        {"title": f"HTTP hello, {connections} connections", "x": "server CPU ns per request",
         "bars": {SERVERS[name][0]: harness.medians(runs)[CPU] for name, runs in slices.items()}}
        for connections, (slices, _) in results.items()])


if __name__ == "__main__":
    main()
