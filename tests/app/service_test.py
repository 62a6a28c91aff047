#!/usr/bin/env python3
"""The demo service, as its users see it: a process, a folder, signals, sockets.

    service_test.py SERVICE [unittest arguments]
"""
import asyncio
import http.client
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from stopwatch import Stopwatch  # noqa: E402

SERVICE = sys.argv.pop(1)
PATIENCE = 120  # seconds until a test gives up

SERVERS = """
servers:
  - {name: web, type: http, address: ['127.0.0.1:0'], keepalive: true, accept_worker: accept, io_worker: io}
  - {name: echo, type: echo, address: ['127.0.0.1:0'], accept_worker: accept, io_worker: io}
"""
WORKERS = "workers: {accept: {thread_num: 1}, io: {thread_num: 2}}\n"


class Service:
    """A running service, with a folder of its own."""

    def __init__(self, own="", servers=SERVERS, workers=WORKERS):
        self.folder = tempfile.TemporaryDirectory()
        self.write("server.yml", servers)
        self.write("worker.yml", workers)
        self.write("own.yml", own)
        self.log = open(self.path("stdout"), "w+")
        self.process = subprocess.Popen([SERVICE, "-c", self.folder.name], stdout=self.log, stderr=subprocess.STDOUT)
        self.wait_for("the service runs")
        self.ports = {name: int(port) for name, port in re.findall(r"(\w+) listens on [^ ]*:(\d+)", self.text())}

    def path(self, name):
        return Path(self.folder.name, name)

    def write(self, name, text):
        self.path(name).write_text(text)

    def text(self):
        return self.path("stdout").read_text(errors="replace")

    def wait_for(self, words, times=1):
        end = time.monotonic() + PATIENCE
        while self.text().count(words) < times:
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"'{words}' was not logged:\n{self.text()}")
            time.sleep(0.01)

    def get(self, path, **options):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["web"], timeout=PATIENCE)
        connection.request(options.pop("method", "GET"), path, **options)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def connect(self, name="web"):
        return socket.create_connection(("127.0.0.1", self.ports[name]), timeout=PATIENCE)

    def end(self, number=signal.SIGTERM):
        """Ends it; the exit status, and a Stopwatch that ran until then."""
        watch = Stopwatch()
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        return status, watch.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


async def ask(port, path):
    """The whole answer to one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


class Serves(unittest.TestCase):
    def test_what_the_index_promises(self):
        with Service("demo: {greeting: Good morning}\n") as service:
            self.assertEqual(service.get("/hello"), (200, "Good morning\n"))
            self.assertEqual(service.get("/echo", method="POST", body="abc"), (200, "abc"))
            self.assertEqual(service.get("/sleep?ms=5"), (200, "slept 5 ms\n"))
            self.assertEqual(service.get("/sleep?ms=-1")[0], 400)
            self.assertEqual(service.get("/sleep?ms=99999999999999")[0], 400)
            self.assertLess(abs(int(service.get("/time")[1]) - time.time()), 5)
            self.assertEqual(service.get("/")[0], 200)
            self.assertEqual(service.get("/nothing")[0], 404)
            with service.connect("echo") as client:
                client.sendall(b"over tcp")
                self.assertEqual(client.recv(100), b"over tcp")
            self.assertEqual(service.end()[0], 0)

    def test_that_sleeping_handlers_hold_up_nobody(self):
        async def all_at_once(port):
            watch = Stopwatch()
            answers = await asyncio.gather(*(ask(port, "/sleep?ms=1000") for _ in range(1000)))
            return answers, watch.stop()

        with Service("tcp_server: {backlog: 1024}\n") as service:
            answers, took = asyncio.run(all_at_once(service.ports["web"]))
            self.assertEqual(sum(answer.endswith(b"slept 1000 ms\n") for answer in answers), 1000)
            took.check(10 if "SYLAR_SANITIZED" in os.environ else 1.5)

    def test_a_redis_that_is_not_there(self):
        with Service("demo: {redis: '127.0.0.1:1'}\n") as service:
            self.assertEqual(service.get("/time"), (200, "Connection refused\n"))

    def test_the_limit_of_descriptors(self):
        with Service() as service:
            soft, hard = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
            self.assertEqual(soft, hard)

    def test_sigpipe_is_no_end(self):
        with Service() as service:
            service.process.send_signal(signal.SIGPIPE)
            self.assertEqual(service.get("/hello")[0], 200)


# CD-P1
class Ends(unittest.TestCase):
    def test_at_once_when_idle(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Service() as service, service.connect() as web, service.connect("echo") as echo:
                web.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertIn(b"200", web.recv(1000))
                echo.sendall(b"a")
                self.assertEqual(echo.recv(1), b"a")
                status, took = service.end(number)
                self.assertEqual(status, 0, service.text())
                took.check(5)

    def test_with_every_answer_that_was_begun(self):
        async def begin(port):
            """Two requests in one piece: when the first is answered, the second has been read."""
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /sleep?ms=700 HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"Hello\n")
            return reader, writer

        async def hammer(port, torn):
            while True:
                try:
                    answer = await ask(port, "/hello")
                except OSError:
                    return  # refused, or closed before it was read
                if answer and not answer.endswith(b"Hello\n"):
                    torn.append(answer)

        async def load_and_end(service):
            port, torn = service.ports["web"], []
            hammers = [asyncio.create_task(hammer(port, torn)) for _ in range(50)]
            begun = await asyncio.gather(*(begin(port) for _ in range(300)))
            service.process.send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*(reader.read() for reader, _ in begun))
            await asyncio.gather(*hammers)
            for _, writer in begun:
                writer.close()
            return answers, torn

        # A socket that does not listen keeps the port, so that the hammers meet nobody else after the end.
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            address = f"name: web, type: http, address: ['127.0.0.1:{held.getsockname()[1]}']"
            with Service(servers=SERVERS.replace("name: web, type: http, address: ['127.0.0.1:0']", address)) as service:
                answers, torn = asyncio.run(load_and_end(service))
                status = service.process.wait(PATIENCE)
                text = service.text()
        self.assertEqual([answer for answer in answers if not answer.endswith(b"slept 700 ms\n")], [])
        self.assertEqual(torn, [])
        self.assertEqual(status, 0, text)

    def test_by_force_at_the_deadline(self):
        with Service("app: {drain_ms: 300}\n") as service, service.connect() as client:
            client.sendall(b"GET /sleep?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(service.get("/hello")[0], 200)
            status, took = service.end()
            self.assertEqual(status, 1, service.text())
            self.assertGreaterEqual(took.elapsed, 0.3)
            took.check(2)
            self.assertIn("1 connections were cut off", service.text())

    def test_at_once_at_the_second_signal(self):
        with Service() as service, service.connect() as client:
            client.sendall(b"GET /sleep?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(service.get("/hello")[0], 200)
            service.process.send_signal(signal.SIGTERM)
            service.wait_for("the service ends")
            end = time.monotonic() + PATIENCE
            while service.process.poll() is None and time.monotonic() < end:
                service.process.send_signal(signal.SIGTERM)  # until it has unblocked the signal
                time.sleep(0.01)
            self.assertEqual(service.process.poll(), -signal.SIGTERM)


class Logs(unittest.TestCase):
    """The demo's lines had "UNKNOW" for a thread and "sylar:0" for a place, and "ready" came before the listeners."""

    def test_the_listeners_then_ready(self):
        with Service() as service:
            lines = [line.split("\t") for line in service.text().splitlines()]
        told = [line[-1].split(" on ")[0].split(":")[0] for line in lines]
        self.assertEqual(told, ["web listens", "echo listens", "ready", "the service runs"])

    def test_the_threads_and_no_false_place(self):
        with Service() as service:
            service.process.send_signal(signal.SIGHUP)
            service.wait_for("0 settings changed")
            service.process.send_signal(signal.SIGUSR2)
            service.process.wait(PATIENCE)
            lines = [line.split("\t") for line in service.text().splitlines()]
            successor = int(re.findall(r"process (\d+) has taken over", service.text())[0])
            os.kill(successor, signal.SIGTERM)
            end = time.monotonic() + PATIENCE
            while service.text().count("the service has ended") < 2 and time.monotonic() < end:
                time.sleep(0.01)
        of_library = [line for line in lines if line[5] == "[system]"]
        self.assertEqual({line[2] for line in of_library}, {"service", "reloader"}, lines)
        self.assertEqual({line[6] for line in of_library}, {"-"}, lines)
        self.assertRegex(next(line[2] for line in lines if line[5] == "[demo]"), "^(accept|io)_")


class Reloads(unittest.TestCase):
    def test_what_may_change(self):
        with Service("demo: {greeting: one}\n") as service:
            self.assertEqual(service.get("/hello"), (200, "one\n"))
            service.write("own.yml", "demo: {greeting: two}\n")
            service.process.send_signal(signal.SIGHUP)
            service.wait_for("1 settings changed")
            self.assertEqual(service.get("/hello"), (200, "two\n"))

            for times, (wrong, told) in enumerate((
                ("app: {drain_ms: never}\n", "own.yml:2: app.drain_ms: 'never'"),
                ("logs: [{name: root, level: loud}]\n", "own.yml:2: logs[0].level: 'loud'"),
            ), 1):
                service.write("own.yml", "demo: {greeting: three}\n" + wrong)
                service.process.send_signal(signal.SIGHUP)
                service.wait_for("nothing has changed", times)
                service.wait_for(told)
                self.assertEqual(service.get("/hello"), (200, "two\n"))

    def test_that_servers_stay(self):
        with Service() as service:
            service.write("worker.yml", WORKERS.replace("thread_num: 2", "thread_num: 3"))
            service.process.send_signal(signal.SIGHUP)
            service.wait_for("workers has changed, without an effect until the service is started anew")
            service.write("server.yml", SERVERS.replace("io_worker: io", "io_worker: nobody"))
            service.process.send_signal(signal.SIGHUP)
            service.wait_for("is no worker; there are accept, io")
            self.assertEqual(service.get("/hello")[0], 200)

    def test_the_loggers(self):
        with Service() as service:
            file = service.path("system.log")
            service.write("own.yml", f"logs: [{{name: system, level: info, appenders: [{{type: FileLogAppender, file: {file}}}]}}]\n")
            service.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + PATIENCE
            while not file.exists() or "settings changed" not in file.read_text():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)


class Settings(unittest.TestCase):
    """Keys whose effect is seen from outside; the others are in settings_test and application_test."""

    def status_of(self, own, request):
        with Service(own) as service, service.connect() as client:
            client.sendall(request)
            return client.recv(100).split(b" ")[1]

    def test_http_request_limits(self):
        head = b"GET /hello HTTP/1.1\r\nHost: x\r\n"
        self.assertEqual(self.status_of("http: {request: {max_body_size: 4}}\n", b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde"), b"413")
        self.assertEqual(self.status_of("http: {request: {max_line_size: 16}}\n", b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"), b"414")
        self.assertEqual(self.status_of("http: {request: {max_header_size: 16}}\n", head + b"A: 34567890123456\r\n\r\n"), b"431")
        self.assertEqual(self.status_of("http: {request: {buffer_size: 19}}\n", head + b"A: 345678\r\n\r\n"), b"431")
        self.assertEqual(self.status_of("http: {request: {max_headers: 1}}\n", head + b"A: b\r\n\r\n"), b"431")
        chunked = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(self.status_of("http: {request: {max_chunk_line_size: 4}}\n", chunked + b"1;a=bc\r\nx\r\n0\r\n\r\n"), b"400")
        self.assertEqual(self.status_of("http: {request: {max_chunk_extensions_size: 2}}\n", chunked + b"1;a=b\r\nx\r\n0\r\n\r\n"), b"400")
        self.assertEqual(self.status_of("http: {request: {max_trailer_size: 2}}\n", chunked + b"0\r\nA: b\r\n\r\n"), b"400")
        self.assertEqual(self.status_of("http: {request: {max_params: 1}}\n", b"GET /sleep?ms=1&b=2 HTTP/1.1\r\nHost: x\r\n\r\n"), b"400")

    def closed_after(self, own, sent=b"", name="web", servers=SERVERS):
        """A Stopwatch that ran from the connect until the server closed the connection, and what the server said."""
        with Service(own, servers) as service:
            watch = Stopwatch()  # before the server can begin to count
            with service.connect(name) as client:
                client.sendall(sent)
                text = b""
                while part := client.recv(1000):
                    text += part
                return watch.stop(), text

    def test_timeouts(self):
        get = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        for own, sent, said in (
            ("http: {first_byte_timeout_ms: 200}\n", b"", b""),
            ("http: {head_timeout_ms: 200}\n", b"GET /hello HT", b"408"),
            ("http: {idle_timeout_ms: 200}\n", get, b"Hello"),
            ("http: {body_grace_ms: 200}\n", b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"408"),
        ):
            took, text = self.closed_after(own, sent)
            self.assertGreaterEqual(took.elapsed, 0.2, own)
            took.check(5, own)
            self.assertIn(said, text)
        self.assertGreaterEqual(self.closed_after("tcp_server: {read_timeout: 200}\n", name="echo")[0].elapsed, 0.2)
        slow = SERVERS.replace("type: echo", "timeout: 200, type: echo").replace("type: http", "timeout: 200, type: http")
        self.assertGreaterEqual(self.closed_after("", name="echo", servers=slow)[0].elapsed, 0.2)
        self.assertGreaterEqual(self.closed_after("", get, servers=slow)[0].elapsed, 0.2)

    def test_keepalive(self):
        get = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
        took, text = self.closed_after("", get, servers=SERVERS.replace("keepalive: true", "keepalive: false"))
        self.assertIn(b"close", text)
        took.check(5)
        took, text = self.closed_after("http: {max_requests: 2}\n", get + get)
        self.assertEqual(text.count(b"200 OK"), 2)
        took.check(5)

    def test_connection_limits(self):
        with Service("tcp_server: {max_connections: 1}\n") as service, service.connect("echo") as first, service.connect("echo") as second:
            first.sendall(b"a")
            self.assertEqual(first.recv(1), b"a")
            second.sendall(b"b")
            second.settimeout(0.3)
            self.assertRaises(TimeoutError, second.recv, 1)
            first.close()
            second.settimeout(PATIENCE)
            self.assertEqual(second.recv(1), b"b")
        with Service("tcp_server: {max_per_peer: 1, limit_loopback: true}\n") as service, service.connect("echo") as first, service.connect("echo") as second:
            first.sendall(b"a")
            self.assertEqual(first.recv(1), b"a")
            self.assertEqual(second.recv(1), b"")

    def test_worker_counts(self):
        with Service(workers="workers: {accept: {thread_num: 1}, io: {thread_num: 3, worker_num: 2}}\n") as service:
            names = [Path(task, "comm").read_text().strip() for task in Path(f"/proc/{service.process.pid}/task").iterdir()]
            self.assertEqual(sum(name.startswith("io_") for name in names), 6)
            self.assertEqual(sum(name.startswith("accept_") for name in names), 1)

    def test_without_workers_there_are_as_many_threads_as_processors(self):
        one = {min(os.sched_getaffinity(0))}
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, one)
        try:
            with Service(servers=SERVERS.replace(", accept_worker: accept, io_worker: io", ""), workers="") as service:
                names = [Path(task, "comm").read_text().strip() for task in Path(f"/proc/{service.process.pid}/task").iterdir()]
                self.assertEqual(sum(name.startswith("io_") for name in names), 1)
        finally:
            os.sched_setaffinity(0, mine)

    def test_unix_socket_and_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x.sock"
            servers = f"servers: [{{type: echo, address: ['{path}', 'localhost:0', 'lo:0', '[::1]:0']}}]\n"
            with Service(servers=servers, workers="") as service, socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b"a")
                self.assertEqual(client.recv(1), b"a")
                self.assertEqual(service.text().count("echo listens on"), 4, service.text())
                self.assertEqual(service.end()[0], 0)
                self.assertFalse(Path(path).exists())

    def test_pid_file(self):
        with tempfile.TemporaryDirectory() as folder:
            own = f"server: {{work_path: {folder}, pid_file: demo.pid}}\n"
            file = Path(folder, "demo.pid")
            with Service(own) as service:
                self.assertEqual(int(file.read_text()), service.process.pid)
                second = subprocess.run([SERVICE, "-c", service.folder.name], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(second.returncode, 3)
                self.assertIn("a running service holds it", second.stderr)
                self.assertEqual(service.end()[0], 0)
            self.assertFalse(file.exists())

    def test_log_levels_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/new/demo.log"
            own = (f"logs:\n  - name: demo\n    level: info\n    appenders:\n      - {{type: FileLogAppender, file: {file}, pattern: '%c says %m%n'}}\n"
                   f"      - {{type: FileLogAppender, file: {file}.error, level: error}}\n")
            with Service(own) as service:
                service.end()
            self.assertEqual(Path(file).read_text(), "demo says ready\n")
            self.assertEqual(Path(file + ".error").read_text(), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
