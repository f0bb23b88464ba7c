# SPDX-License-Identifier: Apache-2.0
"""What ddpdoctor recorded of projects of several files by writers who had not read its sources, over NCCL on one H200 (torch 2.11.0, NCCL 2.28.9,
2026-11-27). projects/expected.json has what the writer expected before the first run: kinds, ranks ([] = nobody is to blame) and lines, of which one
must be named. {} = the project without its mistake: nothing may be likely. Paths of that machine were replaced by others."""
import json
import os
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "projects"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def findings_of(name, target):
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", str(FOLDER / f"{name}.json.gz"), "-o", str(target)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(target.read_text())["findings"]


def test_every_recording_has_an_expectation():
    assert sorted(EXPECTED) == sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("name", [name for name, wanted in EXPECTED.items() if wanted])
def test_names_the_cause(name, tmp_path):
    wanted, first = EXPECTED[name], findings_of(name, tmp_path / "report.json")[0]
    assert first["kind"] in wanted["kinds"], first["summary"]
    assert first["culprits"] in wanted["culprits"], first["summary"]
    places = {f"{Path(place.get('file') or '').name}:{place.get('line')}" for place in first["locations"]}
    assert places & set(wanted["places"]), first["locations"]


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("name", [name for name, wanted in EXPECTED.items() if not wanted])
def test_accuses_nobody_in_a_healthy_project(name, tmp_path):
    loud = [one["summary"] for one in findings_of(name, tmp_path / "report.json") if one["confidence"] != "possible"]
    assert not loud
