# SPDX-License-Identifier: Apache-2.0
"""The recorder of ProcessGroupNCCL, in libtorch_cuda, as read by `attach`: a double of that library has torch's own name for the recorder
and points to the recorder of gloo, which has the same layout. Gloo's own is removed, so that what is read must come from there.

Needs torch of a known layout (docs/torch-state.md), a C compiler and nm."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(os.environ.get("DDPDOCTOR", ""))
PROGRAM = TOOL / "ddpdoctor" if TOOL.is_dir() else TOOL
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.skipif(not PROGRAM.is_file(), reason="$DDPDOCTOR is not the program"),
              pytest.mark.skipif(not shutil.which("cc") or not shutil.which("nm"), reason="no C compiler or no nm"),
              pytest.mark.skipif(torch.version.cuda is not None, reason="has a libtorch_cuda of its own")]

GLOO = "_ZZN4c10d14FlightRecorderIN3c105EventEE3getEvE8instance"
NCCL = {"c10": "_ZZN4c10d14FlightRecorderIN3c104cuda9CUDAEventEE3getEvE8instance",
        "at": "_ZZN4c10d14FlightRecorderIN2at4cuda9CUDAEventEE3getEvE8instance"}

JOB = """
import ctypes, sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
for _ in range(5):
    dist.all_reduce(torch.ones(3))
library = ctypes.CDLL(sys.argv[2])
base = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "libtorch_cpu.so" in line)
gloo = ctypes.c_void_p.from_address(base + int(sys.argv[3]))
assert gloo.value, "gloo has no recorder"
if sys.argv[4]:
    ctypes.c_void_p.in_dll(library, sys.argv[4]).value = gloo.value
time.sleep(1)  # gloo's threads may still hold the recorder that is taken away here
gloo.value = None
if sys.argv[5:]:
    c10d = dist.distributed_c10d
    group = c10d._get_default_group()
    c10d._pg_map[group] = (sys.argv[5], c10d._pg_map[group][1])
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def gloos_place():
    """The symbol of gloo's recorder in libtorch_cpu; None: stripped."""
    names = subprocess.run(["nm", str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")], capture_output=True, text=True, check=True).stdout
    return next((int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" " + GLOO)), None)


def report_of(tmp_path, place, name, *backend, exported=tuple(NCCL.values())):
    if place is None:
        pytest.skip("this torch has no name for its recorder")
    source, library = tmp_path / "cuda.c", tmp_path / "libtorch_cuda.so"
    source.write_text("".join(f"void* {each};\n" for each in exported))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    job = subprocess.Popen([sys.executable, "-c", JOB, str(tmp_path / "store"), str(library), str(place), name, *backend],
                           stdout=subprocess.PIPE, env=dict(os.environ, RANK="0", WORLD_SIZE="1", TORCH_FR_BUFFER_SIZE="100"))
    try:
        assert job.stdout.readline() == b"ready\n"
        subprocess.run([str(PROGRAM), "attach", str(job.pid), "-o", str(tmp_path / "report.json")], capture_output=True, timeout=60)
    finally:
        job.kill()
        job.wait()
    return json.loads((tmp_path / "report.json").read_text())


def calls_seen(*job):
    report = report_of(*job)
    return [rank["enqueued"] for group in report["groups"] for rank in group["progress"]]


@pytest.mark.parametrize("name", NCCL)
def test_reads_the_recorder_of_nccl_in_memory(tmp_path, gloos_place, name):
    assert calls_seen(tmp_path, gloos_place, NCCL[name]) == [5]


def test_sees_no_calls_where_neither_has_recorded_any(tmp_path, gloos_place):
    assert calls_seen(tmp_path, gloos_place, "") in ([], [0])


def recorder_of_rank_0(report):
    return [line for line in report["coverage"]["observed"] if "flight recorder" in line]


def test_a_group_of_nccl_is_known_by_its_own_recorder_only(tmp_path, gloos_place):
    """gloo's recorder is empty; that says nothing about a rank that uses NCCL."""
    report = report_of(tmp_path, gloos_place, "", "nccl", exported=["ddpdoctor_no_recorder"])
    assert not recorder_of_rank_0(report)
    assert any("nccl's flight recorder" in line for line in report["coverage"]["warnings"])


def test_a_recorder_of_nccl_without_calls_is_one_that_was_read(tmp_path, gloos_place):
    report = report_of(tmp_path, gloos_place, "", "nccl")
    assert recorder_of_rank_0(report) and not any("flight recorder" in line for line in report["coverage"]["warnings"])


def test_a_group_of_gloo_needs_no_recorder_of_nccl(tmp_path, gloos_place):
    assert recorder_of_rank_0(report_of(tmp_path, gloos_place, "", exported=["ddpdoctor_no_recorder"]))
