# SPDX-License-Identifier: Apache-2.0
"""action.yml and ci/gitlab.yml: their shell steps run here as in the two services, around a real hung job."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from conftest import ROOT, environment, free_port

yaml = pytest.importorskip("yaml")
pytest.importorskip("torch")

ZOO = ROOT / "tests/zoo/rank_conditional_collective"


def command(healthy=""):
    return f"'{sys.executable}' -m torch.distributed.run --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={free_port()} '{ZOO}/train.py' {healthy}"


def filled(text, inputs):
    """The expressions of the action that its steps use."""
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: inputs[found[1]], text)


def action_step(folder, **given):
    """Runs the step `run` with a runner's files; returns exit status, log, outputs and summary."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {**{name: one.get("default", "") for name, one in action["inputs"].items()}, "program": os.environ["DDPDOCTOR"], **given}
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "run")
    assert "${{" not in step["run"]  # an input in the script would be run as shell
    variables = {name: filled(value, inputs) for name, value in step["env"].items()}
    output, summary, script = folder / "output", folder / "summary", folder / "step.sh"
    for file in (output, summary):  # new for each step
        file.write_text("")
    script.write_text(step["run"])
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], cwd=folder, capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL,
                          env=environment(GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(summary), GITHUB_WORKSPACE=str(folder), CI="true", **variables))
    return done, dict(line.split("=", 1) for line in output.read_text().splitlines()), summary.read_text()


def test_the_action_reports_a_hang(tmp_path):
    done, outputs, summary = action_step(tmp_path, command=command(), **{"hang-timeout": "3", "report-dir": "a report"})
    assert done.returncode == 124, done
    assert outputs == {"status": "124", "report-dir": "a report"}
    assert "rank-conditional-collective" in summary and "train.py" in summary
    assert re.search(r"^::error .*file=.*train\.py,line=\d+", done.stdout + done.stderr, re.M), done
    assert (tmp_path / "a report/report.sarif").is_file() and (tmp_path / "a report/job.ddpd").is_file()


def test_the_action_leaves_other_commands_alone(tmp_path):
    done, outputs, summary = action_step(tmp_path, command="echo \"it's $(( 6 * 7 ))\"; exit 5")
    assert (done.returncode, done.stdout) == (5, "it's 42\n"), done
    assert outputs == {"status": "5", "report-dir": "ddpdoctor-report"} and "finished" in summary
    done, outputs, summary = action_step(tmp_path, command="true")
    assert (done.returncode, outputs, summary) == (0, {"status": "0"}, "")


def test_the_action_is_whole():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite" and action["inputs"]["command"]["required"]
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(action["inputs"])
    for step in action["runs"]["steps"]:
        assert ("run" in step and step["shell"] == "bash") != ("uses" in step)


def gitlab(folder, **variables):
    """The lines of `script`, one after the other in one shell, as in a runner."""
    template = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())[".ddpdoctor"]
    tools = folder / "tools"
    tools.mkdir()
    (tools / "ddpdoctor").symlink_to(os.environ["DDPDOCTOR"])
    (folder / "step.sh").write_text("set -eo pipefail\n" + "\n".join(template["script"]))
    done = subprocess.run(["bash", "step.sh"], cwd=folder, capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL,
                          env=environment(GITLAB_CI="true", CI="true", CI_PROJECT_DIR=str(folder), PATH=f"{tools}:{os.environ['PATH']}", **{**template["variables"], **variables}))
    return done, template["artifacts"]


def test_the_gitlab_template_reports_a_hang(tmp_path):
    done, artifacts = gitlab(tmp_path, DDPDOCTOR_COMMAND=command(), DDPDOCTOR_HANG_TIMEOUT="3")
    assert done.returncode == 124, done
    suite = xml.etree.ElementTree.parse(tmp_path / artifacts["reports"]["junit"])
    assert suite.find(".//failure") is not None
    assert all((tmp_path / path).is_dir() for path in artifacts["paths"]) and artifacts["when"] == "always"


def test_the_gitlab_template_leaves_other_commands_alone(tmp_path):
    assert gitlab(tmp_path, DDPDOCTOR_COMMAND="exit 5")[0].returncode == 5


def test_the_gitlab_template_asks_for_a_command(tmp_path):
    done, _ = gitlab(tmp_path)
    assert done.returncode == 2 and "DDPDOCTOR_COMMAND" in done.stderr
