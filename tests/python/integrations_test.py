# SPDX-License-Identifier: Apache-2.0
"""The callbacks in real frameworks: each job of two ranks has a slow healthy half, about which nothing is reported, and then hangs."""
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from conftest import environment
from ddpdoctor.integrations.steps import StepWatch

FRAMEWORKS = Path(__file__).resolve().parent / "frameworks"
CULPRIT = 1 + next(number for number, line in enumerate((FRAMEWORKS / "common.py").read_text().splitlines()) if "# CULPRIT" in line)


@pytest.mark.parametrize("framework, folder", [("lightning", "logs/hung/version_0"), ("transformers", "logs/hung"), ("accelerate", "logs/hung")])
def test_a_hang_is_reported_in_the_log_folder(launch, tmp_path, framework, folder):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"no {framework}")
    shutil.copy(FRAMEWORKS / "common.py", tmp_path)
    job = launch((FRAMEWORKS / f"with_{framework}.py").read_text(), HF_HUB_OFFLINE="1")
    end = time.monotonic() + 90
    while "the report and its recording are in" not in job.log.read_text():
        assert time.monotonic() < end and job.poll() is None, job.log.read_text()
        time.sleep(0.2)
    said = job.log.read_text()
    assert said.count("HEALTHY 0 reports") == 2, said
    reports = list(tmp_path.rglob("report.json"))
    assert len(reports) == 1 and reports[0].parent.parent == tmp_path / folder / "ddpdoctor", reports
    assert {file.name for file in reports[0].parent.iterdir()} == {"report.json", "report.html", "report.md", "job.ddpd"}
    finding = json.loads(reports[0].read_text())["findings"][0]
    assert (finding["kind"], finding["culprits"], finding["waiting"]) == ("rank-conditional-collective", [1], [0])
    assert Path(finding["locations"][0]["file"]).name == "common.py" and finding["locations"][0]["line"] == CULPRIT
    assert len(re.findall(r"^error: ", said, re.M)) == 1 and job.poll() is None


def test_importing_them_loads_no_framework():
    asked = ("import sys, ddpdoctor, ddpdoctor.integrations, ddpdoctor.integrations.steps, ddpdoctor.integrations.accelerate, ddpdoctor.integrations.ray_train\n"
             "print(sorted({'torch', 'numpy', 'lightning', 'pytorch_lightning', 'transformers', 'accelerate', 'ray'} & set(sys.modules)))")
    said = subprocess.run([sys.executable, "-c", asked], env=environment(), capture_output=True, text=True)
    assert said.stdout == "[]\n", said


def test_each_report_has_a_folder_of_its_own(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "report.json").write_text("{}")
    with StepWatch(1000, tmp_path / "logs") as watch:
        first, second = watch._save(files), watch._save(files)
    assert first != second and first.parent == second.parent == tmp_path / "logs/ddpdoctor"
    assert first.name.endswith("-1") and second.name.endswith("-2") and (second / "report.json").read_text() == "{}"


def test_a_folder_that_cannot_be_written_costs_the_files_only(tmp_path, capsys):
    import ddpdoctor
    (tmp_path / "logs").write_text("a file, not a folder")
    with StepWatch(1000, tmp_path / "logs", on_hang=lambda *_: pytest.fail("told without a folder")) as watch:
        watch._files = tempfile.TemporaryDirectory()
        watch._save_and_tell(ddpdoctor.Report(verdict="hang", text="rank 1 called barrier"))
    said = capsys.readouterr().err
    assert "rank 1 called barrier" in said and "could not be written" in said


def test_a_timeout_must_be_positive(tmp_path):
    with pytest.raises(ValueError):
        StepWatch(0, tmp_path)
