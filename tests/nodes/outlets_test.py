# SPDX-License-Identifier: Apache-2.0
"""What `run --nats` sends to others, between nodes with networks of their own: Prometheus's page, OTLP, a chat's webhook; and the command of
--on-hang-exec gets the report of all nodes."""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from always_on import SERVER, TOOL, Job, Server, eventually
from cluster import missing

HERE = Path(__file__).resolve().parent
METRICS_PORT, RECEIVER_PORT = 9095, 4318
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())"

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.skipif(SERVER is None, reason="no nats-server"),
              pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")]


@pytest.fixture
def job():
    """A hung job on three nodes, of which the third receives what the first one sends."""
    folder = tempfile.mkdtemp(prefix="ddpout_")  # short: torch puts sockets into it
    receiver = f"http://10.77.0.3:{RECEIVER_PORT}"
    words = ["--hang-timeout", "4", "--metrics", f":{METRICS_PORT}", "--otlp", receiver, "--webhook-file", "hook",
             "--on-hang-exec", "'cp \"$DDPDOCTOR_REPORT_DIR/report.json\" exec.json'"]
    try:
        with Job(folder, "mismatch.py", words=words, start=False) as made:
            (made.folder / "hook").write_text(f"{receiver}/secret-path\n")
            made.cluster.nodes[2].start(f"exec {sys.executable} {HERE}/jobs/receiver.py {RECEIVER_PORT}", made.environment(), made.folder / "received")
            for index in range(3):
                made.start(index)
            made.wait_ready()
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def received(job, path):
    lines = (job.folder / "received").read_text().splitlines(keepends=True)
    return [message for message in (json.loads(line) for line in lines if line.endswith("\n")) if message["path"] == path]


def points(message):
    """name → [(labels, value)] of an OTLP message."""
    out = {}
    for resource in json.loads(message["body"])["resourceMetrics"]:
        for metric in (metric for scope in resource["scopeMetrics"] for metric in scope["metrics"]):
            assert ("sum" in metric) != ("gauge" in metric)
            for point in metric.get("sum", metric.get("gauge"))["dataPoints"]:
                labels = {one["key"]: one["value"]["stringValue"] for one in point["attributes"]}
                out.setdefault(metric["name"], []).append((labels, point["asDouble"]))
    return out


def test_a_hang_reaches_prometheus_otlp_and_the_chat(job):
    eventually(job.report, 60, job.said)
    chat = eventually(lambda: received(job, "/secret-path"), 30, job.said)
    assert len(chat) == 1 and chat[0]["type"] == "application/json"
    assert json.loads(chat[0]["body"])["text"].startswith("*ddpdoctor: mismatched-op* (certain)\nrank 4 "), chat
    assert "secret-path" not in job.said()
    copied = eventually(lambda: (job.folder / "exec.json").exists() and (job.folder / "exec.json").read_text(), 30, job.said)
    assert json.loads(copied)["findings"][0]["kind"] == "mismatched-op"

    def scraped():
        url = f"http://{job.cluster.nodes[0].address}:{METRICS_PORT}/metrics"
        done = subprocess.run(job.cluster.nodes[1].enter(sys.executable, "-c", FETCH, url), capture_output=True, text=True)
        return done.stdout if 'kind="mismatched-op"} 1' in done.stdout else None

    page = eventually(scraped, 30, job.said)
    assert page.count("ddpdoctor_rank_collectives_total{") == 6
    assert 'state="heard"} 3' in page

    def sent():
        messages = received(job, "/v1/metrics")
        return messages[-1] if messages and "ddpdoctor_findings_total" in points(messages[-1]) else None

    message = eventually(sent, 40, job.said)
    assert message["type"] == "application/json"
    told = points(message)
    assert {labels["rank"] for labels, _ in told["ddpdoctor_rank_collectives_total"]} == set("012345")
    assert {labels["host"] for labels, _ in told["ddpdoctor_rank_behind_collectives"]} == {"node1", "node2", "node3"}
    assert told["ddpdoctor_findings_total"][0][0]["kind"] == "mismatched-op" and told["ddpdoctor_findings_total"][0][1] == 1
    names = {line.split("{")[0] for line in page.splitlines() if line.startswith("ddpdoctor_")}
    assert set(told) == names


def test_every_name_is_one_of_the_protocol(job):
    metrics_service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    message = eventually(lambda: received(job, "/v1/metrics"), 60, job.said)[0]
    request = json_format.Parse(message["body"], metrics_service.ExportMetricsServiceRequest())  # refuses unknown names
    assert request.resource_metrics[0].scope_metrics[0].metrics


def test_a_collector_that_serves_metrics_ends_on_a_signal(tmp_path):
    """Its threads must not take the signal: it would be killed before its last words."""
    server = Server(tmp_path, port=24225)
    page = f"http://127.0.0.1:{METRICS_PORT}/metrics"
    collector = subprocess.Popen([TOOL, "collect", "--nats", "nats://127.0.0.1:24225", "--job", "none", "--metrics", f"127.0.0.1:{METRICS_PORT}",
                                  "--otlp", "http://127.0.0.1:9"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: subprocess.run([sys.executable, "-c", FETCH, page], capture_output=True).returncode == 0, 30, "no metrics are served")
        assert collector.stderr.readline().startswith("ddpdoctor: --otlp http://127.0.0.1:9/v1/metrics: the message was not taken")
        collector.terminate()
        assert collector.wait(timeout=30) == 0
    finally:
        collector.kill()
        collector.wait()
        server.kill()
