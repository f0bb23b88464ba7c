# SPDX-License-Identifier: Apache-2.0
"""libddpdoctor_cupti.so under the agent: with a double of CUPTI over the double of the driver, with the real libcupti but without a driver,
and without any. No GPU: these tests say nothing about hardware."""
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import nccl_probe_test as nccl
from nccl_probe_test import BUILD, DOUBLES, rings_of

PLUGIN = BUILD / "libddpdoctor_cupti.so"
CUPTI = DOUBLES / "cupti"
WINDOW, KERNEL, WAIT = 24, 25, 26
OF_HOST, ENDS_ARE_TOLD = 1, 2
pytestmark = [*([nccl.pytestmark] if not isinstance(nccl.pytestmark, list) else nccl.pytestmark),
              pytest.mark.skipif(not PLUGIN.is_file(), reason="no libddpdoctor_cupti.so beside $DDPDOCTOR: built where CUPTI's headers are")]

# A long kernel runs on one stream; the all_reduce waits for it through an event on another one; the host waits for that stream.
QUEUED = """
import threading
driver = n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1"))
w, compute, talk = n.Communicator(), n.Stream(), n.Stream()
event = n.ctypes.c_void_p()
n.cuda.cudaEventCreate(n.ctypes.byref(event))
w.all_reduce(n.buffer(4), 4, "float32", "sum", talk)
talk.synchronize()
n.time.sleep(0.3)
driver.double_compute(compute.handle, 0, b"ampere_sgemm_64x64")
driver.double_compute(compute.handle, 6000, b"ampere_sgemm_128x64")
n.cuda.cudaEventRecord(event, compute.handle)
n.cuda.cudaStreamWaitEvent(talk.handle, event, 0)
w.all_reduce(n.buffer(4), 4, "float32", "sum", talk)
print(compute.handle.value, talk.handle.value, flush=True)
threading.Thread(target=talk.synchronize, daemon=True).start()
n.time.sleep(3.5)
n.os._exit(0)
"""


def facts(tmp_path, script, path=CUPTI, **more):
    """What a rank recorded about its GPU, and what it printed."""
    said = nccl.run(tmp_path, script, LD_LIBRARY_PATH=str(path), **more)[0]
    ring = rings_of.rings(tmp_path / "spool")[0]
    found = [SimpleNamespace(**vars(slot), said=ring.text(slot.text)) for slot in ring.slots() if slot.kind in (WINDOW, KERNEL, WAIT)]
    return found, said


def test_tells_what_a_kernel_is_queued_behind_and_who_waits(tmp_path):
    found, said = facts(tmp_path, QUEUED, DDPDOCTOR_CUPTI="always")
    compute, talk = map(int, said.split())
    window = [fact for fact in found if fact.kind == WINDOW]
    assert [(fact.phase, fact.said) for fact in window] == [(1, "CUPTI")]
    kernels = {(fact.object, fact.peer): (fact.said, rings_of.PHASES[fact.phase]) for fact in found if fact.kind == KERNEL}
    assert kernels[compute, 0] == ("ampere_sgemm_128x64", "started")
    assert kernels[compute, 1] == ("ampere_sgemm_64x64", "completed")
    assert kernels[talk, 0] == ("ncclDevKernel_Generic", "started")
    assert all(fact.detail & ENDS_ARE_TOLD for fact in found if fact.kind == KERNEL)
    waits = [fact for fact in found if fact.kind == WAIT]
    queued = next(fact for fact in waits if not fact.detail & OF_HOST)
    assert (queued.object, queued.peer, queued.count, queued.said) == (talk, 0, compute, "ampere_sgemm_128x64")
    host = next(fact for fact in waits if fact.detail & OF_HOST)
    assert (host.object, host.said) == (talk, "cuStreamSynchronize") and host.count > 0
    assert len(found) < 20  # each fact once, whatever its duration


def test_opens_only_when_a_call_does_not_move(tmp_path):
    found, _ = facts(tmp_path, QUEUED.replace("6000", "60000").replace("print(", "n.time.sleep(2.5) or print("), DDPDOCTOR_CUPTI="1")
    assert [fact.phase for fact in found if fact.kind == WINDOW] == [1]
    host = next(fact for fact in found if fact.kind == WAIT)  # what began inside the window
    assert host.detail & OF_HOST and not [fact for fact in found if fact.kind == KERNEL]


def test_asks_for_no_ends_of_kernels_when_the_gpu_stands_still(tmp_path):
    """CUPTI would instrument all loaded kernels."""
    late = QUEUED.replace("6000", "60000").replace("print(", "n.time.sleep(2.5) or driver.double_compute(n.Stream().handle, 9000, b'late') or print(")
    found, _ = facts(tmp_path, late, DDPDOCTOR_CUPTI="1")
    kernels = [fact for fact in found if fact.kind == KERNEL]
    assert [fact.said for fact in kernels] == ["late"] and not kernels[0].detail & ENDS_ARE_TOLD


def test_closes_when_the_call_moves(tmp_path):
    found, _ = facts(tmp_path, QUEUED.replace("6000", "2800").replace("print(", "n.time.sleep(3) or print("), DDPDOCTOR_CUPTI="1")
    assert [(fact.phase, fact.said) for fact in found if fact.kind == WINDOW] == [(1, "CUPTI"), (2, "CUPTI")]


SHORT = "w, s = n.Communicator(), n.Stream()\nw.all_reduce(n.buffer(4), 4, 'float32', 'sum', s)\ns.synchronize()\nn.time.sleep(0.3)\n" \
        "print('libcupti' in open('/proc/self/maps').read())"


def test_is_not_even_loaded_unless_asked_for(tmp_path):
    assert facts(tmp_path, SHORT) == ([], "False\n")


def test_is_ready_before_the_gpu_stands_still(tmp_path):
    """On an H200, cuptiSubscribe did not return while a kernel did not end."""
    assert facts(tmp_path, SHORT, DDPDOCTOR_CUPTI="1") == ([], "True\n")


def test_says_before_the_gpu_stands_still_why_it_cannot_be_ready(tmp_path):
    found, _ = facts(tmp_path, SHORT, DDPDOCTOR_CUPTI="1", CUPTI_DOUBLE_ANSWER="39")
    assert [fact.phase for fact in found] == [3]


@pytest.mark.parametrize("answer,why", [("39", "another tool uses CUPTI (torch's profiler, Nsight)"), ("35", "CUPTI lacks privileges"),
                                        ("999", "CUPTI does not start here (no driver?)")])
def test_stands_down_and_says_why(tmp_path, answer, why):
    found, _ = facts(tmp_path, SHORT, DDPDOCTOR_CUPTI="always", CUPTI_DOUBLE_ANSWER=answer)
    assert [(fact.phase, fact.said) for fact in found] == [(3, why)]


@pytest.mark.parametrize("sign", ["CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "KINETO_USE_DAEMON"])
def test_stands_down_for_a_tool_that_announced_itself(tmp_path, sign):
    found, said = facts(tmp_path, SHORT, DDPDOCTOR_CUPTI="always", **{sign: "1"})
    assert [fact.phase for fact in found] == [3] and "announced" in found[0].said and said == "False\n"


def test_leaves_records_to_who_had_cupti_first(tmp_path):
    script = f"n.ctypes.CDLL('{CUPTI / 'libcupti.so.13'}')\n" + QUEUED
    found, _ = facts(tmp_path, script, DDPDOCTOR_CUPTI="always")
    kernels = [fact for fact in found if fact.kind == KERNEL]
    assert kernels and not any(fact.detail & ENDS_ARE_TOLD for fact in kernels)


def test_lives_without_cupti(tmp_path):
    found, _ = facts(tmp_path, SHORT, path=tmp_path, DDPDOCTOR_CUPTI="always")
    assert [fact.phase for fact in found] == [3]


def test_needs_libc_alone_and_shows_one_name():
    needs = subprocess.run(["readelf", "-d", str(PLUGIN)], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1] for line in needs.splitlines() if "NEEDED" in line] == ["libdl.so.2]", "libc.so.6]"]
    names = subprocess.run(["nm", "-D", "--defined-only", str(PLUGIN)], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in names[2::3]] == ["ddpdoctor_cupti"]


REAL = """
import ctypes, sys
class Plugin(ctypes.Structure):
    _fields_ = [("interface", ctypes.c_uint32), ("subscribe", ctypes.CFUNCTYPE(ctypes.c_char_p)), ("open", ctypes.c_void_p), ("look", ctypes.c_void_p), ("close", ctypes.c_void_p)]
print(Plugin.in_dll(ctypes.CDLL(sys.argv[1]), "ddpdoctor_cupti").subscribe())
"""


@pytest.mark.skipif(not os.environ.get("REAL_CUPTI"), reason="no $REAL_CUPTI: the folder of libcupti.so.13 or .12 from a wheel")
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a driver is here")
def test_the_real_library_without_a_driver_is_no_window():
    done = subprocess.run([sys.executable, "-c", REAL, str(PLUGIN)], env=dict(os.environ, LD_LIBRARY_PATH=os.environ["REAL_CUPTI"]),
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "b'CUPTI does not start here (no driver?)'\n"), done.stderr
