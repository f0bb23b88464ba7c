# SPDX-License-Identifier: Apache-2.0
"""The parts of `./dev test`: a part that fails hides none of the others."""
import os
import signal
import subprocess
import time
from pathlib import Path

DEV = (Path(__file__).resolve().parents[2] / "dev").read_text()
PARTS = DEV[DEV.index("results=() unsteady=()"):DEV.index("# Python tests of these folders")]


def script(*lines):
    return ["bash", "-c", "\n".join(["set -euo pipefail", "say() { :; }", PARTS, *lines])]


def run_parts(*lines, folder=None):
    return subprocess.run(script(*lines), cwd=folder, capture_output=True, text=True, timeout=60)


def test_a_part_that_fails_hides_no_other_and_the_run_fails():
    done = run_parts("part first false", "part second bash -c 'exit 7'", "part third echo it ran", "summary")
    assert "it ran" in done.stdout
    rows = [line.split() for line in done.stderr.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [("FAILED", "first"), ("FAILED", "second"), ("passed", "third")]
    assert "(status 7)" in done.stderr and done.returncode == 1


def test_a_run_of_good_parts_succeeds():
    done = run_parts("part first true", "summary")
    assert done.returncode == 0 and "passed" in done.stderr


def test_the_summary_names_what_passed_only_when_run_again():
    done = run_parts("unsteady=(one::test)", "part first true", "summary")
    assert "failed first, passed when run again: one::test" in done.stderr


LANE = 'other() { results=() unsteady=(); part "b $1" bash -c "touch b; until [ -e a ]; do sleep 0.05; done; echo of b"; part c false; unsteady=(two::test); }'


def test_a_lane_runs_beside_the_other_parts_and_its_results_are_in_the_summary(tmp_path):
    begun = 'bash -c "touch a; until [ -e b ]; do sleep 0.05; done; echo of a"'  # each waits for the other
    done = run_parts(LANE, "start_lane other lane", f"part a {begun}", "end_lane", "summary", folder=tmp_path)
    assert done.stdout == "of a\nof b\n"
    assert [line.split()[3:] for line in done.stderr.splitlines()[:3]] == [["a"], ["b", "lane"], ["c", "(status", "1)"]]
    assert "passed when run again: two::test" in done.stderr and done.returncode == 1


def test_a_lane_that_breaks_off_fails_the_run(tmp_path):
    done = run_parts("other() { kill -KILL $BASHPID; }", "start_lane other", "part a true", "end_lane", "summary", folder=tmp_path)
    assert "parts beside the others (status 137)" in done.stderr and done.returncode == 1


def test_ctrl_c_ends_the_lane(tmp_path):
    # A shell cannot trap a signal that was ignored when it began, as in `./dev test &` of a script.
    run = subprocess.Popen(script("other() { sh -c 'echo $$ >pid; exec sleep 60'; }", "start_lane other", "sleep 50"), cwd=tmp_path, start_new_session=True,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    written = tmp_path / "pid"
    for _ in range(200):
        if written.exists() and written.read_text().strip():
            break
        time.sleep(0.05)
    pid = int(written.read_text())
    os.killpg(run.pid, signal.SIGINT)
    run.wait(20)
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} of the lane goes on")
