# SPDX-License-Identifier: Apache-2.0
"""diagnose() and the dataclasses, on captures of tests/golden."""
import dataclasses
import json
import os
import subprocess
import sys

import jsonschema
import pytest

from conftest import ROOT, environment
import ddpdoctor
from ddpdoctor import report as shapes

CAPTURE = ROOT / "tests/golden/fork_with_held_lock__logging.json"


def test_a_file_becomes_a_report():
    report = ddpdoctor.diagnose(CAPTURE)
    assert report.verdict == report.json["verdict"]
    assert [finding.kind for finding in report.findings] == [finding["kind"] for finding in report.json["findings"]]
    finding, raw = report.findings[0], report.json["findings"][0]
    assert finding.culprits == tuple(raw["culprits"])
    assert [str(location) for location in finding.locations] == [f"{one['file']}:{one['line']}" if "line" in one else one["file"] for one in raw["locations"]]
    assert len(report.processes) == len(report.json["processes"])
    assert finding.kind in report.text and str(report) == report.text


def test_every_key_of_the_schema_has_a_field():
    """The dataclasses match docs/report.schema.json; a plain mapping there is one here."""
    schema = json.loads((ROOT / "docs/report.schema.json").read_text())
    known = {"finding": shapes.Finding, "evidence": shapes.Evidence, "group": shapes.Group, "process": shapes.Process, "thread": shapes.Thread, "frame": shapes.Frame}
    for name, cls in known.items():
        if name in schema["$defs"]:
            names = {field.metadata.get("key", field.name) for field in dataclasses.fields(cls)}
            assert set(schema["$defs"][name].get("required", [])) <= names, name
    assert set(schema["properties"]["job"]["properties"]) <= {field.name for field in dataclasses.fields(shapes.Job)}
    assert set(schema["properties"]["coverage"]["properties"]) <= {field.name for field in dataclasses.fields(shapes.Coverage)}
    jsonschema.validate(dict(ddpdoctor.diagnose(CAPTURE).json), schema)


def test_newer_reports_are_read_too():
    report = ddpdoctor.Report.from_json({"schema": "ddpdoctor.report/1", "verdict": "hang", "new": 1, "findings": [{"kind": "dead-rank", "newer": {}}],
                                         "wait_for": {"nodes": [], "edges": [{"from": "rank:0", "to": "rank:1", "why": "x"}], "cycles": []}})
    assert report.findings[0] == ddpdoctor.Finding(kind="dead-rank")
    assert report.wait_for.edges[0].source == "rank:0"
    assert report.processes == () and report.job.world_size is None
    with pytest.raises(ValueError):
        ddpdoctor.Report.from_json({"schema": "ddpdoctor.capture/1"})


def test_what_cannot_be_looked_at_says_why(tmp_path):
    with pytest.raises(ddpdoctor.NotObserved, match="no process") as refused:
        ddpdoctor.diagnose(2 ** 22 + 1)
    assert refused.value.status in (2, 3)
    with pytest.raises(ddpdoctor.NotObserved, match="nowhere"):
        ddpdoctor.diagnose(tmp_path / "nowhere.json")
    with pytest.raises(ValueError):
        ddpdoctor.diagnose([])
    with pytest.raises(ValueError):
        ddpdoctor.watchdog(timeout=0)


def test_no_program_is_said(tmp_path):
    asked = "import ddpdoctor\ntry: ddpdoctor.diagnose(1)\nexcept ddpdoctor.ProgramMissing as missing: print(missing)"
    said = subprocess.run([sys.executable, "-c", asked], env={**environment(), "DDPDOCTOR": "", "PATH": str(tmp_path)}, capture_output=True, text=True)
    if os.path.exists(os.path.join(os.path.dirname(sys.executable), "ddpdoctor")):
        pytest.skip("ddpdoctor is installed in this environment")
    assert "pip install" in said.stdout, said


def test_importing_it_costs_no_torch():
    asked = "import sys, ddpdoctor; print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], env=environment(), capture_output=True, text=True).stdout == "False False\n"
