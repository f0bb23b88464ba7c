# SPDX-License-Identifier: Apache-2.0
"""Stacks of the zoo's jobs dumped by other tools, as text (dumps/NAME: paths rewritten to /app): `ddpdoctor report` must name the kind, the
ranks and the line that attach names. From stacks of one moment a finding is at most possible. Skipped without $DDPDOCTOR."""
import json
import os
import subprocess
from pathlib import Path

import pytest

DUMPS = Path(__file__).resolve().parent / "dumps"
FOLDERS = sorted(file.parent for file in DUMPS.glob("*/expected.json"))


def first_finding(folder, target):
    files = [file.name for file in sorted(folder.iterdir()) if file.name != "expected.json" and file.suffix != ".py"]
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")}
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", *files, "-o", str(target)], cwd=folder, env={**environment, "LC_ALL": "C"},
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stderr
    return json.loads(target.read_text())["findings"][0]


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_dump_is_understood(folder, tmp_path):
    wanted = json.loads((folder / "expected.json").read_text())
    finding = first_finding(folder, tmp_path / "report.json")
    place = (finding.get("locations") or [{}])[0]
    told = {"kind": finding["kind"], "culprits": finding["culprits"], "file": Path(place.get("file") or "").name, "line": place.get("line"),
            "function": place.get("function")}
    assert finding["confidence"] == wanted.pop("confidence", "possible")
    shown = [[Path(one.get("file") or "").name, one.get("line")] for one in finding.get("locations") or []]
    assert [one for one in wanted.pop("also", []) if one not in shown] == []
    assert {key: told[key] for key in wanted} == wanted
