# SPDX-License-Identifier: Apache-2.0
"""Recordings of projects of several files over NCCL on one H200 (torch 2.11.0, NCCL 2.28.9, 2026-11-27); run-captioner and attach-wallclock are over
gloo (torch 2.13.0, the same day). Their writers had not read the sources of ddpdoctor. Before the first run, each writer put the answer into
projects/expected.json: the kinds, the ranks ([] = no rank is to blame) and the lines that are right; the first finding must have one of each.
{} = the project without its mistake: no finding may be more than possible. The paths of the machine were replaced."""
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
def test_names_the_cause_and_the_line(name, tmp_path):
    wanted, first = EXPECTED[name], findings_of(name, tmp_path / "report.json")[0]
    assert first["kind"] in wanted["kinds"], first["summary"]
    assert first["culprits"] in wanted["culprits"], first["summary"]
    places = {f"{Path(place.get('file') or '').name}:{place.get('line')}" for place in first["locations"]}
    assert places & set(wanted["places"]), first["locations"]


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("name", [name for name, wanted in EXPECTED.items() if not wanted])
def test_accuses_no_rank_in_a_healthy_project(name, tmp_path):
    loud = [one["summary"] for one in findings_of(name, tmp_path / "report.json") if one["confidence"] != "possible"]
    assert not loud
