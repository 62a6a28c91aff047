#!/usr/bin/env python3
"""Broken configurations: the service names file, line, key and what would be right, ends with 2 or 3, and has started nothing.

    broken_folders_test.py SERVICE

A case is a name, the files that it puts in place of those of the good folder, the exit status, and for each mistake in it the words
that one line on stderr must have. Exactly so many lines must be there.
"""
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SERVICE = sys.argv[1]
MISUSED, NOT_STARTED = 2, 3

GOOD = {
    "server.yml": "servers:\n  - address: [127.0.0.1:0]\n    type: http\n    io_worker: io\n",
    "worker.yml": "workers:\n  io: {thread_num: 2}\n",
}


def server(line, more=""):
    """server.yml with `line` as its line 4."""
    return {"server.yml": f"servers:\n  - address: [127.0.0.1:0]\n    type: http\n    {line}\n{more}"}


def own(text):
    return {"own.yml": text}


def limits(text):
    return {"limits.yml": text}


busy = socket.socket()
busy.bind(("127.0.0.1", 0))
busy.listen()
BUSY = busy.getsockname()[1]

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8))
DEEP = "demo: " + "[" * 100 + "]" * 100 + "\n"

CASES = [
    # name, files, status, the mistakes
    ("unknown key", own("nope: 1\n"), MISUSED, ["own.yml:1: nope: '1': no setting"]),
    ("unknown key that is nearly one", own("app:\n  drain_msec: 1\n"), MISUSED, ["own.yml:2: app.drain_msec: .*app.drain_ms"]),
    ("unknown key within a server", server("prot: 80"), MISUSED, [r"server.yml:4: servers\[0\].prot: '80': is unknown here; known are address"]),
    ("unknown key within a worker", {"worker.yml": "workers:\n  io:\n    threads: 2\n"}, MISUSED,
     [r"worker.yml:3: workers.io.threads: '2': is unknown here; known are thread_num"]),
    ("unknown key within a logger", own("logs:\n  - name: root\n    colour: red\n"), MISUSED, [r"own.yml:3: logs\[0\].colour: 'red': is unknown"]),
    ("unknown key within an appender", own("logs:\n  - name: root\n    appenders:\n      - type: StdoutLogAppender\n        path: x\n"),
     MISUSED, [r"own.yml:5: logs\[0\].appenders\[0\].path: 'x': is unknown"]),
    ("duplicate key", own("app:\n  drain_ms: 1\n  drain_ms: 2\n"), MISUSED, ["own.yml:3: .*drain_ms"]),
    ("duplicate key in two files", {"a.yml": "app: {drain_ms: 1}\n", "b.yml": "app: {drain_ms: 2}\n"}, MISUSED, ["b.yml:1: app.drain_ms.*a.yml"]),
    ("duplicate section", own("app: {drain_ms: 1}\napp: {drain_ms: 2}\n"), MISUSED, ["own.yml:2: .*app"]),
    ("tab as indentation", own("app:\n\tdrain_ms: 1\n"), MISUSED, ["own.yml:2: .*tab"]),
    ("not closed", own("app: {drain_ms: 1\n"), MISUSED, ["own.yml:[12]: "]),
    ("a list where a map belongs", own("- app\n"), MISUSED, ["own.yml:1: "]),
    ("text where a map belongs", own("just text\n"), MISUSED, ["own.yml:1: "]),
    ("two documents", own("app: {drain_ms: 1}\n---\napp: {drain_ms: 2}\n"), MISUSED, ["own.yml:[23]: "]),
    ("alias bomb", own(BOMB), MISUSED, ["own.yml:[0-9]+: .*100 ?000"]),
    ("alias of itself", own("demo: &a [*a]\n"), MISUSED, ["own.yml:1: "]),
    ("unknown alias", own("demo: *nobody\n"), MISUSED, ["own.yml:1: .*anchor"]),
    ("too deep", own(DEEP), MISUSED, ["own.yml:1: .*64"]),
    ("too large", own("# " + "x" * (1 << 20) + "\n"), MISUSED, ["own.yml: .*(1 MiB|1048576)"]),
    ("a tag", own("app:\n  drain_ms: !!str 7\n"), MISUSED, ["own.yml:2: .*tag"]),
    ("a key that is a list", own("? [a, b]\n: 1\n"), MISUSED, ["own.yml:1: "]),
    ("a bad name", own("app drain: 1\n"), MISUSED, ["own.yml:1: .*app drain"]),
    ("a NUL", own("app:\n  drain_ms: 1\0\n"), MISUSED, ["own.yml:[12]: "]),
    ("number that is text", own("app:\n  drain_ms: soon\n"), MISUSED, ["own.yml:2: app.drain_ms: 'soon': .*integer"]),
    ("number with a unit", own("app:\n  drain_ms: 10s\n"), MISUSED, ["own.yml:2: app.drain_ms: '10s': .*integer"]),
    ("negative number", own("app:\n  drain_ms: -1\n"), MISUSED, ["own.yml:2: app.drain_ms: '-1': "]),
    ("fraction", own("app:\n  drain_ms: 1.5\n"), MISUSED, ["own.yml:2: app.drain_ms: '1.5': .*integer"]),
    ("number above the range", own("app:\n  drain_ms: 86400001\n"), MISUSED, ["own.yml:2: app.drain_ms: '86400001': must be from 0 to 86400000"]),
    ("number that overflows", own("app:\n  drain_ms: 99999999999999999999\n"), MISUSED, ["own.yml:2: app.drain_ms: "]),
    ("list for a number", own("app:\n  drain_ms: [1]\n"), MISUSED, ["own.yml:2: app.drain_ms: "]),
    ("nothing for a number", own("app:\n  drain_ms:\n"), MISUSED, ["own.yml:2: app.drain_ms: "]),
    ("bool that is none", server("keepalive: often"), MISUSED, [r"server.yml:4: servers\[0\].keepalive: 'often': .*true"]),
    ("small stack", limits("fiber:\n  stack_size: 100\n"), MISUSED, ["limits.yml:2: fiber.stack_size: '100': must be from 16384 to 1073741824"]),
    ("huge stack", limits("fiber:\n  stack_size: 1073741825\n"), MISUSED, ["limits.yml:2: fiber.stack_size: "]),
    ("no connections", limits("tcp_server:\n  max_connections: 0\n"), MISUSED, ["limits.yml:2: tcp_server.max_connections: '0': must be from 1"]),
    ("no connections per peer", limits("tcp_server: {max_per_peer: 0}\n"), MISUSED, ["limits.yml:1: tcp_server.max_per_peer: '0': must be from 1"]),
    ("listeners", limits("tcp_server: {listeners: 0}\n"), MISUSED, ["limits.yml:1: tcp_server.listeners: '0': must be from 1 to 1024"]),
    ("backlog", limits("tcp_server: {backlog: 65536}\n"), MISUSED, ["limits.yml:1: tcp_server.backlog: '65536': must be from 1 to 65535"]),
    ("read timeout", limits("tcp_server: {read_timeout: for ever}\n"), MISUSED, ["limits.yml:1: tcp_server.read_timeout: 'for ever': "]),
    ("connect timeout", limits("tcp: {connect: {timeout: -5}}\n"), MISUSED, ["limits.yml:1: tcp.connect.timeout: '-5': "]),
    ("no idle timeout", limits("http:\n  idle_timeout_ms: 0\n"), MISUSED, ["limits.yml:2: http.idle_timeout_ms: '0': must be from 1"]),
    ("tiny request line", limits("http:\n  request:\n    max_line_size: 2\n"), MISUSED, ["limits.yml:3: http.request.max_line_size: '2': must be from 16"]),
    ("max_wait", limits("io: {max_wait_ms: many}\n"), MISUSED, ["limits.yml:1: io.max_wait_ms: 'many': "]),
    ("spin", limits("io: {spin_us: 1000001}\n"), MISUSED, ["limits.yml:1: io.spin_us: '1000001': must be from 0 to 1000000"]),
    ("timer queue", limits("timer:\n  queue: list\n"), MISUSED, ["limits.yml:2: timer.queue: 'list': must be one of: heap, binary_heap, set, wheel, wheel_10ms"]),
    ("timer queue that is a map", limits("timer:\n  queue: {kind: heap}\n"), MISUSED, ["limits.yml:2: timer.queue"]),
    ("unknown worker", server("accept_worker: nobody"), MISUSED, [r"server.yml:4: servers\[0\].accept_worker: 'nobody': is no worker; there are io"]),
    ("worker without workers", {"worker.yml": ""}, MISUSED, [r"server.yml:4: servers\[0\].io_worker: 'io': is no worker"]),
    ("unknown process worker", server("process_worker: nobody"), MISUSED, [r"server.yml:4: servers\[0\].process_worker: 'nobody': is no worker"]),
    ("no threads", {"worker.yml": "workers:\n  io:\n    thread_num: 0\n"}, MISUSED, ["worker.yml:3: workers.io.thread_num: '0': must be from 1 to 1024"]),
    ("too many threads", {"worker.yml": "workers: {io: {thread_num: 1025}}\n"}, MISUSED, ["worker.yml:1: workers.io.thread_num: '1025': must be"]),
    ("no IOManagers", {"worker.yml": "workers: {io: {worker_num: 0}}\n"}, MISUSED, ["worker.yml:1: workers.io.worker_num: '0': must be"]),
    ("workers as a list", {"worker.yml": "workers: [io]\n"}, MISUSED, ["worker.yml:1: workers: "]),
    ("unknown type of server", {"server.yml": "servers:\n  - address: [127.0.0.1:0]\n    type: gopher\n"}, MISUSED,
     [r"server.yml:3: servers\[0\].type: 'gopher': is no type of server; there are echo, http"]),
    ("misspelt address", {"server.yml": "servers:\n  - adress: ['127.0.0.1:0']\n"}, MISUSED, [r"server.yml:2: servers\[0\].adress: .*known are address"]),
    ("server without an address", {"server.yml": "servers:\n  - type: http\n"}, MISUSED, [r"server.yml:2: servers\[0\].address: .*at least one address"]),
    ("servers as a map", {"server.yml": "servers:\n  web: {type: http}\n"}, MISUSED, ["server.yml:[12]: servers: "]),
    ("port above 65535", {"server.yml": "servers:\n  - address: ['127.0.0.1:65536']\n"}, MISUSED,
     [r"server.yml:2: servers\[0\].address\[0\]: '127.0.0.1:65536': must be address:port"]),
    ("no port", {"server.yml": "servers:\n  - address: [127.0.0.1]\n"}, MISUSED, [r"server.yml:2: servers\[0\].address\[0\]: '127.0.0.1': must have a port"]),
    ("port that is text", {"server.yml": "servers:\n  - address: ['127.0.0.1:http-alt']\n"}, MISUSED, [r"server.yml:2: .*must be address:port"]),
    ("IPv6 without brackets", {"server.yml": "servers:\n  - address: ['::1:80']\n"}, MISUSED, [r"server.yml:2: .*'::1:80': must be address:port, .*\[::\]:8020"]),
    ("long path", {"server.yml": "servers:\n  - address: [/" + "x" * 120 + "]\n"}, MISUSED, [r"server.yml:2: .*less than 108"]),
    ("address twice", {"server.yml": "servers:\n  - address: ['127.0.0.1:8099']\n  - address: ['127.0.0.1:8099']\n"}, MISUSED,
     [r"server.yml:3: servers\[1\].address\[0\]: '127.0.0.1:8099': is taken by servers\[0\].address\[0\]"]),
    ("TLS", server("ssl: true"), MISUSED, [r"server.yml:4: servers\[0\].ssl: .*needs the component sylar::tls"]),
    ("a certificate", server("cert_file: x.pem"), MISUSED, [r"servers\[0\].ssl: is false, so cert_file and key_file would not be used"]),
    ("server timeout", server("timeout: 86400001"), MISUSED, [r"server.yml:4: servers\[0\].timeout: '86400001': must be from 0 to 86400000"]),
    ("unknown level", own("logs:\n  - name: root\n    level: loud\n"), MISUSED, [r"own.yml:3: logs\[0\].level: 'loud': .*debug"]),
    ("logger without a name", own("logs:\n  - level: info\n"), MISUSED, [r"own.yml:2: logs\[0\].name: must name"]),
    ("logger twice", own("logs:\n  - name: root\n  - name: root\n"), MISUSED, [r"own.yml:3: logs\[1\].name: 'root': "]),
    ("unknown appender", own("logs:\n  - name: root\n    appenders:\n      - type: Telex\n"), MISUSED, [r"own.yml:4: .*type: 'Telex': .*StdoutLogAppender"]),
    ("file appender without a file", own("logs:\n  - name: root\n    appenders:\n      - type: FileLogAppender\n"), MISUSED, [r"own.yml:4: .*file"]),
    ("file that cannot be written", own("logs:\n  - name: root\n    appenders:\n      - {type: FileLogAppender, file: /proc/no/such.log}\n"), MISUSED,
     [r"own.yml:4: .*file: '/proc/no/such.log': "]),
    ("bad pattern", own("logs:\n  - name: root\n    formatter: '%d{'\n"), MISUSED, [r"own.yml:3: .*formatter: '%d\{': "]),
    ("several mistakes", {"a.yml": "nope: 1\napp: {drain_ms: x}\n", "b.yml": "fiber: {stack_size: 1}\n"}, MISUSED,
     ["a.yml:1: nope", "a.yml:2: app.drain_ms", "b.yml:1: fiber.stack_size"]),
    ("port in use", {"server.yml": f"servers:\n  - address: [127.0.0.1:0]\n  - address: ['127.0.0.1:{BUSY}']\n"}, NOT_STARTED,
     [rf"server.yml:3: servers\[1\].address\[0\]: '127.0.0.1:{BUSY}': cannot listen on 127.0.0.1:{BUSY}: Address already in use"]),
    ("address of another host", {"server.yml": "servers:\n  - address: ['192.0.2.1:80']\n"}, NOT_STARTED, [r"server.yml:2: .*cannot listen on 192.0.2.1:80: "]),
    ("unknown host", {"server.yml": "servers:\n  - address: ['no.such.host.invalid:80']\n"}, NOT_STARTED, [r"server.yml:2: .*no interface and no host of this name"]),
    ("socket in no directory", {"server.yml": "servers:\n  - address: [/no/such/dir/x.sock]\n"}, NOT_STARTED, [r"server.yml:2: .*cannot listen on /no/such/dir/x.sock: No such file"]),
    ("pid file in no directory", own("server: {pid_file: /no/such/dir/x.pid}\n"), NOT_STARTED, ["server.pid_file: '/no/such/dir/x.pid': No such file"]),
]





def run(folder):
    service = subprocess.Popen([SERVICE, "-c", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        out, err = service.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        service.kill()
        service.communicate()
        return None, "", "it runs"
    return service.returncode, out, err


def mistakes_of(case):
    name, files, status, expected = case
    with tempfile.TemporaryDirectory() as folder:
        for file, text in (GOOD | files).items():
            Path(folder, file).write_text(text)
        code, out, err = run(folder)
    lines = err.splitlines()
    wrong = [] if code == status else [f"it ended with {code}, not {status}"]
    wrong += [f"no line has '{words}'" for words in expected if not any(re.search(words, line) for line in lines)]
    wrong += [f"{len(lines)} lines, not {len(expected)}"] if len(lines) != len(expected) else []
    wrong += ["it says that it runs"] if "the service runs" in out else []
    return [f"{name}: {text}; stderr:\n{err}" for text in wrong]


def main():
    failures = [text for case in CASES for text in mistakes_of(case)]
    code, _, err = run("/no/such/folder")
    if code != MISUSED or "there is no folder '/no/such/folder'" not in err or "-c DIR" not in err:
        failures.append(f"no folder: {code}, {err}")
    with tempfile.TemporaryDirectory() as folder:
        for file, text in GOOD.items():
            Path(folder, file).write_text(text)
        check = subprocess.run([SERVICE, "-c", folder, "--check-config"], capture_output=True, text=True, timeout=120)
    if check.returncode != 0 or check.stderr:
        failures.append(f"the good folder: {check.returncode}, {check.stderr}")
    print("\n".join(failures))
    print(f"{len(CASES) + 1} broken folders, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
