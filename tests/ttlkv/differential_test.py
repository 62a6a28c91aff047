#!/usr/bin/env python3
"""Compares ttlkv with a real redis-server: both get the same bytes, and must send the same bytes.

    differential_test.py TTLKV [SEED [ROUNDS]]
    differential_test.py record          writes the replies of redis-server into replies.txt

replies.txt has the commands with the replies of Redis 7.0.15. commands_test.cc expects them as well, without a server.
"""
import contextlib
import os
import random
import re
import shlex
import sys
import unittest
from pathlib import Path

from ttlkv_support import Client, Ttlkv, encode, servers

PROGRAM = sys.argv[1]
REPLIES = Path(__file__).with_name("replies.txt")
SEED = int(os.environ.get("SYLAR_TEST_SEED", sys.argv[2] if len(sys.argv) > 2 else 7))
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
FAR = 4102444800  # a time in the year 2100, in seconds

KEYS = ["k1", "k2", "k3", "list", "n"]
NUMBERS = ["0", "1", "-1", "5", "x", "", str(FAR), str(FAR + 1), "9223372036854775807", "-9223372036854775808", "9223372036854776", "1e3", " 1"]
WORDS = ["NX", "XX", "GT", "LT", "EX", "PX", "EXAT", "PXAT", "KEEPTTL", "PERSIST", "GET", "FOO", "", "nx"]
NAMES = """SET SET SET SETEX PSETEX GETEX EXPIREAT EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME PERSIST GET MGET DEL EXISTS SETNX
           LPUSH LRANGE INCR DECR INCRBY DECRBY APPEND STRLEN GETSET GETDEL MSET TYPE TOUCH UNLINK NOSUCH""".split()


def scenarios():
    """The scenarios of replies.txt: lists of (line number, words, reply). Each begins without keys."""
    found = [[]]
    words = None
    for number, line in enumerate(REPLIES.read_text(encoding="ascii").splitlines(), 1):
        if line.startswith("#"):
            continue
        if not line:
            found.append([])
        elif line.startswith("    "):
            found[-1].append((number, words, line[4:].encode().decode("unicode_escape").encode("latin-1")))
        else:
            words = shlex.split(line)
    return [scenario for scenario in found if scenario]


def record():
    """Replaces the replies in replies.txt by those of a redis-server."""
    with contextlib.closing(redis_server()) as redis:
        lines = REPLIES.read_text(encoding="ascii").splitlines()
        client = None
        for number, line in enumerate(lines):
            if not line:
                client = None
            elif not line.startswith(("#", "    ")):
                if client is None:
                    client = Client(redis.port)
                    client.raw("FLUSHALL")
                reply = client.raw(*shlex.split(line))
                lines[number + 1] = "    " + reply.decode("latin-1").encode("unicode_escape").decode()
    REPLIES.write_text("\n".join(lines) + "\n", encoding="ascii")


def redis_server():
    return servers.Daemon(lambda port, folder: [
        "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder,
        "--databases", "1", "--enable-debug-command", "yes", "--loglevel", "warning"])


def random_command(chance):
    """A command that is right, nearly right, or nonsense. Times are far away or past, so both servers see the same."""
    def time_of(option):
        far = {"EX": "100", "PX": "100000"}.get(option)
        return chance.choice([far, "0", "x", "9223372036854775807"]) if far else chance.choice(NUMBERS)

    name = chance.choice(NAMES)
    key = chance.choice(KEYS)
    words = [name, key]
    if name in ("SETEX", "PSETEX"):
        words += [chance.choice(["1000000", "0", "-1", "x", "9223372036854775807"]), "value"]
    elif name in ("SET", "GETEX"):
        words += ["value"] * (name == "SET")
        for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
            option = chance.choice(WORDS)
            words.append(option)
            if option in ("EX", "PX", "EXAT", "PXAT") and chance.random() < 0.9:
                words.append(time_of(option))
    elif name.endswith("EXPIREAT"):
        words.append(chance.choice(NUMBERS))
        words += chance.sample(WORDS, chance.choice([0, 0, 1, 1, 2]))
    elif name in ("MGET", "DEL", "EXISTS", "TOUCH", "UNLINK", "MSET"):
        words += chance.choices(KEYS, k=chance.randrange(4))
    elif name in ("INCRBY", "DECRBY", "APPEND", "GETSET", "SETNX", "LPUSH"):
        words.append(chance.choice(NUMBERS))
    elif name == "LRANGE":
        words += [chance.choice(NUMBERS), chance.choice(NUMBERS)]
    if chance.random() < 0.03:
        words.append("more")
    if chance.random() < 0.03:
        words.pop()
    return words or [name]


def odd_bytes(chance, most):
    """A few bytes of those that end or quote something, or are printed in another way."""
    return b"".join(chance.choices([b"\0", b"\r", b"\n", b"\t", b"\v", b"'", b'"', b"\\", b"%", b"\x1b", b"\xff", b"a", b" "], k=chance.randrange(most)))


def with_odd_argument(chance):
    """A command whose error prints what it was given, or a line."""
    odd = odd_bytes(chance, 6) + b"x" * chance.choice([0, 0, 0, 200])
    return chance.choice([
        encode(b"q" + odd, odd), encode(odd), encode("NOSUCH", odd, odd, odd), encode("CONFIG", b"q" + odd), encode("CONFIG", "SET", b"q" + odd, "1"),
        encode("CLIENT", b"q" + odd), encode("COMMAND", "INFO", b"q" + odd), encode("HELLO", "2", b"q" + odd), encode("EXPIRE", "a", "1", b"q" + odd),
        encode("DEBUG", b"q" + odd), encode("FUNCTION", b"q" + odd), b"PI" + odd + b"NG\r\n", b"ECHO " + odd + b"\r\n", b"ECHO '" + odd + b"'\r\n"])


def malformed(chance):
    """Bytes that are, more or less, a request."""
    kind = chance.randrange(14)
    if kind == 13:
        return with_odd_argument(chance) + encode("ECHO", "hello")
    if kind == 12:  # nothing before it: Redis forgets the replies that it has not sent yet when it hangs up
        return chance.choice([b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", b"Host: a\r\n", b"post\r\nPING\r\n"])
    number = chance.choice(["-1", "0", "1", "2", "-2", "x", "", "1x", "01", "+1", "2147483648", "9223372036854775808", "1048577", " 1", "3.5"])
    good = encode("ECHO", "hello")
    if kind == 0:
        data = f"*{number}\r\n".encode() + b"$4\r\nPING\r\n"
    elif kind == 1:
        size = chance.choice(["-1", "x", "", "536870913", "1073741824", "-5", "04", "+4", "9999999999999999999"])
        data = f"*1\r\n${size}\r\nPING\r\n".encode()
    elif kind == 2:
        data = b"*1\r\n" + bytes([chance.choice(b"*:+-x4\n\t ")]) + b"4\r\nPING\r\n"
    elif kind == 3:
        quote = chance.choice(['"', "'"])
        data = f"ECHO {quote}hello{chance.choice(['', quote + 'x', quote, quote + quote])}\r\n".encode()
    elif kind == 4:
        data = chance.choice([b"\r\n", b"\n", b"   \r\n", b"PING\n", b"ECHO \"a\\x41\\n\\q\"\r\n", b"ECHO 'a\\'b'\r\n", b"ping hello\r\n"])
    elif kind == 5:
        data = good[:chance.randrange(len(good))]
    elif kind == 6:
        at = chance.randrange(len(good))
        data = good[:at] + bytes([chance.randrange(1, 256)]) + good[at + 1:]
    elif kind == 7:
        data = bytes(chance.randrange(1, 256) for _ in range(chance.randrange(1, 40)))
    elif kind == 8:
        data = b"x" * chance.choice([65535, 65536, 65537, 70000])
    elif kind == 9:
        data = b"*" + b"1" * chance.choice([30, 65535, 65537, 70000])
    elif kind == 10:
        data = b"*1\r\n$" + b"1" * chance.choice([30, 65535, 65537, 70000])
    else:
        data = b"*2\r\n$4\r\nECHO\r\n$5\r\nhelloXY" + chance.choice([good, b"", b"\r\n"])
    return chance.choice([b"", b"", good]) + data + chance.choice([b"", b"", good])


class Differential(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.redis = redis_server()
        cls.ttlkv = Ttlkv(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.redis.close()
        cls.ttlkv.__exit__(None)

    def both(self):
        return Client(self.redis.port), Client(self.ttlkv.port)

    def test_recorded_replies(self):
        for scenario in scenarios():
            redis, ttlkv = self.both()
            with redis, ttlkv:
                for client in (redis, ttlkv):
                    client.raw("FLUSHALL")
                for number, words, reply in scenario:
                    with self.subTest(line=number, words=words):
                        self.assertEqual(redis.raw(*words), reply, "of redis-server")
                        self.assertEqual(ttlkv.raw(*words), reply, "of ttlkv")

    def test_random_commands(self):
        chance = random.Random(SEED)
        redis, ttlkv = self.both()
        with redis, ttlkv:
            for client in (redis, ttlkv):
                client.raw("FLUSHALL")
            # DBSIZE is left out: it counts keys that have expired until they are removed, which happens sooner here.
            for i in range(ROUNDS):
                command = random_command(chance)
                replies = ttlkv.raw(*command), redis.raw(*command)
                if command[0].endswith("EXPIRETIME") and all(re.fullmatch(rb":(?!4102)\d{10,13}\r\n", r) for r in replies):
                    continue  # a time that was counted from now, and so is not the same
                self.assertEqual(*replies, f"seed {SEED}, command {i}: {command}")

    def test_malformed_requests(self):
        chance = random.Random(SEED)
        for i in range(500):
            data = malformed(chance)
            answers = []
            for client in self.both():
                with client:
                    try:
                        client.send(data)
                        client.socket.shutdown(1)
                    except OSError:
                        pass
                    answers.append(re.sub(rb":\d+(?=\r\n\$4\r\nmode)", b":ID", client.rest()))  # of HELLO
            if b"" in answers and len(data) > 60000:
                continue  # a reset may overtake the error if bytes were not read
            self.assertEqual(answers[1], answers[0], f"seed {SEED}, case {i}: {data[:100]!r}")

    def test_patterns_on_odd_keys(self):
        chance = random.Random(SEED)
        keys = ["", "a", "b", "ab", "^", "-", "]", "[", "\\", "*", "?", "\0", "a\0b"]
        redis, ttlkv = self.both()
        with redis, ttlkv:
            for client in (redis, ttlkv):
                client.raw("FLUSHALL")
                for key in keys:
                    client.raw("SET", key, "1")
            patterns = ["*", "**", "?", "*?", ""] + ["".join(chance.choices(["*", "?", "[", "]", "^", "-", "\\", "a", "b", "[^", "[a-b]", "\0"], k=chance.randrange(6)))
                                                     for _ in range(ROUNDS // 4)]
            for pattern in patterns:
                found = [sorted(client.raw("KEYS", pattern).split(b"$")) for client in (ttlkv, redis)]
                self.assertEqual(*found, f"seed {SEED}: {pattern!r}")


if __name__ == "__main__":
    if PROGRAM == "record":
        sys.exit(record())
    unittest.main(argv=sys.argv[:1], verbosity=2)
