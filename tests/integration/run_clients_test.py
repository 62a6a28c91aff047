#!/usr/bin/env python3
"""Programs that people use, under sylar-run against real servers: exit status and output are those of a native run.

    run_clients_test.py sylar-run
"""
import concurrent.futures
import contextlib
import http.server
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import servers
from run_support import RUN, both, result

PYTHON = "/usr/bin/python3"


class Http(http.server.BaseHTTPRequestHandler):
    """Sends a body back, or as many bytes as the path says; below /git/ it is git's own server."""

    protocol_version = "HTTP/1.1"
    repositories = None

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, body, status=200, kind="application/octet-stream"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/git/"):
            self.git(b"")
        elif size := re.fullmatch(r"/(\d+)", self.path):
            self.answer(bytes(i % 251 for i in range(int(size[1]))))
        else:
            self.answer(b"no\n", 404)

    def do_POST(self):
        self.git(self.body()) if self.path.startswith("/git/") else self.answer(self.body())

    do_PUT = do_POST

    def git(self, body):
        path, _, query = self.path.removeprefix("/git").partition("?")
        environment = {
            **os.environ, "GIT_PROJECT_ROOT": self.repositories, "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "somebody",
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        made = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True).stdout
        head, _, content = made.partition(b"\r\n\r\n")
        fields = dict(re.findall(r"^([\w-]+): (.*?)\r?$", head.decode(), re.MULTILINE))
        self.answer(content, int(fields.get("Status", "200")[:3]), fields.get("Content-Type", ""))


class OverHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Http)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.url = f"http://127.0.0.1:{cls.server.server_port}"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Curl(OverHttp):
    def curl(self, *arguments, **more):
        return both(self, "curl", "--silent", "--show-error", "--no-progress-meter", "--max-time", "100", *arguments, **more)

    def test_downloads(self):
        status, out, _ = self.curl(*(f"{self.url}/{size}" for size in (0, 1, 5_000_000)))
        self.assertEqual((status, len(out)), (0, 5_000_001))

    def test_parallel_downloads(self):
        status, out, _ = self.curl("--parallel", *[f"{self.url}/1000"] * 20)
        self.assertEqual((status, len(out)), (0, 20_000))

    def test_uploads(self):
        body = os.urandom(2_000_000)
        self.assertEqual(self.curl("--data-binary", "@-", f"{self.url}/", input=body)[:2], (0, body))
        self.assertEqual(self.curl("--upload-file", "-", f"{self.url}/x", input=body)[:2], (0, body), "chunked")

    def test_failures(self):
        self.assertEqual(self.curl("--fail", f"{self.url}/nothing")[0], 22)
        self.assertEqual(self.curl("--fail", "http://nowhere.invalid/")[0], 6)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and nobody listens
            status, _, err = result(RUN, "curl", "--silent", "--show-error", f"http://127.0.0.1:{closed.getsockname()[1]}/")
        self.assertEqual(status, 7, err)


class Git(OverHttp):
    """git starts git-remote-http, index-pack and others, which run under sylar-run as well."""

    def setUp(self):
        super().setUp()
        moment = "2020-01-01T00:00:00+0000"
        self.environment = {
            **os.environ, "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        self.work = self.folder / "work"
        self.git("init", "--quiet", "--initial-branch=main", self.work)
        for i in range(30):
            (self.work / f"file{i}").write_bytes(os.urandom(20_000))
            self.git("-C", self.work, "add", ".")
            self.git("-C", self.work, "commit", "--quiet", "--message", f"number {i}")
        Http.repositories = str(self.folder / "served")
        self.git("clone", "--quiet", "--bare", self.work, self.folder / "served/it.git")

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], env=self.environment, check=True, capture_output=True).stdout

    def under_run(self, *arguments):
        status, out, err = result(RUN, "git", *arguments, env=self.environment)
        self.assertEqual(status, 0, err)
        return out

    def test_clone_fetch_and_push(self):
        url, clone = f"{self.url}/git/it.git", self.folder / "clone"
        self.under_run("clone", "--quiet", url, clone)
        self.assertEqual(self.under_run("-C", clone, "log", "--stat"), self.git("-C", self.work, "log", "--stat"))
        self.git("-C", clone, "fsck", "--strict")
        (clone / "new").write_bytes(os.urandom(1_000_000))
        self.under_run("-C", clone, "add", ".")
        self.under_run("-C", clone, "commit", "--quiet", "--message", "pushed")
        self.under_run("-C", clone, "push", "--quiet", "origin", "main")
        self.git("-C", self.work, "pull", "--quiet", url, "main")
        self.assertEqual((self.work / "new").read_bytes(), (clone / "new").read_bytes())
        self.assertEqual(both(self, "git", "ls-remote", url, env=self.environment)[0], 0)
        self.assertEqual(both(self, "git", "ls-remote", f"{self.url}/git/none.git", env=self.environment)[0], 128)


class Python(unittest.TestCase):
    def test_serves_fetches_and_has_children(self):
        status, out, err = both(self, PYTHON, Path(__file__).with_name("run_python.py"))
        self.assertEqual((status, err), (7, b""))
        self.assertEqual(len(out.splitlines()), 12, out)


class Redis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.redis()
        cls.addClassCleanup(cls.server.close)

    def cli(self, *arguments, **more):
        return both(self, "redis-cli", "-p", str(self.server.port), *arguments, **more)

    def test_commands(self):
        self.assertEqual(self.cli("set", "key", "value")[:2], (0, b"OK\n"))
        self.assertEqual(self.cli("get", "key")[:2], (0, b"value\n"))
        self.assertEqual(self.cli("blpop", "nothing", "0.05")[0], 0)
        self.assertEqual(self.cli("-x", "set", "large", input=b"x" * 3_000_000)[:2], (0, b"OK\n"))
        self.assertEqual(len(self.cli("get", "large")[1]), 3_000_001)
        self.assertEqual(self.cli("-r", "3", "-i", "0.01", "ping")[1], b"PONG\n" * 3)

    def test_many_from_standard_input(self):
        commands = "".join(f"set k{i} {i}\nget k{i}\n" for i in range(2000))
        self.assertEqual(len(self.cli(input=commands.encode())[1].splitlines()), 4000)
        self.assertIn(b"errors: 0, replies: 4000", self.cli("--pipe", input=commands.replace("\n", "\r\n").encode())[1])


class Psql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.postgres()
        cls.addClassCleanup(cls.server.close)

    @staticmethod
    def command(*arguments):
        return ["psql", "-X", "-h", "127.0.0.1", "-p", str(Psql.server.port), "-U", "test", "postgres", *arguments]

    def test_queries(self):
        status, out, _ = both(self, *self.command("-c", "select i, repeat('x', 500) from generate_series(1, 5000) i"))
        self.assertEqual((status, len(out.splitlines())), (0, 5004))
        self.assertEqual(both(self, *self.command("-c", "select pg_sleep(0.02), 1/0"))[0], 1)

    def test_a_script_from_standard_input(self):
        script = "create temp table t (i int); copy t from stdin;\n" + "".join(f"{i}\n" for i in range(20_000)) + "\\.\n"
        script += "select sum(i) from t;\n\\! echo from a shell\n\\copy t to program 'wc -l'\n"
        out = both(self, *self.command("-q", "-A", "-t"), input=script.encode())[1]
        self.assertIn(b"199990000\nfrom a shell\n20000\n", out)

    def test_pgbench(self):
        bench = ["pgbench", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "test", "postgres"]
        self.assertEqual(result(RUN, *bench, "-i", "-q")[0], 0)
        for threads in "1", "2":
            status, out, err = result(RUN, *bench, "-c", "4", "-j", threads, "-t", "25")
            self.assertEqual(status, 0, err)
            self.assertIn(b"number of transactions actually processed: 100/100\n", out)


class Mysql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.mariadb()
        cls.addClassCleanup(cls.server.close)

    def mysql(self, *arguments, **more):
        return both(self, "mysql", "--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-P", str(self.server.port), "-uroot", *arguments, **more)

    def test_queries(self):
        self.assertEqual(self.mysql("-N", "-e", "select sum(seq), sleep(0.02) from mysql.user, (select 5 seq) s where user = 'root' and host = 'localhost'")[:2],
                         (0, b"5\t0\n"))
        self.assertEqual(self.mysql("-e", "select nothing")[0], 1)

    def test_a_script_from_standard_input(self):
        rows = ", ".join(f"({i}, repeat('x', 200))" for i in range(5000))
        script = f"drop database if exists d; create database d; use d; create table t (i int, s text); insert into t values {rows}; select * from t;"
        status, out, _ = self.mysql(input=script.encode())
        self.assertEqual((status, len(out.splitlines())), (0, 5001))


class ThreadedServers(unittest.TestCase):
    """HA-11: servers whose threads are fibers, with clients that nothing was done to."""

    def serving(self, start, *options):
        server = start(*options, under=(RUN, "--threads=fibers"))
        self.addCleanup(server.close)
        return server

    def in_threads(self, function, count=16):
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            for done in [pool.submit(function, number) for number in range(count)]:
                done.result(120)

    def kernel_threads(self, server):
        """The names of its threads, but for those of an io_uring, which wait for files."""
        names = []
        for task in Path(f"/proc/{server.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                names.append((task / "comm").read_text(encoding="ascii").strip())
        return sorted(name for name in names if not name.startswith("iou-wrk-"))

    def test_memcached_with_four_threads(self):
        server = self.serving(servers.memcached, "-t", "4")

        def store_and_read(number):
            with socket.create_connection(("127.0.0.1", server.port)) as peer, peer.makefile("rwb") as stream:
                for i in range(200):
                    value = b"x" * (i * 37 % 5000)
                    stream.write(b"set %d.%d 0 0 %d\r\n%b\r\nget %d.%d\r\n" % (number, i, len(value), value, number, i))
                    stream.flush()
                    self.assertEqual([stream.readline(), stream.readline()],
                                     [b"STORED\r\n", b"VALUE %d.%d 0 %d\r\n" % (number, i, len(value))])
                    self.assertEqual(stream.read(len(value) + 7), value + b"\r\nEND\r\n")

        self.in_threads(store_and_read)
        self.assertEqual(self.kernel_threads(server), ["memcached"])

    def test_redis(self):
        server = self.serving(servers.redis, "--appendonly", "yes", "--appendfsync", "everysec")
        cli = "redis-cli", "-p", str(server.port)
        self.in_threads(lambda number: self.assertEqual(result(*cli, "-r", "50", "incr", "n")[0], 0))
        self.assertEqual(result(*cli, "get", "n")[1], b"800\n")
        self.assertEqual(result(*cli, "flushall", "async")[1], b"OK\n")
        self.assertEqual(set(self.kernel_threads(server)) - {"jemalloc_bg_thd", "sylar_blocking"}, {"redis-server"})

    @unittest.skipUnless("SYLAR_TEST_MARIADB" in os.environ, "is the test Run.Mariadb, and slow")
    def test_mariadb(self):
        server = self.serving(servers.mariadb, "--innodb-use-native-aio=0")
        client = "mysql", "--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-P", str(server.port), "-uroot"
        status, _, err = result(*client, "-e", "create database d; create table d.t (i int primary key, s text) engine=innodb")
        self.assertEqual(status, 0, err)

        def insert(number):
            rows = ", ".join(f"({number * 1000 + i}, repeat('x', 100))" for i in range(100))
            status, _, err = result(*client, "d", "-e", f"insert into t values {rows}; select sleep(0.05); select count(*) from t")
            self.assertEqual(status, 0, err)

        self.in_threads(insert)
        self.assertEqual(result(*client, "d", "-N", "-e", "select count(*) from t")[1], b"1600\n")
        self.assertEqual(set(self.kernel_threads(server)) - {"sylar_blocking"}, {"mariadbd"})


if __name__ == "__main__":
    unittest.main()
