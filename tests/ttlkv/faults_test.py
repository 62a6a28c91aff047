#!/usr/bin/env python3
"""ttlkv when things go wrong: clients that vanish, promise and do not send, or are too many; a full disk, a kill, a standstill.

    faults_test.py TTLKV
"""
import contextlib
import os
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
import time
import unittest
from pathlib import Path

from ttlkv_support import Stopwatch, Ttlkv, encode

PROGRAM = sys.argv[1]
QUIET = 0.01  # seconds between two looks


def until(condition):
    """Waits for something that comes about; the limit of the test ends it else."""
    while not condition():
        time.sleep(QUIET)


def reset(client):
    """Ends a connection as a host that dies does. It also leaves no port in TIME_WAIT, of which ten thousand would be missed."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def memory_of(process):
    """The resident bytes of a process."""
    return int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Faults(unittest.TestCase):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def open_clients(self, server, count):
        found = []
        for _ in range(count):
            found.append(socket.create_connection(("127.0.0.1", server.port)))
            self.addCleanup(found[-1].close)
        return found

    @contextlib.contextmanager
    def served_again(self):
        """What is asked in its scope is answered within the promised second."""
        watch = Stopwatch()
        yield
        watch.stop().check(1)

    def baseline(self, server):
        """Waits until no client is left but the one that asks."""
        until(lambda: server.info()["connected_clients"] == "1")

    def baseline_of(self, client):
        """Does the same when another one would be one too many."""
        until(lambda: b"connected_clients:1\r\n" in client.ask("INFO", "clients"))

    def test_a_snapshot_lasts_from_one_process_to_the_next(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "keys"
            with Ttlkv(PROGRAM, snapshot=file) as server, server.client() as client:
                client.ask("SET", "a", "1")
                client.ask("SET", "b", "2", "EX", "1000")
                client.ask("LPUSH", "l", "x", "y")
            self.assertEqual(os.listdir(folder), ["keys"])
            with Ttlkv(PROGRAM, snapshot=file) as server, server.client() as client:
                self.assertEqual(client.ask("MGET", "a", "b"), [b"1", b"2"])
                self.assertIn(client.ask("TTL", "b"), range(900, 1001))
                self.assertEqual(client.ask("LRANGE", "l", "0", "-1"), [b"y", b"x"])
                client.ask("SET", "a", "9")
                client.send(encode("SHUTDOWN", "NOSAVE"))
                self.assertEqual(client.rest(), b"")
                self.assertEqual(server.process.wait(60), 0)
            with Ttlkv(PROGRAM, snapshot=file) as server, server.client() as client:
                self.assertEqual(client.ask("GET", "a"), b"1")

    def test_kill_in_the_middle_of_snapshots(self):
        chance = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "keys"
            wanted = {}
            for _ in range(5):
                with self.served_again():
                    server = Ttlkv(PROGRAM, snapshot=file)
                    self.assertEqual(server.info()["connected_clients"], "1")
                with server.client() as client:
                    self.assertEqual({key: client.ask("GET", key) for key in wanted}, wanted)
                    for i in range(200):
                        wanted[f"key:{i}"] = b"%d" % chance.randrange(10**9) * 100
                        client.ask("SET", f"key:{i}", wanted[f"key:{i}"])
                    self.assertEqual(client.ask("SAVE"), b"OK")
                    for _ in range(chance.randrange(1, 4)):
                        client.send(encode("BGSAVE"))  # the same keys, so any of these snapshots is right
                    time.sleep(chance.random() * QUIET)
                    server.kill()
                server.__exit__(None)

    def test_a_full_disk_keeps_the_last_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "keys"
            with Ttlkv(PROGRAM, snapshot=file, limit_size=100_000) as server, server.client() as client:
                client.ask("SET", "a", "1")
                self.assertEqual(client.ask("SAVE"), b"OK")
                client.ask("SET", "b", b"x" * 200_000)
                self.assertIn("File too large", client.ask("SAVE"))
                with self.served_again():
                    self.assertEqual(client.ask("GET", "a"), b"1")
                self.assertEqual(server.info()["rdb_last_bgsave_status"], "err")
                client.ask("DEL", "b")
            with Ttlkv(PROGRAM, snapshot=file) as server, server.client() as client:
                self.assertEqual(client.ask("GET", "a"), b"1")
            self.assertEqual(os.listdir(folder), ["keys"])

    def test_a_damaged_snapshot_is_not_served(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "keys"
            file.write_bytes(b"TTLKV001" + b"\1" * 100)
            with self.assertRaisesRegex(RuntimeError, f"{file} is no whole snapshot"):
                Ttlkv(PROGRAM, snapshot=file)

    def test_a_thousand_clients_vanish_at_once(self):
        with Ttlkv(PROGRAM) as server:
            clients = self.open_clients(server, 1000)
            for number, client in enumerate(clients):
                client.sendall([b"PING\r\n", encode("SET", "a", "1")[:-4], b"SUBSCRIBE c\r\n"][number % 3])
            until(lambda: server.info()["connected_clients"] == "1001")
            for client in clients:
                reset(client)
            with self.served_again():
                server.info()
            self.baseline(server)
            self.assertEqual(server.info()["pubsub_channels"], "0")

    def test_announced_gigabytes_take_no_memory(self):
        count = 10_000 if resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 12_000 else 500
        with Ttlkv(PROGRAM, max_clients=12_000, max_bulk_bytes=1 << 30) as server:
            clients = self.open_clients(server, count)
            for client in clients:
                client.sendall(b"PING\r\n")
            for client in clients:
                client.recv(7)
            before = memory_of(server.process)
            for client in clients:
                client.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1073741824\r\n")
            with server.client() as client:
                self.assertEqual(client.ask("PING"), b"PONG")
            self.assertLess(memory_of(server.process) - before, 16 << 20)
            for client in clients:
                reset(client)
            self.baseline(server)

    def test_more_clients_than_descriptors(self):
        with Ttlkv(PROGRAM, limit_files=100) as server, server.client() as first:
            self.assertEqual(first.ask("PING"), b"PONG")
            clients = self.open_clients(server, 200)
            self.assertEqual(first.ask("SET", "a", "1"), b"OK")  # those that are connected are served
            for client in clients:
                reset(client)
            with self.served_again(), server.client() as client:
                self.assertEqual(client.ask("GET", "a"), b"1")
            self.baseline_of(first)

    def test_a_standstill_loses_nothing(self):
        with Ttlkv(PROGRAM) as server, server.client() as client:
            client.ask("SET", "gone", "1", "PX", "30")
            server.process.send_signal(signal.SIGSTOP)
            client.send(encode("PING"))
            time.sleep(3)
            with self.served_again():
                server.process.send_signal(signal.SIGCONT)
                self.assertEqual(client.reply(), b"+PONG\r\n")
                until(lambda: client.ask("DBSIZE") == 0)
            self.assertEqual(server.info()["expired_keys"], "1")

    def test_a_reload_changes_the_live_settings(self):
        with Ttlkv(PROGRAM) as server, server.client() as client:
            server.settings["max_memory_bytes"] = 1000
            server.write_config()
            server.process.send_signal(signal.SIGHUP)
            until(lambda: client.ask("CONFIG", "GET", "maxmemory")[1] == b"1000")
            server.settings["max_memory_policy"] = "nonsense"
            server.write_config()
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "must be noeviction" in server.process.stdout.readline())
            self.assertEqual(client.ask("CONFIG", "GET", "maxmemory-policy")[1], b"noeviction")

    def test_end_with_clients_connected(self):
        with Ttlkv(PROGRAM) as server:
            clients = self.open_clients(server, 50)
            for client in clients:
                client.sendall(b"PING\r\nECHO last\r\n")
            self.assertEqual(clients[0].recv(7), b"+PONG\r\n")
            self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
