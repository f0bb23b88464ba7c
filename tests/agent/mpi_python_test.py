# SPDX-License-Identifier: Apache-2.0
"""mpi4py with each MPI found here: the zoo's mismatch and its cycle of sends, with their healthy twins, under `run` and `attach`.

Pythons: this one and those in $MPI_PYTHONS (paths separated by colons); launchers: mpirun next to the Python (MPI from a wheel) and the
system's (mpirun.mpich, mpirun.openmpi, mpirun). A pair is used if two ranks can connect in it. Skipped, with the reason, if there is none."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "zoo"))
import zoo  # noqa: E402

PYTHONS = [sys.executable, *filter(None, os.environ.get("MPI_PYTHONS", "").split(":"))]
CASES = {case["script"]: case for case in json.loads((zoo.HERE / "mpi" / "expected.json").read_text()) if case["script"].endswith(".py")}
ASK = "from mpi4py import MPI; w = MPI.COMM_WORLD; w.rank or print('MPI', w.size, ' '.join(MPI.Get_library_version().replace(',', ' ').split()[:3]))"


def has_mpi4py(python):
    return subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('mpi4py') is None)"]).returncode == 0


def pair(python, launcher):
    """(name of the MPI, words that launch ranks); None if two ranks cannot connect."""
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    words = [launcher, *(["--oversubscribe"] if "Open MPI" in said or "open-mpi" in said else [])]
    variables = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    try:
        done = subprocess.run([*words, "-n", "2", python, "-c", ASK], capture_output=True, text=True, timeout=60, env=variables, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None
    named = re.search(r"^MPI 2 (.*)$", done.stdout, re.MULTILINE)
    return (named[1], words) if done.returncode == 0 and named else None


def pairs():
    found = {}
    for python in filter(has_mpi4py, PYTHONS):
        beside = Path(python).parent / "mpirun"
        for launcher in [str(beside)] if beside.is_file() else filter(shutil.which, ("mpirun.mpich", "mpirun.openmpi", "mpirun")):
            known = pair(python, launcher)
            if known and known[0] not in found:
                found[known[0]] = (python, known[1])
    return found


PAIRS = pairs()


@pytest.mark.skipif(not PAIRS, reason="no mpi4py whose MPI has a launcher here (see $MPI_PYTHONS)")
@pytest.mark.parametrize("mode", ["run", "attach"])
@pytest.mark.parametrize("healthy", [False, True], ids=["", "twin"])
@pytest.mark.parametrize("script", CASES)
@pytest.mark.parametrize("name", PAIRS or ["none"])
def test_names_the_cause_of_a_job_of_mpi4py_and_none_of_its_twin(name, script, healthy, mode):
    if mode == "attach" and CASES[script].get("mode") == "run":
        pytest.skip("only a record shows this cause")
    python, words = PAIRS[name]
    command = f"{' '.join(words)} -n 4 {python} {script} {{healthy}}"
    observe = zoo.run if mode == "run" else zoo.attach
    wrong, output = observe("mpi", {**CASES[script], "launch": "command", "command": command}, healthy, None)
    assert not wrong, "\n".join([*wrong, output or ""])


SINGLETONS = """
import sys
import torch, torch.distributed as dist
from mpi4py import MPI
rank = int(sys.argv[1])
assert MPI.COMM_WORLD.size == 1
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
dist.barrier()
if rank == 1:
    raise ValueError("an empty batch")
dist.all_reduce(torch.ones(1))
"""


def can_train(python):
    return has_mpi4py(python) and subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]).returncode == 0


@pytest.mark.skipif(not any(map(can_train, PYTHONS)), reason="no Python with mpi4py and torch (see $MPI_PYTHONS)")
def test_a_rank_that_is_alone_in_its_mpi_world_keeps_its_rank_in_torch(tmp_path):
    """Lightning imports mpi4py to detect MPI, which makes each of its ranks a world of one."""
    script = tmp_path / "train.py"
    script.write_text(SINGLETONS)
    python = next(filter(can_train, PYTHONS))
    both = f"{python} {script} 0 {tmp_path}/meeting & {python} {script} 1 {tmp_path}/meeting; wait"
    variables = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    variables.update(GLOO_SOCKET_IFNAME="lo", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    reports = tmp_path / "reports"
    subprocess.run([zoo.TOOL, "run", "--always", "--report-dir", reports, "--", "bash", "-c", both], env=variables, cwd=tmp_path, timeout=100,
                   capture_output=True, stdin=subprocess.DEVNULL)
    report = json.loads(next(reports.glob("**/*.json")).read_text())
    assert report["job"]["world_size"] == 2
    assert [(finding["kind"], finding["culprits"]) for finding in report["findings"]][:1] == [("rank-raised", [1])]
