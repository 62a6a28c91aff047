"""For run_clients_test.py: threads that serve HTTP, main that fetches from them, and children in between."""
import http.server
import os
import select
import socket
import subprocess
import sys
import threading
import urllib.request


class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    for size in 0, 1, 1_000_000:
        body = b"x" * size
        with urllib.request.urlopen(url, body) as answer:
            print("fetched", size, answer.read() == body)
    fetch = f"import urllib.request as u; print(u.urlopen('{url}', b'from a child').read())"
    for _ in range(3):
        print(subprocess.run([sys.executable, "-c", fetch], capture_output=True, check=True).stdout)
    print(subprocess.run("cat | tr a-z A-Z", shell=True, input=b"through pipes " * 10_000, capture_output=True, check=True).stdout[-14:])
    server.shutdown()

sys.stdout.flush()
child = os.fork()
if child == 0:
    print("forked", flush=True)
    os._exit(3)
print("child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

left, right = socket.socketpair()
threading.Thread(target=lambda: left.sendall(left.recv(1))).start()
right.sendall(b"!")
print("ready:", select.select([right], [], [], 60)[0] == [right], right.recv(1))
print("main thread:", os.getpid() == threading.get_native_id())


def depth(left):
    return 0 if left == 0 else 1 + depth(left - 1)


sys.setrecursionlimit(10_000)
print("recursion:", depth(9_000))
sys.exit(7)
