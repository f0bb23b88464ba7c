# SPDX-License-Identifier: Apache-2.0
"""The parts of `./dev test`: a part that fails hides none of the others."""
import subprocess
from pathlib import Path

DEV = (Path(__file__).resolve().parents[2] / "dev").read_text()
PARTS = DEV[DEV.index("results=() unsteady=()"):DEV.index("# Python tests of these folders")]


def run_parts(*lines):
    script = "\n".join(["set -euo pipefail", "say() { :; }", PARTS, *lines])
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)


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
