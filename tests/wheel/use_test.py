# SPDX-License-Identifier: Apache-2.0
"""The installed wheel on real hung jobs: attach, run, report."""
import json
import time

import pytest

KIND = "rank-conditional-collective"


def test_attach_names_the_cause(installed, hung_job, tmp_path):
    job = hung_job()
    assert job.wait_ready(False), job.output()
    began = time.monotonic()
    said = installed.run("attach", job.process.pid, "-o", tmp_path / "report.json")
    seconds = time.monotonic() - began
    assert said.returncode == 1, said.stderr
    assert json.loads((tmp_path / "report.json").read_text())["findings"][0]["kind"] == KIND
    assert KIND in said.stdout
    print(f"pip install {installed.seconds:.2f} s, attach {seconds:.2f} s")


@pytest.fixture
def reports(installed, hung_job, tmp_path):
    job = hung_job(str(installed.program), "run", "--hang-timeout", "6", "--on-hang", "kill", "--report-dir", str(tmp_path / "report"), "--")
    assert job.process.wait(120) == 124, job.output()
    assert "without its recording" not in job.output()
    return tmp_path / "report"


def test_run_records_with_the_agent_and_report_reads_it(installed, reports):
    report = json.loads((reports / "report.json").read_text())
    assert report["findings"][0]["kind"] == KIND
    assert any(group["progress"] for group in report["groups"])
    said = installed.run("report", reports / "job.ddpd")
    assert said.returncode == 1 and KIND in said.stdout
