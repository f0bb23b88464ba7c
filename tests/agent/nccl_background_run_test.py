# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor run` on jobs whose communicators do not block, with the double: calls that NCCL launched in the background are compared
between ranks like others, and a healthy job has no finding."""
import pytest

import nccl_run_test as nccl

pytestmark = [nccl.pytestmark, pytest.mark.skipif(bool(nccl.REAL), reason="written for the double")]

JOB = """
import os
import time
import thin_nccl as n
rank, byref = int(os.environ["RANK"]), n.ctypes.byref
n.cuda.cudaSetDevice(0)
config, made = (n.ctypes.c_int * 40)(), n.ctypes.c_void_p()
config[4] = 0  # blocking


def ready(handle):
    state = n.ctypes.c_int(7)
    while state.value == 7:
        n.check(n.nccl.ncclCommGetAsyncError(handle, byref(state)))
        time.sleep(0.001)
    n.check(state.value)


n.check(n.nccl.ncclCommInitRankConfig(byref(made), 4, n.shared_id("world", rank), rank, config))
ready(made)
world, stream, data = n.Communicator(handle=made), n.Stream(), n.buffer(65536)
for step in range(4):
    if step == 2 and rank == ODD:
        CALL  # CULPRIT
    else:
        world.all_reduce(data, 65536, "float32", "sum", stream)
    ready(world.handle)
stream.synchronize()
time.sleep(LAST)
n.check(n.nccl.ncclCommFinalize(world.handle))
ready(world.handle)
world.destroy()
"""


def job(call="pass", odd=2, last=0):
    return JOB.replace("CALL", call).replace("ODD", str(odd)).replace("LAST", str(last))


def test_names_the_rank_that_makes_another_call(tmp_path):
    finding, line, done = nccl.diagnose(tmp_path, "", script=job("world.broadcast(data, 64, 'float32', 0, stream)"))
    assert finding, done.stderr
    assert (finding["kind"], finding["culprits"]) == ("mismatched-op", [2]) and line in nccl.lines_of(finding), finding["summary"]


def test_is_silent_about_a_healthy_job(tmp_path):
    finding, _, done = nccl.diagnose(tmp_path, "", script=job(odd=9, last=5))
    assert finding is None and done.returncode == 0, finding or done.stderr


# Ranks that poll NCCL forever for the state of their call, because rank 2 does not make it. `work` returns after some seconds of work.
POLLS = JOB[:JOB.index("n.check(n.nccl.ncclCommInitRankConfig")] + """
half = n.ctypes.c_void_p()


def work(ask=None):
    until = time.monotonic() + 8
    while time.monotonic() < until:
        sum(range(10000))
        if ask is not None:
            n.nccl.ncclCommGetAsyncError(ask, byref(n.ctypes.c_int()))
            time.sleep(0.01)


def init():
    return n.nccl.ncclCommInitRankConfig(byref(made), 4, n.shared_id("world", rank), rank, config)


def split():
    n.check(n.nccl.ncclCommSplit(made, 0, rank, byref(half), None))
    ready(made)


BODY
"""
NEVER_ASKED = {
    "one rank sleeps before init": ("time.sleep(600) if rank == 2 else None  # CULPRIT\nn.check(init())\nready(made)", "missing-rank"),
    "a branch around split": ("n.check(init())\nready(made)\nif rank != 2:  # CULPRIT\n    split()\ntime.sleep(600)", "rank-conditional-collective"),
}
ASKED = {
    "one rank comes late": "work() if rank == 2 else None\nn.check(init())\nready(made)\nsplit()",
    "all work and ask meanwhile": "work() if rank == 2 else None\nn.check(init())\nwork(made)\nready(made)",
    "all have split": "n.check(init())\nready(made)\nsplit()\nwork()",
}


@pytest.mark.parametrize("name", NEVER_ASKED)
def test_ranks_that_ask_for_ever_wait(tmp_path, name):
    """Their lines change and each may use a core: only their polling shows that they wait."""
    body, kind = NEVER_ASKED[name]
    finding, line, done = nccl.diagnose(tmp_path, "", script=POLLS.replace("BODY", body))
    assert finding and done.returncode == 124, done.stderr
    assert (finding["kind"], finding["culprits"], finding["waiting"]) == (kind, [2], [0, 1, 3]), finding["summary"]
    assert line in nccl.lines_of(finding), finding["summary"]


@pytest.mark.parametrize("name", ASKED)
def test_is_silent_about_ranks_that_ask_and_get_an_answer(tmp_path, name):
    finding, _, done = nccl.diagnose(tmp_path, "", script=POLLS.replace("BODY", ASKED[name]))
    assert finding is None and done.returncode == 0, finding or done.stderr
