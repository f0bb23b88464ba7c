# SPDX-License-Identifier: Apache-2.0
"""A rank that ends before anything was recorded leaves a ring that says so; its children, and processes that are not ranks, leave none."""
import os
import shutil
import struct
import sys

import pytest

from guest import behaviour, needs_agent
from rings import rings

pytestmark = needs_agent

ENDS = {"sys.exit(3)": 3, "os._exit(3)": 3, "pass": 0}
BATCH = {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}


@pytest.fixture
def spool(tmp_path):
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def run(command, spool, **environment):
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    return behaviour(command, spool=spool, environment={**kept, **environment})[0]


def python(code, spool, **environment):
    return run([sys.executable, "-c", "import os, subprocess, sys\n" + code], spool, **environment)


def told(spool):
    """(rank, exit status) of each ring, in order of rank."""
    return sorted((struct.unpack_from("<i", ring.data, 32)[0], [event.count for event in ring.events if event.kind == "exit"]) for ring in rings(spool).values())


@pytest.mark.parametrize("end", ENDS)
def test_a_rank_that_leaves_at_once_says_how(spool, end):
    assert python(end, spool, RANK="3", WORLD_SIZE="4") == ENDS[end]
    assert told(spool) == [(3, [ENDS[end]])]


def test_the_line_of_an_immediate_exit_is_kept(spool):
    python("\nos._exit(0)", spool, RANK="3")
    assert [event.line for event in next(iter(rings(spool).values())).events if event.kind == "exit"] == [3]


@pytest.mark.parametrize("environment, rank", [(BATCH, 1), ({"LOCAL_RANK": "2", "WORLD_SIZE": "4"}, 2), ({**BATCH, "RANK": "0"}, 0)])
def test_other_launchers_name_ranks_too(spool, environment, rank):
    python("pass", spool, **environment)
    assert told(spool) == [(rank, [0])]


@pytest.mark.parametrize("environment", [{}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, {"RANK": "first"}])
def test_who_carries_no_rank_leaves_no_ring(spool, environment):
    python("pass", spool, **environment)
    assert not rings(spool)


def test_programs_other_than_python_leave_no_ring(spool):
    run([shutil.which("true")], spool, RANK="3")
    run([shutil.which("bash"), "-c", "(exit 1); true"], spool, RANK="3")
    assert not rings(spool)


def test_a_rank_below_a_shell_that_carries_rank_is_told(spool):
    run([shutil.which("bash"), "-c", f"{sys.executable} -c pass; true"], spool, RANK="3")
    assert told(spool) == [(3, [0])]


def test_programs_and_children_of_a_rank_leave_no_ring(spool):
    python("subprocess.run([sys.executable, '-c', 'pass'])\nsubprocess.run(sys.executable + ' -c pass; true', shell=True)\n"
           "if os.fork() == 0: os._exit(0)\nos.wait()", spool, RANK="3", LOCAL_RANK="1")
    assert told(spool) == [(3, [0])]


def test_a_launcher_that_carries_rank_itself_hides_no_rank(spool):
    python("subprocess.run([sys.executable, '-c', 'pass'], env={**os.environ, 'LOCAL_RANK': '0'})\nos.kill(os.getpid(), 9)", spool, RANK="0")
    assert told(spool) == [(0, [0])]


def test_forked_ranks_that_name_themselves_are_told_and_their_children_are_not(spool):
    python("for rank in range(2):\n  if os.fork() == 0:\n    os.environ['RANK'] = str(rank)\n    if os.fork() == 0: os._exit(0)\n"
           "    os.wait(); os._exit(rank)\nos.wait(); os.wait()", spool)
    assert told(spool) == [(0, [0]), (1, [1])]
