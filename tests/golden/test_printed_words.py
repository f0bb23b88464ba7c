# SPDX-License-Identifier: Apache-2.0
"""Summaries, notes, reasons and fixes as they are printed of every capture and dump here: short, in agreement, in the words of the guide. Sentences that
are put together at run time are no literals that lint could read. Skipped without $DDPDOCTOR."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import golden
import printed

DUMPS = sorted(file.parent for file in (HERE / "dumps").glob("*/expected.json"))
INPUTS = [(capture.parent, [capture.name]) for capture in golden.captures()]
INPUTS += [(folder, [file.name for file in sorted(folder.iterdir()) if file.name != "expected.json" and file.suffix != ".py"]) for folder in DUMPS]


def findings_of(folder, names, target):
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")}
    subprocess.run([os.environ["DDPDOCTOR"], "report", *names, "-o", str(target)], cwd=folder, env={**environment, "LC_ALL": "C"},
                   capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    return json.loads(target.read_text())["findings"]


@pytest.mark.skipif("DDPDOCTOR" not in os.environ, reason="DDPDOCTOR names no ddpdoctor to ask")
@pytest.mark.parametrize("folder,names", INPUTS, ids=lambda value: value.name if isinstance(value, Path) and value != HERE else value[0] if isinstance(value, list) else "")
def test_printed_sentences_follow_the_guide(folder, names, tmp_path):
    assert [problem for finding in findings_of(folder, names, tmp_path / "report.json") for problem in printed.problems(finding)] == []
