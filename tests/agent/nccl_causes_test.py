# SPDX-License-Identifier: Apache-2.0
"""Causes that occur only in jobs on GPUs, from the call to the finding: `ddpdoctor run` with the double of NCCL and CUDA
(tests/doubles/nccl). A GPU that reports a fault is not tested here: it is known from the kernel's log,
tests/unit/detectors/gpu_fault_test.cc.

Needs the target nccl_doubles next to $DDPDOCTOR."""
import pytest

import nccl_probe_test as nccl
import nccl_run_test as jobs

pytestmark = [nccl.pytestmark, pytest.mark.skipif(bool(jobs.REAL), reason="faults of the double")]


def first(tmp_path, script, **more):
    finding, line, done = jobs.diagnose(tmp_path, "", script=script, **more)
    assert finding, done.stdout + done.stderr
    return finding, line


def test_a_transport_that_stands_still_is_nobodys_fault(tmp_path):
    finding, _, done = jobs.diagnose(tmp_path, jobs.USUAL, NCCL_DOUBLE_STALLS_AT="3")
    assert finding and (finding["kind"], finding["culprits"], finding["waiting"]) == ("gpu-stalled", [], [0, 1, 2, 3]), done.stdout


# Rank 2 forgot set_device; what it allocates is on rank 0's GPU.
WRONG_DEVICE = """
import time
import thin_nccl
rank = int(thin_nccl.os.environ["LOCAL_RANK"])
thin_nccl.ctypes.CDLL(str(thin_nccl.FOLDER / "libcuda_user.so")).use_device(0 if rank == 2 else rank)  # CULPRIT
world, stream, data = thin_nccl.Communicator(), thin_nccl.Stream(), thin_nccl.buffer(64)
world.all_reduce(data, 64, "float32", "sum", stream)
stream.synchronize()
if rank == 2:
    time.sleep(600)
world.all_reduce(data, 64, "float32", "sum", stream)
stream.synchronize()
"""


def on_wrong_devices(tmp_path, script):
    _, line, _ = jobs.diagnose(tmp_path, "", script=script)
    findings = jobs.json.loads((tmp_path / "report" / "report.json").read_text())["findings"]
    assert findings and line
    return [(finding["culprits"], line in jobs.lines_of(finding)) for finding in findings if finding["kind"] == "wrong-device"]


def test_a_rank_on_the_gpu_of_another_is_named(tmp_path):
    assert on_wrong_devices(tmp_path, WRONG_DEVICE) == [([2], True)]


@pytest.mark.parametrize("device", ["rank", "0"], ids=["each has its own", "each sees one only"])
def test_ranks_on_their_own_gpus_are_not(tmp_path, device):
    assert on_wrong_devices(tmp_path, WRONG_DEVICE.replace("0 if rank == 2 else rank", device)) == []


# A child of fork uses CUDA, which blocks there; its rank waits for the child, the others for the rank.
FORKS = """
import os
import time
import thin_nccl
user = thin_nccl.ctypes.CDLL(str(thin_nccl.FOLDER / "libcuda_user.so"))
user.use_device(0)
world, stream, data = thin_nccl.Communicator(), thin_nccl.Stream(), thin_nccl.buffer(64)
world.all_reduce(data, 64, "float32", "sum", stream)
stream.synchronize()


def load():
    user.use_device(0)  # CULPRIT
    time.sleep(600)


if world.rank == 2:
    child = os.fork()
    if child == 0:
        load()
        os._exit(0)
    os.waitpid(child, 0)
world.all_reduce(data, 64, "float32", "sum", stream)
stream.synchronize()
"""


def test_a_forked_child_that_uses_cuda_is_named(tmp_path):
    finding, line = first(tmp_path, FORKS)
    assert (finding["kind"], finding["culprits"]) == ("fork-after-cuda", [2]), finding["summary"]
    assert line in jobs.lines_of(finding), finding["locations"]


# cudaFree waits for the kernel of one communicator; that kernel waits for ranks that first need the other communicator, which this rank
# calls after cudaFree.
FREES = """
import thin_nccl as n
world, other = n.Communicator(), n.Communicator("other")
one, two, data, more = n.Stream(), n.Stream(), n.buffer(65536), n.buffer(64)
for step in range(4):
    if world.rank == 2:
        world.all_reduce(data, 65536, "float32", "sum", one)
        if step == FREED:
            n.cuda.cudaFree(more)  # CULPRIT
        other.all_reduce(data, 65536, "float32", "sum", two)
    else:
        other.all_reduce(data, 65536, "float32", "sum", two)
        two.synchronize()
        world.all_reduce(data, 65536, "float32", "sum", one)
    one.synchronize()
    two.synchronize()
"""


def test_a_call_that_waits_for_the_whole_device_is_named(tmp_path):
    finding, line = first(tmp_path, FREES.replace("FREED", "2"))
    assert (finding["kind"], finding["culprits"]) == ("cuda-implicit-sync", [2]), finding["summary"]
    assert line in jobs.lines_of(finding), finding["locations"]


def test_two_communicators_on_two_streams_are_no_cause(tmp_path):
    finding, _, done = jobs.diagnose(tmp_path, "", script=FREES.replace("FREED", "9"))
    assert finding is None and done.returncode == 0, finding or done.stderr
