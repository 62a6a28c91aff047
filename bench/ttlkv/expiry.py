"""Measures how late keys expire, by a client that has subscribed to expired keys and by one that sends requests meanwhile."""

import select
import socket
import time


def encode(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        """The first line of the reply, or all of a bulk string."""
        self.socket.sendall(encode(*words))
        line = self.file.readline()
        return self.file.read(int(line[1:]) + 2) if line[:1] == b"$" and line != b"$-1\r\n" else line

    def set_all(self, keys, deadline_ms, batch=1000):
        """Keys with one deadline."""
        for at in range(0, len(keys), batch):
            part = keys[at:at + batch]
            self.socket.sendall(b"".join(encode("SET", key, "value", "PXAT", deadline_ms) for key in part))
            for _ in part:
                self.file.readline()


def now_ms():
    return time.time() * 1000


def lag(port, others, keys=1000, patience_s=10.0):
    """Sorted lags in ms of `keys` keys with one deadline beside `others` that live for an hour. Those that were not gone in time
    are missing."""
    with Client(port) as writer, Client(port) as listener:
        writer.ask("FLUSHALL")
        writer.set_all([f"other:{i}" for i in range(others)], int(now_ms()) + 3_600_000)
        listener.ask("SUBSCRIBE", "__keyevent@0__:expired")
        for _ in range(5):
            listener.file.readline()  # the rest of the confirmation
        deadline = int(now_ms()) + 500
        writer.set_all([f"key:{i}" for i in range(keys)], deadline)
        lags, rest = [], b""
        while len(lags) < keys and (left := (deadline - now_ms()) / 1000 + patience_s) > 0:
            if not select.select([listener.socket], [], [], left)[0]:
                break
            rest += listener.socket.recv(1 << 20)
            *messages, rest = rest.split(b"$7\r\nmessage\r\n")  # the rest may end in the middle of the next one
            lags += [max(now_ms() - deadline, 0)] * len(messages)
        return sorted(lags[:keys])


def storm(port, cpu_ns, keys=1_000_000, lead_s=30):
    """All keys expire in one millisecond. The latencies of PING from then on, by the wall and by the CPU time that the server used
    meanwhile, how often a GET saw a value, and when all keys were gone."""
    with Client(port) as client:
        client.ask("FLUSHALL")
        deadline = int(now_ms()) + lead_s * 1000
        client.set_all([f"key:{i}" for i in range(keys)], deadline)
        if now_ms() > deadline - 100:
            raise RuntimeError(f"{keys} keys were not set in {lead_s} s")
        time.sleep(max(deadline + 1 - now_ms(), 0) / 1000)
        latencies, waits, seen, number, gone = [], [], 0, 0, None
        while gone is None:
            begin, begin_cpu = time.perf_counter(), cpu_ns()
            client.ask("PING")
            latencies.append((time.perf_counter() - begin) * 1000)
            waits.append((cpu_ns() - begin_cpu) / 1e6)
            number += 1
            seen += client.ask("GET", f"key:{number * 7919 % keys}") != b"$-1\r\n"
            if number % 10 == 0 and client.ask("DBSIZE") == b":0\r\n":
                gone = now_ms()
            if now_ms() > deadline + 60_000:
                break
        latencies.sort()
        waits.sort()
        return {"keys": keys, "pings": len(latencies), "p50_ms": latencies[len(latencies) // 2], "p99_ms": latencies[len(latencies) * 99 // 100],
                "max_ms": latencies[-1], "p99_cpu_ms": waits[len(waits) * 99 // 100],
                "values_seen": seen, "gone_ms": (gone or float("inf")) - deadline}
