"""For the tests of examples/jobs: replicas, what they deliver to, and the store that they share."""
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
import servers  # noqa: E402, F401: for the tests

LIMIT = 60  # seconds after which a test is sure that an answer will not come


def request(port, method, path, body=None):
    """(status, JSON) of an answer."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode() if body is not None else None, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=LIMIT) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as answer:
        return answer.code, json.loads(answer.read() or b"null")


def store_settings(kind, server):
    """The settings of a replica for a store of that kind, which is `server` or behind it."""
    if kind == "redis":
        return {"store": "redis", "redis": {"host": "127.0.0.1", "port": server.port}}
    return {"store": "postgres", "postgres": f"host=127.0.0.1 port={server.port} user=test dbname=postgres"}


def etcd_settings(server):
    return {"etcd": {"endpoints": [f"http://127.0.0.1:{server.port}"], "ttl_s": 3}}


class Replica:
    """A replica on a free port, with settings of `jobs`."""

    def __init__(self, program, settings):
        self.folder = tempfile.TemporaryDirectory()
        log = "appenders: [{type: StdoutLogAppender}]"
        lines = ["workers: {io: {thread_num: 1}}", "servers: [{name: jobs, type: http, address: ['127.0.0.1:0'], keepalive: true}]",
                 f"logs: [{{name: root, level: warn, {log}}}, {{name: system, level: info, {log}}}]", f"jobs: {json.dumps(settings)}"]
        (Path(self.folder.name) / "jobs.yml").write_text("\n".join(lines) + "\n", encoding="ascii")
        log = Path(self.folder.name) / "log"
        with open(log, "wb") as file:
            self.process = subprocess.Popen([program, "-c", self.folder.name], stdout=file, stderr=file)
        while "the service runs" not in (text := log.read_text(encoding="utf-8")):
            if self.process.poll() is not None:
                raise RuntimeError(text)
            time.sleep(0.01)
        self.port = int(re.search(r"jobs listens on 127\.0\.0\.1:(\d+)", text)[1])

    def ask(self, method, path, body=None):
        return request(self.port, method, path, body)

    def kill(self):
        self.process.kill()
        self.close()

    def end(self):
        """Ends it as a service manager does, and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT)
        self.close()
        return self.process.returncode

    def close(self):
        self.process.wait(LIMIT)
        self.folder.cleanup()


class Receiver:
    def __init__(self, program, work_ms=0):
        self.process = subprocess.Popen([program, str(work_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/run"

    def result(self):
        return request(self.port, "GET", "/result")[1]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(LIMIT)
