# SPDX-License-Identifier: Apache-2.0
"""Every way of authentication at a real nats-server: `run --nats` publishes, `collect` receives; and what is reported if the server
refuses."""
import itertools
import json
import os
import shutil
import socket
import subprocess

import pytest
from always_on import SERVER, TOOL, Server
from nats_identity import Certificates, Operator

pytestmark = [pytest.mark.skipif(SERVER is None, reason="no nats-server"), pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")]
jobs = itertools.count()


@pytest.fixture
def at(tmp_path):
    """`at(extra lines)`: a server on a free port of loopback."""
    started = []

    def start(extra, **more):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        started.append(Server(tmp_path / f"nats{len(started)}", port=port, extra=extra, **more))
        return f"127.0.0.1:{port}"

    yield start
    for server in started:
        server.kill()


def file(folder, name, text):
    path = folder / name
    path.write_text(text + "\n")
    return path


def under(folder, url, *words, environment=None):
    """A node of a job, and then a collector: what the node wrote to stderr, the status and the output of the collector."""
    job, words = f"job{next(jobs)}", [str(word) for word in words]
    options = ["--nats", url, "--job", job, *words]
    environment = {**os.environ, **(environment or {})}
    ran = subprocess.run([TOOL, "run", *options, "--report-dir", folder / job, "--", "sh", "-c", "echo from the job; sleep 1"], capture_output=True,
                         text=True, timeout=60, env=environment, cwd=folder)
    assert (ran.returncode, ran.stdout) == (0, "from the job\n"), ran
    asked = subprocess.run([TOOL, "collect", "--once", *options], capture_output=True, text=True, timeout=60, env=environment, cwd=folder)
    return ran.stderr, asked.returncode, asked.stdout + asked.stderr


def let_in(answer):
    said, status, printed = answer
    return said == "" and status == 0 and printed.startswith("finished: the command has exited")


def refused(answer, words):
    said, status, printed = answer
    return words in said and "the job continues" in said and status == 3 and words in printed


def test_a_token(at, tmp_path):
    url = "nats://" + at('authorization { token: "right" }')
    assert let_in(under(tmp_path, url, "--nats-token-file", file(tmp_path, "right", "right")))
    assert refused(under(tmp_path, url, "--nats-token-file", file(tmp_path, "wrong", "wrong")), "refused our credentials")
    assert refused(under(tmp_path, url), "refused our credentials")


def test_a_user_and_a_password(at, tmp_path):
    url = "nats://" + at("authorization { users: [ {user: ddp, password: 'with:colon'} ] }")
    assert let_in(under(tmp_path, url, "--nats-user-file", file(tmp_path, "right", "ddp:with:colon")))
    answer = under(tmp_path, url, "--nats-user-file", file(tmp_path, "wrong", "ddp:secret"))
    assert refused(answer, "refused our credentials") and "secret" not in answer[0] + answer[2]


def test_a_certificate_of_an_authority_of_ones_own(at, tmp_path):
    certificates = Certificates(tmp_path / "certificates")
    url = "tls://" + at(certificates.block(verify=False))
    assert let_in(under(tmp_path, url, "--nats-ca", certificates.ca))
    assert refused(under(tmp_path, url), "no connection to the NATS server")
    other = Certificates(tmp_path / "other")
    assert refused(under(tmp_path, url, "--nats-ca", other.ca), "no connection to the NATS server")


def test_a_server_that_asks_for_our_certificate(at, tmp_path):
    certificates = Certificates(tmp_path / "certificates")
    url = "tls://" + at(certificates.block(verify=True))
    assert let_in(under(tmp_path, url, "--nats-ca", certificates.ca, "--nats-cert", certificates.client, "--nats-key", certificates.client_key))
    assert refused(under(tmp_path, url, "--nats-ca", certificates.ca), "NATS server")


def test_credentials_that_an_operator_signed(at, tmp_path):
    operator, other = Operator(tmp_path / "operator"), Operator(tmp_path / "other")
    url = "nats://" + at(operator.lines)
    assert let_in(under(tmp_path, url, "--nats-creds", operator.credentials))
    assert refused(under(tmp_path, url, "--nats-creds", other.credentials), "refused our credentials")
    assert refused(under(tmp_path, url, "--nats-creds", tmp_path / "missing.creds"), "missing.creds")


@pytest.mark.parametrize("extra", ["", "jetstream { max_memory_store: 1KB, max_file_store: 1KB }"], ids=["absent", "full"])
def test_a_server_that_keeps_nothing(at, tmp_path, extra):
    url = "nats://" + at(extra, keeps=False)
    said, status, printed = under(tmp_path, url)
    assert said == "" and status == 3, "the node has ended, and nobody kept what it said"
    assert "no node of job" in printed and "keeps nothing (JetStream)" in printed and "nodes that have ended are unknown" in printed


def test_a_context_of_the_nats_tool(at, tmp_path):
    certificates = Certificates(tmp_path / "certificates")
    url = "tls://" + at(certificates.block(verify=False))
    contexts = tmp_path / "config/nats/context"
    contexts.mkdir(parents=True)
    (contexts / "cluster.json").write_text(json.dumps({"url": url, "ca": str(certificates.ca)}))
    job = f"job{next(jobs)}"
    words = ["--nats-context", "cluster", "--job", job]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    ran = subprocess.run([TOOL, "run", *words, "--report-dir", tmp_path / job, "--", "sleep", "1"], capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    asked = subprocess.run([TOOL, "collect", "--once", *words], capture_output=True, text=True, env=environment)
    assert asked.stdout.startswith("finished: the command has exited"), asked
