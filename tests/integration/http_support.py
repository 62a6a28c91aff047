"""For the HTTP integration tests: servers that a test starts and ends, and raw conversations with them."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from stopwatch import Stopwatch  # noqa: E402, F401: for the tests


def held_port():
    """A socket that does not listen. While it is open, only a program that is told to listen at its port gets that port."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Server:
    """A program that prints `listening on HOST:PORT`. Ends in order at the end of the scope; its exit status must be 0."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.fullmatch(r"listening on ([\d.]+):(\d+)\n", line)
        if not match:
            self.process.kill()
            raise RuntimeError(f"{command[0]} said {line!r}")
        self.host, self.port = match[1], int(match[2])
        self.url = f"http://{self.host}:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if self.process.poll() is None:
            os.kill(self.program(), signal.SIGTERM)
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "not in 20 s"
        self.process.stdout.close()
        if not failed and status != 0:
            raise AssertionError(f"{self.process.args[0]} ended: {status}")

    def program(self):
        """The process id of the server itself, which may run under another program."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        return int(children[0]) if children else self.process.pid

    def connect(self, timeout=120):
        return socket.create_connection((self.host, self.port), timeout)


class Nginx:
    """A reverse proxy of its own on a free port, with kept connections to the server behind it."""

    CONFIG = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream behind {{ server {behind}; keepalive 32; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; }}
  }}
}}
"""

    def __init__(self, behind):
        self.folder = tempfile.TemporaryDirectory()
        self.held = held_port()
        self.port = self.held.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        path = os.path.join(self.folder.name, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.CONFIG.format(folder=self.folder.name, port=self.port, behind=f"{behind.host}:{behind.port}"))
        self.process = subprocess.Popen(["nginx", "-c", path, "-e", os.path.join(self.folder.name, "error.log")])
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def errors(self):
        with open(os.path.join(self.folder.name, "error.log"), encoding="utf-8") as file:
            return [line for line in file if "[error]" in line or "[alert]" in line or "[crit]" in line]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.held.close()
        self.folder.cleanup()


def run(*command, timeout=60, **arguments):
    """The standard output of a command that must succeed."""
    result = subprocess.run(command, capture_output=True, timeout=timeout, check=False, **arguments)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}")
    return result.stdout


def read_response(file):
    """(status, headers with lower-case names, body) of the next answer in `file`, which is made of a socket."""
    line = file.readline()
    if not line:
        return None
    match = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n", line)
    if not match:
        raise AssertionError(f"no status line: {line!r}")
    headers = {}
    while (line := file.readline()) != b"\r\n":
        name, value = line.rstrip(b"\r\n").split(b":", 1)
        headers[name.decode().lower()] = value.strip().decode()
    status = int(match[1])
    body = b""
    if headers.get("transfer-encoding") == "chunked":
        while (size := int(file.readline(), 16)) != 0:
            body += file.read(size)
            if file.read(2) != b"\r\n":
                raise AssertionError("a chunk does not end with CRLF")
        if file.readline() != b"\r\n":
            raise AssertionError("the last chunk does not end with an empty line")
    elif status >= 200 and status not in (204, 304):
        body = file.read(int(headers["content-length"]))
    return status, headers, body
