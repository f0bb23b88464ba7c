# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes `collect --metrics` and loads the alert rules in packaging."""
import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from always_on import SERVER, TOOL, Server, eventually

RULES = Path(__file__).resolve().parents[2] / "packaging/prometheus/ddpdoctor-alerts.yml"

pytestmark = [pytest.mark.skipif(SERVER is None, reason="no nats-server"), pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus")]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def prometheus(tmp_path):
    """A Prometheus that scrapes a collector without a job; `ask(path)` is its answer."""
    nats, metrics, own = free_port(), free_port(), free_port()
    server = Server(tmp_path / "nats", port=nats)
    collector = subprocess.Popen([TOOL, "collect", "--nats", f"nats://127.0.0.1:{nats}", "--job", "one", "--metrics", f"127.0.0.1:{metrics}"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    node = subprocess.Popen([TOOL, "run", "--nats", f"nats://127.0.0.1:{nats}", "--job", "one", "--", "sleep", "600"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES)],
                "scrape_configs": [{"job_name": "ddpdoctor", "static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]}]}
    (tmp_path / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
    log = open(tmp_path / "prometheus.log", "wb")
    program = subprocess.Popen(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                                f"--web.listen-address=127.0.0.1:{own}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/{path}", timeout=5) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    yield ask
    for process in (program, collector, node):
        process.terminate()
        process.wait(timeout=60)
    log.close()
    server.kill()


def test_prometheus_takes_the_page_and_the_rules(prometheus):
    def healthy():
        answer = prometheus("targets")
        return answer and [target for target in answer["activeTargets"] if target["health"] == "up"]

    assert eventually(healthy, 60, lambda: str(prometheus("targets")))
    query = urllib.parse.quote('ddpdoctor_nodes{state="heard"}')
    nodes = eventually(lambda: (prometheus(f"query?query={query}") or {}).get("result"), 60, lambda: str(prometheus("targets")))
    assert nodes[0]["value"][1] == "1", nodes

    def evaluated():
        answer = prometheus("rules")
        rules = [rule for group in answer["groups"] for rule in group["rules"]] if answer else []
        return rules and all(rule["health"] == "ok" for rule in rules) and rules

    rules = eventually(evaluated, 60, lambda: str(prometheus("rules")))
    assert all(rule["state"] == "inactive" for rule in rules), rules
