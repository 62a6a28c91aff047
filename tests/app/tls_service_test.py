#!/usr/bin/env python3
"""A service whose servers speak TLS, asked by Python's ssl, curl and openssl.

    tls_service_test.py PROGRAM [unittest arguments]
"""
import http.client
import signal
import socket
import ssl
import subprocess
import threading
import unittest

from service_test import PATIENCE, Service


def servers(folder):
    return f"""
servers:
  - name: web
    type: http
    address: ['127.0.0.1:0']
    keepalive: true
    ssl: true
    cert_file: {folder}/certificate
    key_file: {folder}/key
"""


class TlsService(Service):
    def __init__(self):
        super().__init__(servers=servers, workers="workers: {io: {thread_num: 2}}\n")

    def write(self, name, text):
        if callable(text):
            self.make_certificate("old.test")
            text = text(self.folder.name)
        super().write(name, text)

    def make_certificate(self, host):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}", "-keyout", self.path("key"),
                        "-out", self.path("certificate")], check=True, capture_output=True)

    def trusting(self):
        """What a client needs that trusts the certificate that is in the folder now."""
        return ssl.create_default_context(cafile=self.path("certificate"))

    def tls(self, host, context):
        return context.wrap_socket(self.connect(), server_hostname=host)

    def s_client(self, *options, typed=b""):
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{self.ports['web']}", *options]
        return subprocess.run(command, input=typed, capture_output=True, timeout=PATIENCE, check=False)


def get(connection):
    connection.sendall(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


class Tls(unittest.TestCase):
    def test_answers(self):
        with TlsService() as service:
            with service.tls("old.test", service.trusting()) as connection:
                self.assertEqual(connection.version(), "TLSv1.3")
                for _ in range(3):
                    self.assertEqual(get(connection), (200, b"hello\n"))
            with self.assertRaises(ssl.SSLCertVerificationError):
                service.tls("other.test", service.trusting())
            self.assertEqual(service.end()[0], 0, service.text())

    def test_curl(self):
        with TlsService() as service:
            url = f"https://old.test:{service.ports['web']}/hello"
            command = ["curl", "-sS", "--cacert", service.path("certificate"), "--resolve", f"old.test:{service.ports['web']}:127.0.0.1", url, url]
            self.assertEqual(subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout, b"hello\nhello\n")

    # WEB-L3: a client must not make the server work without end.
    def test_renegotiation_is_refused(self):
        with TlsService() as service:
            asked = service.s_client("-tls1_2", typed=b"R\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"RENEGOTIATING", asked.stdout + asked.stderr)
            self.assertIn(b"no renegotiation", asked.stderr)
            self.assertNotIn(b"hello\n", asked.stdout)

    # SEC-40, SEC-41
    def test_old_versions_and_weak_ciphers_are_refused(self):
        with TlsService() as service:
            for options in (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2", "-cipher", "AES128-SHA"]):
                self.assertIn(b"alert", service.s_client(*options).stderr)

    def test_a_session_goes_on(self):
        with TlsService() as service:
            context = service.trusting()
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            with service.tls("old.test", context) as first:
                self.assertEqual(get(first), (200, b"hello\n"))
                session = first.session
            second = context.wrap_socket(service.connect(), server_hostname="old.test", session=session)
            with second:
                self.assertTrue(second.session_reused)
                self.assertEqual(get(second), (200, b"hello\n"))

    def test_plain_http_is_refused_and_others_go_on(self):
        with TlsService() as service:
            with service.tls("old.test", service.trusting()) as good:
                for request in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 100, b"\0" * 5000):
                    with service.connect() as wrong:
                        try:
                            wrong.sendall(request)
                            wrong.shutdown(socket.SHUT_WR)
                            while wrong.recv(1000):
                                pass
                        except OSError:  # it has not read all, so this is a reset
                            pass
                    self.assertEqual(get(good), (200, b"hello\n"))

    # WEB-14, WEB-D17: no request is lost, and new connections have the new certificate.
    def test_certificates_are_read_again(self):
        with TlsService() as service:
            old = service.trusting()
            over = threading.Event()
            lost = []

            def ask():
                anybody = ssl._create_unverified_context()
                while not over.is_set():
                    try:
                        with service.tls("any.test", anybody) as connection:
                            answer = get(connection)
                        if answer != (200, b"hello\n"):
                            lost.append(answer)
                    except OSError as error:
                        lost.append(error)
                        return

            askers = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
            for asker in askers:
                asker.start()
            with service.tls("old.test", old) as kept:
                self.assertEqual(get(kept), (200, b"hello\n"))
                service.make_certificate("new.test")
                service.process.send_signal(signal.SIGHUP)
                service.wait_for("settings changed")
                with service.tls("new.test", service.trusting()) as connection:
                    self.assertEqual(get(connection), (200, b"hello\n"))
                self.assertEqual(get(kept), (200, b"hello\n"))
                service.write("certificate", "nothing")
                service.process.send_signal(signal.SIGHUP)
                service.wait_for("keeps its certificate")
                self.assertEqual(get(kept), (200, b"hello\n"))
            over.set()
            for asker in askers:
                asker.join()
            self.assertEqual(lost, [])
            self.assertEqual(service.end()[0], 0, service.text())


if __name__ == "__main__":
    unittest.main()
