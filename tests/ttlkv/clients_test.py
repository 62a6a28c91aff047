#!/usr/bin/env python3
"""Real clients of Redis against ttlkv: redis-cli, redis-benchmark and redis-py.

    clients_test.py TTLKV
"""
import subprocess
import sys
import unittest

import redis

from ttlkv_support import LIMIT, Ttlkv

PROGRAM = sys.argv[1]


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Ttlkv(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def cli(self, *words, **options):
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), *words], capture_output=True, text=True, timeout=LIMIT, check=True,
                              **options)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_redis_cli(self):
        self.assertEqual(self.cli("SET", "cli", "hello", "EX", "100"), "OK\n")
        self.assertEqual(self.cli("GET", "cli"), "hello\n")
        self.assertEqual(self.cli("NOSUCH", "x"), "ERR unknown command 'NOSUCH', with args beginning with: 'x' \n\n")
        self.assertEqual(self.cli(input="SET cli 1\nINCR cli\nTTL cli\n"), "OK\n2\n-1\n")
        self.assertIn("redis_version:7.0.15", self.cli("INFO"))
        self.assertIn("maxmemory", self.cli("CONFIG", "GET", "*"))

    def test_redis_cli_pipes_a_file(self):
        commands = "".join(f"SET piped:{i} {i}\r\n" for i in range(10000))
        self.assertIn("errors: 0, replies: 10000", self.cli("--pipe", input=commands))
        self.assertEqual(self.cli("GET", "piped:9999"), "9999\n")

    def test_redis_benchmark(self):
        done = subprocess.run(["redis-benchmark", "-p", str(self.server.port), "-t", "ping,set,get,incr,lpush,lrange_100,mset", "-n", "2000",
                               "-c", "20", "-P", "4", "-r", "100", "-q", "--csv"], capture_output=True, text=True, timeout=LIMIT, check=True)
        self.assertEqual(done.stderr, "")
        tests = [line.split(",")[0] for line in done.stdout.splitlines()[1:]]
        for test in ('"SET"', '"GET"', '"INCR"', '"LPUSH"', '"MSET (10 keys)"'):
            self.assertIn(test, tests)
        self.assertNotIn("WARNING", done.stdout)

    def test_redis_py(self):
        client = redis.Redis(port=self.server.port, socket_timeout=LIMIT)
        self.assertTrue(client.set("py", b"\0binary\r\n", ex=100))
        self.assertEqual(client.get("py"), b"\0binary\r\n")
        self.assertIn(client.ttl("py"), range(30, 101))
        self.assertTrue(client.persist("py"))
        self.assertEqual(client.ttl("py"), -1)
        self.assertIsNone(client.set("py", "x", nx=True))
        self.assertEqual(client.getex("py", px=100000), b"\0binary\r\n")
        self.assertEqual(client.exists("py", "py", "nothing"), 2)
        self.assertEqual(client.lpush("pylist", "a", "b"), 2)
        self.assertEqual(client.lrange("pylist", 0, -1), [b"b", b"a"])
        with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE"):
            client.get("pylist")
        self.assertEqual(client.config_get("save"), {"save": ""})
        self.assertEqual(client.info()["redis_version"], "7.0.15")
        self.assertTrue(client.expire("py", 10, gt=True) in (0, False))
        with client.pipeline(transaction=False) as pipe:
            for i in range(1000):
                pipe.set(f"pipe:{i}", i)
                pipe.get(f"pipe:{i}")
            self.assertEqual(pipe.execute()[1::2], [str(i).encode() for i in range(1000)])
        client.close()

    def test_redis_py_hears_of_an_expired_key(self):
        client = redis.Redis(port=self.server.port, socket_timeout=LIMIT)
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.subscribe("__keyevent@0__:expired")
        listener.psubscribe("__keyspace@0__:sess*")
        for _ in range(2):
            listener.get_message(timeout=LIMIT)
        client.set("session", 1, px=20)
        heard = [self.next_message(listener) for _ in range(2)]
        self.assertEqual({(m["type"], m["channel"], m["data"]) for m in heard},
                         {("message", b"__keyevent@0__:expired", b"session"), ("pmessage", b"__keyspace@0__:session", b"expired")})
        listener.unsubscribe()
        listener.close()
        client.close()

    def next_message(self, listener):
        while True:
            message = listener.get_message(timeout=LIMIT)
            if message:
                return message


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
