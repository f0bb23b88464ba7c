# SPDX-License-Identifier: Apache-2.0
"""OTLP to a receiver that requires TLS of a private authority, a client certificate and a header, by OpenTelemetry's variables."""
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
from always_on import SERVER, TOOL, Server, eventually
from nats_identity import Certificates

pytestmark = [pytest.mark.skipif(SERVER is None, reason="no nats-server"),
              pytest.mark.skipif(shutil.which("openssl") is None or shutil.which("curl") is None, reason="no openssl or curl")]
SECRET = "open-sesame"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command_lines():
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield entry.read_bytes().decode(errors="replace")
        except OSError:
            pass


class Receiver(http.server.ThreadingHTTPServer):
    """Requires a header; keeps what it takes, and every command line that shows the secret while a message arrives."""

    def __init__(self, certificates):
        super().__init__(("127.0.0.1", 0), Taker)
        self.taken, self.refused, self.shown = [], 0, []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.server_key)
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client without a certificate


class Taker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.shown += [line for line in command_lines() if SECRET in line]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = self.headers["Authorization"] == f"Bearer {SECRET}" and self.headers["Content-Type"] == "application/json"
        if good:
            self.server.taken.append((self.path, json.loads(body)))
        else:
            self.server.refused += 1
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(tmp_path):
    made = Receiver(Certificates(tmp_path / "certificates"))
    made.files = tmp_path / "certificates"
    yield made
    made.shutdown()


@pytest.fixture
def collector(tmp_path):
    """`collector(words, environment)`: a running collector without a job; its stderr is in the file `said`."""
    port = free_port()
    server = Server(tmp_path / "nats", port=port)
    running = []

    def start(words, environment):
        with open(tmp_path / "said", "w") as said:
            running.append(subprocess.Popen([TOOL, "collect", "--nats", f"nats://127.0.0.1:{port}", "--job", "none", *words], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=said, env={**os.environ, **environment}))
        return tmp_path / "said"

    yield start
    for one in running:
        one.terminate()
        one.wait(timeout=30)
    server.kill()


def variables(receiver, **more):
    every = {"ENDPOINT": f"https://127.0.0.1:{receiver.server_port}", "HEADERS": f"Authorization=Bearer%20{SECRET}",
             "CERTIFICATE": receiver.files / "ca.pem", "CLIENT_CERTIFICATE": receiver.files / "client.pem", "CLIENT_KEY": receiver.files / "client.key"}
    return {f"OTEL_EXPORTER_OTLP_{name}": str(value) for name, value in {**every, **more}.items()}


def test_metrics_arrive_and_no_command_line_shows_the_header(receiver, collector):
    said = collector(["--otlp", "env"], variables(receiver))
    path, message = eventually(lambda: receiver.taken, 30, said.read_text)[0]
    assert path == "/v1/metrics" and message["resourceMetrics"]
    assert receiver.shown == [] and said.read_text() == ""


def test_a_named_address_takes_the_other_variables(receiver, collector):
    said = collector(["--otlp", f"https://127.0.0.1:{receiver.server_port}"], variables(receiver, ENDPOINT="http://127.0.0.1:9"))
    assert eventually(lambda: receiver.taken, 30, said.read_text)


@pytest.mark.parametrize("without, reason", [("HEADERS", "curl: (22) The requested URL returned error: 401"), ("CERTIFICATE", "curl: (60) "),
                                             ("CLIENT_KEY", "curl: ")])
def test_what_is_missing_is_said_once(receiver, collector, without, reason):
    said = collector(["--otlp", "env"], variables(receiver, **{without: ""}))
    line = eventually(said.read_text, 30, "nothing is said")
    assert line.startswith(f"ddpdoctor: --otlp https://127.0.0.1:{receiver.server_port}/v1/metrics: the message was not taken ({reason}"), line
    assert receiver.taken == [] and SECRET not in line
