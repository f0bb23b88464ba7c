# SPDX-License-Identifier: Apache-2.0
"""Real MPI jobs under the agent: healthy ones behave as without it, and their calls are in their rings. Skipped, with the reason, if no MPI
is installed. The programs are those of tests/zoo/mpi, where the hung ones are judged.

$MPI_COMPILERS: paths of more compilers, separated by colons, each with its mpirun next to it (mpicc_abi of the wheel `mpich`: the MPI-5
ABI)."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ZOO = HERE.parent / "zoo" / "mpi"
TOOL = Path(os.environ.get("DDPDOCTOR", ""))
PROGRAM = TOOL / "ddpdoctor" if TOOL.is_dir() else TOOL
AGENT = PROGRAM.parent / "libddpdoctor_agent.so"
# Compiler and launcher by name: the names that Debian uses for several MPIs on one machine, and the plain ones.
PAIRS = {suffix: ("mpicc" + suffix, "mpirun" + suffix) for suffix in (".openmpi", ".mpich")}
PAIRS = {name: pair for name, pair in PAIRS.items() if all(map(shutil.which, pair))}
if not PAIRS and shutil.which("mpicc") and shutil.which("mpirun"):
    PAIRS[""] = ("mpicc", "mpirun")
for compiler in filter(None, os.environ.get("MPI_COMPILERS", "").split(":")):
    PAIRS["." + Path(compiler).name] = (compiler, str(Path(compiler).parent / "mpirun"))
FAMILIES = list(PAIRS)

pytestmark = [pytest.mark.skipif(not AGENT.is_file(), reason="no libddpdoctor_agent.so beside $DDPDOCTOR"),
              pytest.mark.skipif(not FAMILIES, reason="no MPI: neither mpicc nor mpirun")]


def mpirun(family):
    launcher = PAIRS[family][1]
    text = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    return [launcher, *(["--oversubscribe"] if "Open MPI" in text or "open-mpi" in text else [])]


def environment(spool=None):
    variables = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")}
    variables.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1")
    if spool is not None:
        variables.update(LD_PRELOAD=str(AGENT), DDPDOCTOR_SPOOL=str(spool))
    return variables


def build(family, source, folder):
    program = folder / (source.stem + family)
    subprocess.run([PAIRS[family][0], "-g", "-pthread", "-I", str(ZOO), "-o", str(program), str(source)], check=True)
    return program


CALLS = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, flag = 0, got = -1, code;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double x = rank, y = 0, all[8];
  MPI_Request request, pair[2];
  MPI_Comm half, copy;
  MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : &x, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Ibcast(&y, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD, &request);
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &pair[0]);
  MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &pair[1]);
  MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  MPI_Comm_dup(half, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  code = MPI_Bcast(&x, 1, MPI_DOUBLE, size + 5, MPI_COMM_WORLD);
  int code_null = MPI_Barrier(MPI_COMM_NULL);
  printf("%d %g %d %d %d\n", rank, x, got, code != MPI_SUCCESS, code_null != MPI_SUCCESS);
  MPI_Finalize();
  return rank == 1 ? 7 : 0;
}
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_healthy_job_prints_returns_and_fails_as_without_the_agent(family, tmp_path):
    source = tmp_path / "calls.c"
    source.write_text(CALLS)
    program = build(family, source, tmp_path)
    spool = tmp_path / "spool"
    spool.mkdir()
    seen = []
    for variables in (environment(), environment(spool)):
        done = subprocess.run([*mpirun(family), "-n", "4", str(program)], env=variables, capture_output=True, text=True, timeout=120)
        lines = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
        seen.append((done.returncode, sorted(lines)))
    assert seen[0] == seen[1]
    assert len(seen[0][1]) == 4 and all(line.endswith("1 1") for line in seen[0][1])
    rings = [file.read_bytes() for file in spool.glob("*.ring")]
    worlds = [ring for ring in rings if b"MPI_COMM_WORLD\0" in ring]
    assert len(worlds) == 4
    # members of one half give their communicator one name, the two halves different ones
    halves = [{name for name in (b"MPI_COMM_WORLD.4:0\0", b"MPI_COMM_WORLD.4:1\0") if name in ring} for ring in worlds]
    assert sorted(next(iter(h)) for h in halves if len(h) == 1) == [b"MPI_COMM_WORLD.4:0\0"] * 2 + [b"MPI_COMM_WORLD.4:1\0"] * 2


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mismatch_names_rank_and_line_of_a_c_program(family, tmp_path):
    program = build(family, ZOO / "mismatched_op.c", tmp_path)
    done = subprocess.run([str(PROGRAM), "run", "--hang-timeout", "4", "--on-hang", "kill", "--always", "--report-dir", str(tmp_path / "r"), "--",
                           *mpirun(family), "-n", "4", str(program)], env=environment(), capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, start_new_session=True)
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    first = report["findings"][0]
    marked = [n for n, line in enumerate((ZOO / "mismatched_op.c").read_text().splitlines(), 1) if "// CULPRIT" in line]
    assert (first["kind"], first["culprits"]) == ("mismatched-op", [2]), done.stdout + done.stderr
    assert first["locations"][0]["line"] in marked and first["locations"][0]["file"].endswith("mismatched_op.c")


def busy():
    return subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rank_that_died_is_named_and_not_those_that_the_launcher_killed(family, tmp_path):
    """On a loaded machine MPICH's launcher sometimes detects the death by a closed socket, kills the others and waits for all in the order
    of their pids: then the first end is not the first death."""
    program = build(family, ZOO / "dead_rank.c", tmp_path)
    load = [busy() for _ in range(3)]
    try:
        for attempt in range(4):
            report = tmp_path / f"r{attempt}"
            done = subprocess.run([str(PROGRAM), "run", "--hang-timeout", "4", "--on-hang", "kill", "--always", "--report-dir", str(report), "--",
                                   *mpirun(family), "-n", "4", str(program)], env=environment(), capture_output=True, text=True, timeout=120,
                                  stdin=subprocess.DEVNULL, start_new_session=True)
            first = json.loads((report / "report.json").read_text())["findings"][0]
            assert (first["kind"], first["culprits"]) == ("dead-rank", [1]), done.stdout + done.stderr
    finally:
        for process in load:
            process.kill()
            process.wait()
