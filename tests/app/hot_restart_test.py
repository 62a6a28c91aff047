#!/usr/bin/env python3
"""A service that is replaced while clients use it, and one whose sockets come from systemd.

    hot_restart_test.py SERVICE
"""
import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SERVICE = Path(sys.argv[1]).resolve()
PATIENCE = 120  # seconds until a test gives up
CONNECTIONS = 200
GREETING = "demo: {greeting: hello}\n"


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"in vain: {what()}")
        time.sleep(0.01)
    return result


def answer_to(connection, request=b"GET /hello HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"):
    """All that comes for a request."""
    connection.settimeout(PATIENCE)
    with connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


class HotRestart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.conf = self.folder / "conf"
        self.conf.mkdir()
        self.log = self.folder / "log"
        self.pid_file = self.folder / "pid"
        self.unix = self.folder / "socket"
        # A socket that does not listen keeps the port from others.
        self.reserved = socket.socket()
        self.addCleanup(self.reserved.close)
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        (self.conf / "server.yml").write_text(
            "workers: {io: {thread_num: 2}}\n"
            f"server: {{pid_file: {self.pid_file}}}\n"
            f"servers: [{{type: http, keepalive: true, address: ['127.0.0.1:{self.port}', '{self.unix}']}}]\n")
        (self.conf / "own.yml").write_text(GREETING)

    def start(self, **options):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([SERVICE, "-c", self.conf], stdout=log, stderr=log, **options)
        self.addCleanup(self.end)
        self.wait_for("the service runs: process", 1)

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, words, times):
        wait_until(lambda: self.text().count(words) >= times, self.text)

    def serving(self):
        """The processes that have served, the last one last."""
        return [int(process) for process in re.findall(r"the service runs: process (\d+)", self.text())]

    def end(self):
        """Ends the last process, which may be nobody's child by now."""
        last = self.serving()[-1]
        try:
            os.kill(last, signal.SIGTERM)
        except ProcessLookupError:
            return
        if last == self.process.pid:
            self.process.wait(PATIENCE)
        else:
            wait_until(lambda: self.has_ended(last), self.text)

    @staticmethod
    def has_ended(process):
        """Whoever has to bury it may take his time."""
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    def replace(self):
        """Has the last process replaced, and waits until it has ended."""
        old, count = self.serving()[-1], len(self.serving())
        os.kill(old, signal.SIGUSR2)
        self.wait_for("the service runs: process", count + 1)
        self.wait_for("the service has ended", count)
        if old == self.process.pid:
            self.assertEqual(self.process.wait(PATIENCE), 0)
        return old

    # CD-G8
    def test_no_connection_is_refused_and_no_answer_lost(self):
        self.start()

        async def client(over):
            answers = 0
            while not over.is_set():
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                path = "/sleep?ms=20" if answers % 5 == 0 else "/hello"
                writer.write(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
                answer = await asyncio.wait_for(reader.read(), PATIENCE)
                assert answer.startswith(b"HTTP/1.1 200"), answer
                writer.close()
                answers += 1
            return answers

        async def run():
            over = asyncio.Event()
            clients = [asyncio.create_task(client(over)) for _ in range(CONNECTIONS)]
            for _ in range(3):
                await asyncio.to_thread(self.replace)
            over.set()
            return sum(await asyncio.gather(*clients))

        answers = asyncio.run(run())
        self.assertGreaterEqual(answers, CONNECTIONS)
        self.assertEqual(len(set(self.serving())), 4)
        self.assertEqual(int(self.pid_file.read_text()), self.serving()[-1])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.unix))
            self.assertIn("hello", answer_to(connection))
        self.end()
        self.assertFalse(self.pid_file.exists())
        self.assertFalse(self.unix.exists())
        print(f"{answers} answers, none lost")

    # CD-G8
    def test_the_old_process_goes_on_if_the_new_one_does_not_start(self):
        self.start()
        (self.conf / "own.yml").write_text("demo: {greting: hello}\n")
        os.kill(self.process.pid, signal.SIGUSR2)
        self.wait_for("this one goes on", 1)
        self.assertIn("greting", self.text())
        self.assertIn("hello", answer_to(socket.create_connection(("127.0.0.1", self.port))))
        self.assertEqual(int(self.pid_file.read_text()), self.process.pid)
        (self.conf / "own.yml").write_text(GREETING.replace("hello", "welcome"))
        self.assertEqual(self.replace(), self.process.pid)
        self.assertIn("welcome", answer_to(socket.create_connection(("127.0.0.1", self.port))))

    # CD-G8
    def test_what_is_shared_survives_a_new_process_that_fails_half_way(self):
        self.start()
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            server = self.conf / "server.yml"
            before = server.read_text()
            server.write_text(before.replace(f"'{self.unix}'", f"'{self.unix}', '127.0.0.1:{busy.getsockname()[1]}'"))
            os.kill(self.process.pid, signal.SIGUSR2)
            self.wait_for("this one goes on", 1)
            server.write_text(before)
        self.assertIn("cannot listen", self.text())
        for connection in (socket.create_connection(("127.0.0.1", self.port)), socket.socket(socket.AF_UNIX)):
            if connection.family == socket.AF_UNIX:
                connection.connect(str(self.unix))
            self.assertIn("hello", answer_to(connection))
        self.replace()
        self.assertTrue(self.unix.exists())

    # CD-G8
    def test_a_new_process_has_what_it_was_left_and_no_more(self):
        self.log.touch()
        with open(self.log, "rb") as kept:
            os.set_inheritable(kept.fileno(), True)
            self.start(pass_fds=[kept.fileno()])
        self.replace()
        links = [os.readlink(each) for each in Path(f"/proc/{self.serving()[-1]}/fd").iterdir()]
        self.assertEqual(links.count(str(self.log)), 2)  # stdout, stderr
        self.assertEqual(sum(link == str(self.pid_file) for link in links), 1)

    # CD-G8
    def test_a_service_that_ends_takes_its_replacement_with_it(self):
        self.start()
        program = self.folder / "program"
        program.write_text("#!/bin/sh\ntrap '' TERM\necho it stays\nexec sleep 1000\n")
        program.chmod(0o755)
        (self.conf / "own.yml").write_text(GREETING + "app: {drain_ms: 500}\n")
        os.kill(self.process.pid, signal.SIGHUP)
        self.wait_for("settings changed", 1)
        named = self.folder / "named"
        named.symlink_to(SERVICE)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(PATIENCE), 0)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([named, "-c", self.conf], stdout=log, stderr=log)
        self.wait_for("the service runs: process", 2)
        named.unlink()
        named.symlink_to(program)
        self.process.send_signal(signal.SIGUSR2)
        self.wait_for("it stays", 1)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.assertFalse(self.pid_file.exists())
        self.assertIn("is killed", self.text())

    # CD-G9
    def test_sockets_of_systemd_are_taken(self):
        with socket.socket() as given:
            given.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.reserved.close()
            given.bind(("127.0.0.1", self.port))
            given.listen()
            early = socket.create_connection(("127.0.0.1", self.port))  # before there is a service

            def as_systemd():
                os.dup2(given.fileno(), 3)
                os.environ["LISTEN_FDS"] = "1"
                os.environ["LISTEN_PID"] = str(os.getpid())
                os.execv(SERVICE, [str(SERVICE), "-c", str(self.conf)])

            self.start(preexec_fn=as_systemd, close_fds=False)
        self.assertIn("hello", answer_to(early))
        self.assertIn("hello", answer_to(socket.create_connection(("127.0.0.1", self.port))))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
