# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor run` over jobs whose communicators do not block, against the double: calls that NCCL launched in the background are compared
between ranks as others are, and a healthy job has no finding."""
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
