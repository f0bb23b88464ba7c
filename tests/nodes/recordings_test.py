# SPDX-License-Identifier: Apache-2.0
"""The recordings of nodes in a real nats-server's object store: another client reads them, `report --nats` diagnoses them, old ones make
room for new ones."""
import json
import shutil
import socket
import subprocess
import tempfile

import pytest
from always_on import SERVER, TOOL, Job, Server, eventually
from cluster import missing
from nats_client import Client

pytestmark = pytest.mark.skipif(SERVER is None, reason="no nats-server")


@pytest.fixture
def port(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    server = Server(tmp_path / "nats", port=free)
    yield free
    server.kill()


def ran(tmp_path, port, job):
    done = subprocess.run([TOOL, "run", "--nats", f"nats://127.0.0.1:{port}", "--job", job, "--report-dir", tmp_path / job, "--", "sleep", "1"],
                          capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done


def reported(port, *words):
    done = subprocess.run([TOOL, "report", "--nats", f"nats://127.0.0.1:{port}", *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_another_client_reads_a_recording(tmp_path, port):
    ran(tmp_path, port, "one")
    client = Client(port)
    config = client.state()["config"]
    assert (config["max_age"], config["max_bytes"], config["discard"]) == (3 * 24 * 3600 * 10**9, 256 << 20, "new")
    [(name, (_, contents))] = client.objects().items()
    assert name.startswith("one/") and name.endswith(".ddpd")
    (tmp_path / "got.ddpd").write_bytes(contents)
    assert subprocess.run([TOOL, "report", tmp_path / "got.ddpd"], capture_output=True, text=True).stdout.startswith("finished: the command has exited")
    status, said = reported(port, "--job", "one", "-o", str(tmp_path / "one.json"))
    assert status == 0 and json.loads((tmp_path / "one.json").read_text())["verdict"] == "finished", said
    status, said = reported(port, "--job", "two")
    assert status == 3 and "the NATS server keeps no recordings of job two" in said
    ran(tmp_path, port, "two")
    status, said = reported(port)
    assert status == 3 and "recordings of 2 jobs: one, two" in said


def test_the_oldest_make_room(tmp_path, port):
    client = Client(port)
    client.bucket(12 << 10)
    for number in range(8):
        ran(tmp_path, port, f"job{number}")
    kept = sorted(name.split("/")[0] for name in client.objects())
    assert kept == [f"job{number}" for number in range(8 - len(kept), 8)] and 0 < len(kept) < 8, kept
    assert client.state()["state"]["bytes"] <= 12 << 10
    status, said = reported(port, "--job", "job7")
    assert status == 0, said


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_recordings_of_three_nodes_name_the_rank_that_differed():
    folder = tempfile.mkdtemp(prefix="ddprec_")  # short: torch puts sockets into it
    try:
        with Job(folder, "mismatch.py", words=["--hang-timeout", "4"]) as job:
            job.wait_ready()
            eventually(job.report, 60, job.said)
            target = job.folder / "kept.json"

            def diagnosed():
                subprocess.run(job.cluster.nodes[1].enter(TOOL, "report", "--nats", job.url, "-o", str(target)), capture_output=True, cwd=job.folder)
                report = json.loads(target.read_text()) if target.exists() else None
                return report if report and sorted(report["job"]["hosts"]) == ["node1", "node2", "node3"] else None

            finding = eventually(diagnosed, 30, job.said)["findings"][0]
            assert (finding["kind"], finding["culprits"], finding["confidence"]) == ("mismatched-op", [4], "certain"), finding
    finally:
        shutil.rmtree(folder, ignore_errors=True)
