# SPDX-License-Identifier: Apache-2.0
"""What ddpdoctor recorded of jobs over NCCL on one H200 (torch 2.11.0, NCCL 2.28.9, driver 580.159, 2026-11-26), judged as the zoo judges a job
that it started itself: those of tests/gpu/jobs under `run` and `attach`, and the zoo's own scripts under `attach` (zoo-FOLDER-SCRIPT)
or `run` (zoorun-); cupti- is `run` with DDPDOCTOR_CUPTI=always. Paths of
that machine were replaced by others; sources and calls are as recorded. docs/support.md says which jobs of that day are not answered right."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "zoo"))
from cases import cases, told_cases  # noqa: E402
from judge import problems  # noqa: E402

RECORDINGS = sorted((HERE / "hardware").glob("*.json.gz"))
JOBS = os.path.relpath(HERE.parent / "gpu" / "jobs", HERE.parent / "zoo")
GPU = {Path(case["script"]).stem: (JOBS, case) for case in told_cases(HERE.parent / "gpu" / "jobs")}
MODES = {"zoo": "attach", "zoorun": "run", "cupti": "run"}
ZOO = {f"{folder}-{case['script'].replace('/', '_')}": (folder, case) for folder, case in cases([], False)}


def case_of(name):
    """(folder, case, mode, healthy) of a recording."""
    mode, _, job = name.partition("-")
    healthy = job.endswith("-twin")
    job = job.removesuffix("-twin")
    folder, case = ZOO[job] if mode.startswith("zoo") else GPU[job]
    of_gpus = case.get("simulated", {})
    return folder, {**case, **(of_gpus if isinstance(of_gpus, dict) else {})}, MODES.get(mode, mode), healthy


def test_there_are_recordings():
    assert len(RECORDINGS) > 100


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_names_the_cause_of_a_recorded_job_and_none_of_its_twin(recording, tmp_path):
    folder, case, mode, healthy = case_of(recording.name.removesuffix(".json.gz"))
    done = subprocess.run([os.environ["DDPDOCTOR"], "report", str(recording), "-o", str(tmp_path / "report.json")], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    wrong = problems(folder, case, healthy, json.loads((tmp_path / "report.json").read_text()), None, mode)
    assert not wrong, "\n".join([*wrong, done.stdout])


def report_on(recording, target):
    subprocess.run([os.environ["DDPDOCTOR"], "report", str(recording), "-o", str(target)], capture_output=True, timeout=60)
    return json.loads(target.read_text())["findings"][0]


def test_names_the_kernel_that_only_one_rank_launched(tmp_path):
    said = report_on(HERE / "hardware" / "cupti-queued_behind_kernel.json.gz", tmp_path / "report.json")
    assert any(one["text"] == "since its collective before, only rank 1 launched at::cuda::(anonymous)::spin_kernel" for one in said["evidence"])


def test_reads_what_ras_of_nccl_2_32_said(tmp_path):
    said = report_on(HERE / "hardware" / "ras-2.32.3.json", tmp_path / "report.json")
    assert (said["kind"], said["culprits"]) == ("missing-rank", [1])
