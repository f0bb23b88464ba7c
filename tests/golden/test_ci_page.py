# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/ci.md: every command is run on a job that hangs, and what the page promises about it is checked. YAML is parsed if
Python can. Skipped without $DDPDOCTOR, and if Python has no torch."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = os.environ.get("DDPDOCTOR", "")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ci.md").read_text()
BLOCKS = {language: text for language, text in re.findall(r"## .*?\n```(\w+)\n(.*?)```", PAGE, re.S) if language != "yaml"}
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)

pytestmark = [pytest.mark.skipif(not TOOL, reason="DDPDOCTOR names no ddpdoctor to ask"),
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="this Python has no torch")]

HUNG = """import torch, torch.distributed as dist
dist.init_process_group("gloo")
data = torch.ones(4)
if dist.get_rank() == 0:
    dist.broadcast(data, 0)
else:
    dist.all_reduce(data)
"""

TESTS = """import pytest, torch, torch.distributed as dist

@pytest.fixture(scope="session", autouse=True)
def group():
    dist.init_process_group("gloo")
    yield
    dist.destroy_process_group()

def test_sum():
    data = torch.ones(4)
    assert dist.get_rank() == 0, "only rank 0 passes"
    dist.all_reduce(data)

def test_next():
    data = torch.ones(8)
    dist.broadcast(data, 0)
"""


def commands():
    """Every `ddpdoctor run` of the page, as a shell command."""
    found = re.findall(r"(?:^|[:'\s])\s*(ddpdoctor run --ci [^\n']+)", "\n".join([*WORKFLOWS, *BLOCKS.values()]), re.M)
    return sorted(set(found))


def shell(command, folder, **more):
    """With ddpdoctor and torchrun in front of the PATH, as a CI image has them."""
    programs = folder / "bin"
    if not programs.exists():
        programs.mkdir()
        (programs / "ddpdoctor").symlink_to(TOOL)
        (programs / "torchrun").write_text(f'#!/bin/sh\nexec {sys.executable} -m torch.distributed.run "$@"\n')
        (programs / "torchrun").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(["sh", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ci")
    (folder / "tests" / "distributed").mkdir(parents=True)
    (folder / "tests" / "train_smoke.py").write_text(HUNG)
    (folder / "tests" / "distributed" / "test_sum.py").write_text(TESTS)
    return folder


@pytest.fixture(scope="module")
def smoke(workspace):
    """The report folder of the smoke test, after it hung."""
    shared = [command for command in commands() if "train_smoke.py" in command]
    assert len(shared) == 1, shared
    done = shell(shared[0], workspace)
    assert done.returncode == 124, done.stderr[-2000:]
    return workspace / "report"


def test_the_page_has_an_example_for_each_system():
    assert len(WORKFLOWS) == 3 and {"groovy", "sh"} <= set(BLOCKS)
    assert len(commands()) == 2


def test_the_folder_has_what_the_table_says(smoke):
    promised = re.findall(r"`((?:report|job)\.\w+)`", PAGE[:PAGE.index("## GitHub")])
    assert set(promised) <= {file.name for file in smoke.iterdir()}


def test_the_recording_says_what_the_run_said(smoke, workspace):
    for ending in ("json", "html", "md", "sarif", "xml"):
        done = shell(f"ddpdoctor report report/job.ddpd -o again.{ending}", workspace)
        assert done.returncode == 1, done.stderr
        assert (workspace / f"again.{ending}").read_bytes() == (smoke / f"report.{ending}").read_bytes(), ending


def test_commands_on_the_recording_work(smoke, workspace):
    later = re.findall(r"`(ddpdoctor report report/job\.ddpd [^`]+)`", PAGE)
    assert len(later) == 2
    summary = workspace / "summary.md"
    for command in later:
        done = shell(command, workspace, GITHUB_STEP_SUMMARY=str(summary))
        assert done.returncode == 1, done.stderr
        assert "GITHUB_STEP_SUMMARY" in command or re.search(r"^::error file=tests/train_smoke.py,line=\d+", done.stdout, re.M), done.stdout
    assert "mismatched-op" in summary.read_text()


def test_workflows_are_yaml_and_name_files_that_are_written(smoke):
    yaml = pytest.importorskip("yaml")
    action, upload, gitlab = (yaml.safe_load(text) for text in WORKFLOWS)  # their steps run in tests/python/ci_templates_test.py
    assert "train_smoke.py" in action[0]["with"]["command"] and (smoke / Path(upload[0]["with"]["sarif_file"]).name).is_file()
    assert gitlab["smoke"]["extends"] == ".ddpdoctor" and "train_smoke.py" in gitlab["smoke"]["variables"]["DDPDOCTOR_COMMAND"]


def test_jenkins_names_files_that_are_written(smoke):
    assert BLOCKS["groovy"].count("{") == BLOCKS["groovy"].count("}")
    named = re.findall(r"testResults: '([^']+)'", BLOCKS["groovy"])
    assert named and all((smoke.parent / file).is_file() for file in named)


def test_pytest_under_torchrun_names_both_lines(workspace):
    command = next(command for command in commands() if "-m pytest" in command)
    shutil.rmtree(workspace / "report", ignore_errors=True)
    done = shell(command, workspace)
    assert done.returncode == 124, done.stderr[-2000:]
    finding = json.loads((workspace / "report" / "report.json").read_text())["findings"][0]
    assert finding["kind"] == "mismatched-op"
    assert {location["function"] for location in finding["locations"]} == {"test_sum", "test_next"}
