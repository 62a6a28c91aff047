#!/usr/bin/env python3
"""The status page of jobs in a real browser, with three replicas that one of them leads.

    page_test.py JOBS
"""
import html.parser
import os
import subprocess
import sys
import tempfile
import time
import unittest

from jobs_support import LIMIT, Replica, etcd_settings, servers, store_settings

PROGRAM = sys.argv[1]
HOUR = 3_600_000


class Tables(html.parser.HTMLParser):
    """id -> rows of cells, of all tables that the browser has built."""

    def __init__(self, text):
        super().__init__()
        self.all, self.in_cell = {}, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.rows = self.all.setdefault(dict(attrs)["id"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.in_cell = False

    def handle_data(self, data):
        if self.in_cell:
            self.rows[-1][-1] += data.strip()


def browse(url):
    """The document as the browser has it after it was loaded, and what the browser complains of."""
    with tempfile.TemporaryDirectory() as profile:
        root = ["--no-sandbox"] if os.getuid() == 0 else []
        done = subprocess.run(["chromium", "--headless", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}", *root,
                               "--enable-logging=stderr", "--dump-dom", url], capture_output=True, text=True, timeout=LIMIT, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Page(unittest.TestCase):
    # J-10
    def test_it_shows_the_jobs_and_the_replicas_and_who_leads(self):
        store, etcd = servers.redis(), servers.etcd()
        self.addCleanup(store.close)
        self.addCleanup(etcd.close)
        names = ["<a&b>", "r2", "r3"]
        settings = {**store_settings("redis", store), **etcd_settings(etcd)}
        replicas = []
        for name in names:
            replicas.append(Replica(PROGRAM, {**settings, "replica": name}))
            self.addCleanup(replicas[-1].kill)
        self.assertEqual(replicas[0].ask("POST", "/jobs", [{"id": "now", "in_ms": 0}, {"id": "a", "in_ms": HOUR}, {"id": "b", "in_ms": HOUR}])[0], 200)
        while True:
            status = replicas[0].ask("GET", "/status")[1]
            if len(status["replicas"]) == 3 and status["leader"] and status["jobs"]["all"] == 2 and sum(each["done"] for each in status["replicas"]) == 1:
                break
            time.sleep(0.05)

        page, complaints = browse(f"http://127.0.0.1:{replicas[0].port}/")
        self.assertEqual(complaints, [])
        tables = Tables(page).all
        self.assertEqual(tables["jobs"], [["in redis", "all", "late", "dead"], ["", "2", "0", "0"]])
        head, *rows = tables["replicas"]
        self.assertEqual(head[:4], ["replica", "claimed", "done", "failed"])
        shown = [row[0] for row in rows]
        self.assertEqual(shown, [name + (" leads" if name == status["leader"] else "") for name in sorted(names)])
        self.assertEqual(sum(int(row[2]) for row in rows), 1)
        for row in rows:
            self.assertEqual(len(row), len(head))
            self.assertGreaterEqual(float(row[7]), float(row[6]), "p99 and p50 of the lag")
        self.assertIn("This page is by &lt;a&amp;b&gt;.", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
