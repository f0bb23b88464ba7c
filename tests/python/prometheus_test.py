# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard in packaging: promtool accepts them, and the metrics that they name exist."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus"
EXPORTED = set(re.findall(r'"(ddpdoctor_[a-z_]+)"', (ROOT / "collector/fleet/metrics.cc").read_text()))
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool")


def names_in(text):
    return set(re.findall(r"ddpdoctor_[a-z_]+", text))


@needs_promtool
def test_the_rules_are_sound_and_fire_when_they_should():
    for words in (["check", "rules", "ddpdoctor-alerts.yml"], ["test", "rules", "ddpdoctor-alerts_test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=RULES, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_ask_for_metrics_that_exist():
    assert EXPORTED
    asked = names_in((RULES / "ddpdoctor-alerts.yml").read_text())
    board = json.loads((ROOT / "packaging/grafana/ddpdoctor.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) == len(board["panels"])
    for expression in expressions:
        asked |= names_in(expression)
    assert asked <= EXPORTED, asked - EXPORTED


@needs_promtool
def test_the_expressions_of_the_dashboard_parse(tmp_path):
    board = json.loads((ROOT / "packaging/grafana/ddpdoctor.json").read_text())
    rules = [{"record": f"panel_{panel['id']}", "expr": target["expr"]} for panel in board["panels"] for target in panel["targets"]]
    path = tmp_path / "panels.json"  # JSON is YAML
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
