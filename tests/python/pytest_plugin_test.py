# SPDX-License-Identifier: Apache-2.0
"""pytest --ddpdoctor on tests that start ranks, alone and with common other plugins."""
import importlib.util
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

from conftest import environment

torch = pytest.importorskip("torch")

RANKS = '''
import os, time
import torch, torch.distributed as dist, torch.multiprocessing as mp

def rank_main(rank, port, hang):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    for step in range(3):
        dist.all_reduce(torch.ones(4))
    if rank == 0 and hang:
        dist.barrier()  # CULPRIT
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
'''
SPAWNED = RANKS + '''
def test_trains():
    print("said before it hung")
    mp.spawn(rank_main, args=(RENDEZVOUS, True), nprocs=2)

def test_after_it():
    pass
'''
HEALTHY = RANKS + '''
def test_trains():
    mp.spawn(rank_main, args=(RENDEZVOUS, False), nprocs=2)
    time.sleep(5)
'''
MULTIPROCESS = '''
import os, sys
import torch, torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase

class TestRanks(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def test_trains(self):
        store = dist.FileStore(self.file_name, 2)
        dist.init_process_group("gloo", rank=self.rank, world_size=2, store=store)
        for step in range(3):
            dist.all_reduce(torch.ones(4))
        if self.rank == 0:
            dist.barrier()  # CULPRIT
        dist.all_reduce(torch.ones(4))
'''
EACH_RANK = '''
import torch, torch.distributed as dist

def test_trains():
    dist.init_process_group("gloo")
    for step in range(3):
        dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 0:
        dist.barrier()  # CULPRIT
    dist.all_reduce(torch.ones(4))
'''


def has(module):
    return importlib.util.find_spec(module) is not None


def run_pytest(folder, text, *words, before=(), limit=150, ci=""):
    port = environment()["MASTER_PORT"]
    (folder / "test_ranks.py").write_text(text.replace("RENDEZVOUS", port))
    log = folder / "log"
    variables = {**{name: value for name, value in environment().items() if name not in ("CI", "BUILD_NUMBER")}, **({"CI": ci} if ci else {})}
    with open(log, "wb") as file:
        process = subprocess.Popen([sys.executable, *before, "-m", "pytest", "-p", "ddpdoctor.pytest_plugin", "-p", "no:cacheprovider", "-q", *words,
                                    "test_ranks.py"], cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(limit)
        finally:
            left = session(process.pid)
            for pid in [*left, process.pid]:
                try:
                    os.kill(pid, 9)
                except OSError:
                    pass
            process.wait()
    return status, log.read_text(errors="replace"), left


def session(leader):
    """Processes that the test left behind; those of torch that end by themselves get a moment."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../zoo"))
    import jobs
    end = time.monotonic() + 5
    while time.monotonic() < end and [pid for pid in jobs.session(leader) if pid != leader and jobs.alive(pid)]:
        time.sleep(0.1)
    return [pid for pid in jobs.session(leader) if pid != leader and jobs.alive(pid)]


def names_the_cause(text, reports=(1,)):
    """True if this many reports name the culprit's line; torch's `self.rank` may be any decision."""
    return re.search(r"\[(rank-conditional-collective|divergent-branch), (certain|likely)\]", text) and text.count("More: ddpdoctor explain") in reports and \
        re.search(r"test_ranks\.py:\d+ +dist.barrier", text)


@pytest.mark.parametrize("ci", ["", "true"])  # where CI is set, pytest does not shorten its summary
def test_a_test_that_hangs_fails_with_the_report(tmp_path, ci):
    status, said, left = run_pytest(tmp_path, SPAWNED, "--ddpdoctor=3", "--junitxml=junit.xml", ci=ci)
    assert status == 1, said
    assert "1 failed, 1 passed" in said and names_the_cause(said)
    assert ("FAILED test_ranks.py::test_trains - the test hangs: rank 0 called barrier" if ci else "the test hangs") in said, said
    assert "said before it hung" in said
    failure = xml.etree.ElementTree.parse(tmp_path / "junit.xml").find(".//failure")
    assert failure.get("message").startswith("the test hangs: rank 0") and names_the_cause(failure.text)
    assert not left


def test_a_long_test_that_moves_passes(tmp_path):
    status, said, _ = run_pytest(tmp_path, HEALTHY, "--ddpdoctor=1")
    assert status == 0, said


@pytest.mark.skipif(not has("expecttest"), reason="torch's test cases need expecttest")
def test_torchs_own_test_case(tmp_path):
    status, said, left = run_pytest(tmp_path, MULTIPROCESS, "--ddpdoctor=4")
    assert status == 1, said
    assert "1 failed" in said and names_the_cause(said)
    assert not left


@pytest.mark.skipif(not has("pytest_timeout"), reason="no pytest-timeout")
@pytest.mark.parametrize("method", ["signal", "thread"])
def test_beside_pytest_timeout(tmp_path, method):
    status, said, left = run_pytest(tmp_path, SPAWNED, "--ddpdoctor=3", "--timeout=100", "--timeout-method=" + method)
    assert status == 1, said
    assert "1 failed, 1 passed" in said and names_the_cause(said) and "Timeout" not in said
    assert not left


@pytest.mark.skipif(not has("xdist"), reason="no pytest-xdist")
def test_beside_xdist(tmp_path):
    status, said, left = run_pytest(tmp_path, SPAWNED, "--ddpdoctor=3", "-n", "2")
    assert status == 1, said
    assert "1 failed, 1 passed" in said and names_the_cause(said)
    assert not left


def test_ranks_that_run_the_tests_themselves(tmp_path):
    """Each rank is a pytest; its main thread is in gloo, which no signal interrupts."""
    port = environment()["MASTER_PORT"]
    status, said, left = run_pytest(tmp_path, EACH_RANK, "--ddpdoctor=4", before=("-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={port}",
                                                                                  "--master_addr=127.0.0.1"))
    assert status != 0
    assert "the test hangs" in said and names_the_cause(said, reports=(1, 2)), said  # each rank may report it
    assert not left


def test_seconds_must_be_positive(tmp_path):
    status, said, _ = run_pytest(tmp_path, EACH_RANK, "--ddpdoctor=0")
    assert status == 4 and "more than 0 seconds" in said
