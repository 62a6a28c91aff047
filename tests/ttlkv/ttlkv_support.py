"""For the tests of ttlkv: the server itself, a real redis-server beside it, and a client that shows the bytes of replies."""
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

for folder in ("integration", "support"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / folder))
import servers  # noqa: E402, F401: for the tests
from stopwatch import Stopwatch  # noqa: E402, F401: for the tests

LIMIT = 60  # seconds after which a test is sure that an answer will not come


class Ttlkv:
    """A ttlkv on a free port, with settings of `ttlkv` such as idle_timeout_ms=100. It ends in order at the end of the scope."""

    def __init__(self, program, folder=None, threads=2, limit_files=None, limit_size=None, **settings):
        self.own_folder = None if folder else tempfile.TemporaryDirectory()
        self.folder = Path(folder or self.own_folder.name)
        self.config = self.folder / "conf"
        self.config.mkdir(exist_ok=True)
        self.settings = settings
        self.threads = threads
        self.write_config()
        command = [program, "-c", str(self.config)]
        limits = [f"--nofile={limit_files}"] * bool(limit_files) + [f"--fsize={limit_size}"] * bool(limit_size)
        if limits:
            command = ["prlimit", *limits, *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if match := re.search(r"ttlkv listens on 127\.0\.0\.1:(\d+)", line):
                self.port = int(match[1])
                return
        self.process.wait()
        self.process.stdout.close()
        if self.own_folder:
            self.own_folder.cleanup()
        raise RuntimeError("".join(self.lines))

    def write_config(self):
        lines = [f"workers: {{io: {{thread_num: {self.threads}}}}}",
                 "servers: [{name: ttlkv, type: ttlkv, address: ['127.0.0.1:0']}]",
                 "tcp_server: {max_connections: 12000, max_per_peer: 12000}",
                 "logs: [{name: root, level: warn, appenders: [{type: StdoutLogAppender}]},"
                 " {name: system, level: info, appenders: [{type: StdoutLogAppender}]}]",
                 "ttlkv:", "  notify_keyspace_events: KEx"]
        lines += [f"  {name}: {value}" for name, value in self.settings.items()]
        (self.config / "ttlkv.yml").write_text("\n".join(lines) + "\n", encoding="ascii")

    def client(self):
        return Client(self.port)

    def info(self):
        with self.client() as client:
            text = client.ask("INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it as `systemctl stop` does, and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        status = self.end() if self.process.poll() is None else 0
        self.process.stdout.close()
        if self.own_folder:
            self.own_folder.cleanup()
        if not failed and status != 0:
            raise AssertionError(f"ttlkv ended with {status}")


def encode(*words):
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    """A connection. Replies come as their bytes, by `reply`, or as values, by `ask`."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        """The bytes of the next reply, or b"" at the end of the connection."""
        line = self.file.readline()
        if line[:1] == b"$" and int(line[1:]) >= 0:
            return line + self.file.read(int(line[1:]) + 2)
        if line[:1] == b"*" and int(line[1:]) > 0:
            return line + b"".join(self.reply() for _ in range(int(line[1:])))
        return line

    def raw(self, *words):
        self.send(encode(*words))
        return self.reply()

    def ask(self, *words):
        return value(self.raw(*words))

    def rest(self):
        """Everything until the other side ends the connection, by whatever means."""
        try:
            return self.file.read()
        except ConnectionResetError:
            return b""


def value(reply):
    """The value that a reply has: bytes, an int, None, or a list. An error is a str."""
    kind, line, rest = reply[:1], reply[1:reply.index(b"\r\n")], reply[reply.index(b"\r\n") + 2:]
    if kind == b":":
        return int(line)
    if kind == b"-":
        return line.decode()
    if kind == b"$":
        return None if line == b"-1" else rest[:-2]
    if kind == b"*":
        values = []
        for _ in range(max(int(line), 0)):
            size = length(rest)
            values.append(value(rest[:size]))
            rest = rest[size:]
        return values
    return line


def length(reply):
    end = reply.index(b"\r\n") + 2
    count = reply[1:end - 2]
    if reply[:1] == b"$" and int(count) >= 0:
        return end + int(count) + 2
    if reply[:1] == b"*":
        for _ in range(max(int(count), 0)):
            end += length(reply[end:])
    return end
