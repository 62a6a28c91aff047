#!/usr/bin/env python3
"""Real servers for tests, each on a port and in a folder of its own.

    servers.py NAME     starts the one of that function below, prints its port, then obeys `suspend`, `resume`, `kill` and `start`, one a line, until its input ends
"""
import ctypes
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class Daemon:
    """A server that `command(port, folder)` starts once `prepare(folder)` is done. It is up if `check(port)` succeeds."""

    def __init__(self, command, prepare=lambda folder: [], check=lambda port: ["true"], user=None):
        self.folder = tempfile.mkdtemp()
        self.user = user if os.getuid() == 0 else None  # some refuse to be root's
        if self.user:
            shutil.chown(self.folder, self.user)
        for one in prepare(self.folder):
            subprocess.run(one, check=True, capture_output=True, user=self.user, cwd=self.folder)
        self.reserved = reserved()
        self.port = port_of(self.reserved)
        self.command = command(str(self.port), self.folder)
        self.check = check(str(self.port))
        self.process = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        with open(Path(self.folder) / "log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, user=self.user, cwd=self.folder)
        deadline = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((Path(self.folder) / "log").read_text(errors="replace"))
            time.sleep(0.02)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return subprocess.run(self.check, capture_output=True, check=False).returncode == 0

    def suspend(self):
        """No process of the server runs afterwards. The kernel still takes connections and bytes for it."""
        for process in self.processes():
            send(process, signal.SIGSTOP)
            wait_until(process, "TZX")

    def resume(self):
        for process in self.processes():
            send(process, signal.SIGCONT)

    def kill(self):
        """Ends the server at once and without a word."""
        processes = list(self.processes())
        for process in processes:
            send(process, signal.SIGKILL)
        self.process.wait()
        for process in processes:
            wait_until(process, "ZX")

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        self.reserved.close()
        shutil.rmtree(self.folder)

    def processes(self):
        """The server's process and its children. The parent comes first, so one that is stopped makes no more of them."""
        yield self.process.pid
        for children in glob.glob(f"/proc/{self.process.pid}/task/*/children"):
            try:
                yield from map(int, Path(children).read_text(encoding="ascii").split())
            except OSError:  # the thread has ended
                pass


def reserved():
    """A socket that does not listen. It keeps its port for a server, whether that runs or not."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


def port_of(bound):
    return bound.getsockname()[1]


def send(process, number):
    """Sends a signal to a process that may have ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def wait_until(process, states):
    """Waits until each thread of the process is in one of the states of proc(5), or gone."""
    for thread in glob.glob(f"/proc/{process}/task/*/stat"):
        try:
            while Path(thread).read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] not in states:
                time.sleep(0.001)
        except OSError:
            pass


def certificate(folder):
    """The command that makes `folder`/certificate, which has signed itself, and its key."""
    return ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server.test",
            "-addext", "subjectAltName=DNS:server.test,IP:127.0.0.1", "-keyout", f"{folder}/key", "-out", f"{folder}/certificate"]


def redis(*options, under=()):
    return Daemon(lambda port, folder: [
        *under, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder,
        "--enable-debug-command", "yes", *options])


def redis_that_lasts():
    """What it has answered is there again after kill and start, because it is written first. It does not wait for a disk."""
    return redis("--appendonly", "yes", "--appendfsync", "no")


def postgres(*options):
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    return Daemon(
        lambda port, folder: [f"{programs}/postgres", "-D", f"{folder}/data", "-p", port, "-F", "-c", "listen_addresses=127.0.0.1", "-k", "", *options],
        lambda folder: [[f"{programs}/initdb", "--auth=trust", "--username=test", "--no-sync", f"{folder}/data"], certificate(f"{folder}/data")],
        lambda port: [f"{programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", port], user="postgres")


def postgres_tls():
    return postgres("-c", "ssl=on", "-c", "ssl_cert_file=certificate", "-c", "ssl_key_file=key")


def mariadb_with(prepare, *options, under=(), user="root"):
    """A server that root starts becomes `user`."""
    own = ["--no-defaults", *([f"--user={user}"] if os.getuid() == 0 else [])]
    return Daemon(
        lambda port, folder: [*under, "/usr/sbin/mariadbd", *own, f"--datadir={folder}/data", "--bind-address=127.0.0.1", f"--port={port}",
                              f"--socket={folder}/socket", "--innodb-flush-log-at-trx-commit=0", *options],
        lambda folder: [*([["chown", user, folder]] if os.getuid() == 0 else []), *prepare(folder, own)])


def mariadb(*options, under=(), user="root"):
    return mariadb_with(lambda folder, own: [
        ["mariadb-install-db", *own, "--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={folder}/data"]],
        *options, under=under, user=user)


def mariadb_in_brief(*options):
    """Is ready in a second, with an empty database `test`, because it has no tables of its own and no InnoDB."""
    return mariadb_with(lambda folder, own: [["mkdir", "-p", f"{folder}/data/test"], certificate(f"{folder}/data")],
                        "--skip-grant-tables", "--innodb=OFF", "--default-storage-engine=Aria", *options)


def mariadb_tls():
    return mariadb_in_brief("--ssl-cert=certificate", "--ssl-key=key")


def sshd(under=()):
    """Takes root's logins by the key in `folder`/user. Only root may start it."""
    options = ["PidFile=none", "UsePAM=no", "StrictModes=no", "PermitRootLogin=yes", "ListenAddress=127.0.0.1"]
    return Daemon(
        lambda port, folder: [*under, "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", f"-oPort={port}", f"-oHostKey={folder}/host",
                              f"-oAuthorizedKeysFile={folder}/user.pub", *(f"-o{option}" for option in options)],
        lambda folder: [["mkdir", "-p", "/run/sshd"],
                        *(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{key}"] for key in ("host", "user"))])


def memcached(*options, under=()):
    return Daemon(lambda port, _: [*under, "memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", *options], user="memcache")


def etcd():
    """Its other port, for members of a cluster that it has none of, is one that is free for the moment."""
    def command(port, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            peers = f"http://127.0.0.1:{free.getsockname()[1]}"
        clients = f"http://127.0.0.1:{port}"
        return ["etcd", "--data-dir", f"{folder}/data", "--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers,
                "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}", "--unsafe-no-fsync", "--log-level", "error"]
    return Daemon(command, check=lambda port: ["curl", "-sf", f"http://127.0.0.1:{port}/health"])


ZOOKEEPER = """
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
server.1=127.0.0.1:{peers}:{election}
standaloneEnabled=false
admin.enableServer=false
tickTime=2000
initLimit=10
syncLimit=10
maxClientCnxns=0
maxSessionTimeout=3600000
forceSync=no
"""


def zookeeper():
    """A cluster of one, because a server without a cluster neither answers nor closes connections that come at one moment of its start. What it has
    answered is there again after kill and start, because it is written first. It does not wait for a disk."""
    members = [reserved(), reserved()]

    def command(port, folder):
        (Path(folder) / "data").mkdir()
        (Path(folder) / "data/myid").write_text("1", encoding="ascii")
        (Path(folder) / "zoo.cfg").write_text(
            ZOOKEEPER.format(folder=folder, port=port, peers=port_of(members[0]), election=port_of(members[1])), encoding="ascii")
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]
    server = Daemon(command, check=lambda port: ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo srvr >&3 && grep -q ^Mode <&3"])
    server.members = members
    return server


PROXY = """
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
frontend here
  bind 127.0.0.1:{port}
  default_backend there
backend there
  server it 127.0.0.1:{target}
"""


def proxy(target):
    """The network between clients and the server on port `target`. It stands still while it is suspended, and a kill drops all connections."""
    def command(port, folder):
        (Path(folder) / "haproxy.cfg").write_text(PROXY.format(port=port, target=target), encoding="ascii")
        return ["haproxy", "-f", "haproxy.cfg"]
    return Daemon(command)


def git_daemon():
    """Has one repository, with one file of 300 000 bytes."""
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@server.test", "-C"]

    def prepare(folder):
        repository = Path(folder) / "repository"
        repository.mkdir()
        (repository / "file").write_bytes(bytes(i * i % 251 for i in range(300_000)))
        return [[*git, str(repository), *rest] for rest in (["init", "-q", "-b", "main"], ["add", "file"], ["commit", "-q", "-m", "file"], ["tag", "tag"])]
    return Daemon(lambda port, folder: ["git", "daemon", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}", "--export-all", f"--base-path={folder}"],
                  prepare)


NGINX = """
load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
daemon off; master_process off; pid pid; error_log error.log;
events {{ }}
http {{
  access_log off; client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
  ssl_certificate certificate; ssl_certificate_key key;
  server {{
    listen 127.0.0.1:{port} {tls};
    location / {{ root files; }}
    location /slow {{ echo_sleep 0.05; echo slow; }}
  }}
}}
"""


def nginx(tls=""):
    """Has the file `large`, of 300 000 bytes, and takes its time for `slow`."""
    def command(port, folder):
        (Path(folder) / "nginx.conf").write_text(NGINX.format(port=port, tls=tls), encoding="ascii")
        return ["nginx", "-p", folder, "-c", "nginx.conf", "-e", "error.log"]

    def prepare(folder):
        (Path(folder) / "files").mkdir()
        (Path(folder) / "files/large").write_bytes(bytes(i % 251 for i in range(300_000)))
        return [certificate(folder)]
    return Daemon(command, prepare)


def nginx_tls():
    return nginx("ssl")


def main(name):
    ctypes.CDLL(None).prctl(1, 0)  # PR_SET_PDEATHSIG: the end of the input ends it, not the end of its parent
    server = globals()[name]()
    try:
        print(server.port, flush=True)
        for line in sys.stdin:
            getattr(server, line.strip())()
            print("done", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main(sys.argv[1])
