# SPDX-License-Identifier: Apache-2.0
"""Faults that the double of NCCL and of the driver can produce (tests/doubles/nccl): a driver that does not answer, a rank killed inside a
call, an error that is returned later, a capture during which queries are not allowed. The ring must stay readable, and the job must end as
without the agent.

Needs the target nccl_doubles next to $DDPDOCTOR."""
import json

import pytest

import nccl_probe_test as nccl
import nccl_run_test as jobs
from nccl_probe_test import calls, run

pytestmark = [nccl.pytestmark, pytest.mark.skipif(bool(jobs.REAL), reason="faults of the double")]

WEDGED = """
w, s = n.Communicator(), n.Stream()
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
n.time.sleep(0.2)
n.pathlib.Path(n.os.environ["CUDA_DOUBLE_WEDGED"]).touch()
n.time.sleep(0.1)
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
n.time.sleep(0.2)
"""


def test_leaves_what_was_known_when_the_driver_stops_answering(tmp_path):
    run(tmp_path, WEDGED, CUDA_DOUBLE_WEDGED=str(tmp_path / "wedged"))  # and the end of the process does not wait for the driver
    assert [call.state for call in calls(tmp_path)] == ["completed", "completed", "enqueued"]


def test_goes_on_when_the_driver_answers_again(tmp_path):
    again = 'n.os.unlink(n.os.environ["CUDA_DOUBLE_WEDGED"])\nn.time.sleep(0.3)\n'
    run(tmp_path, WEDGED + again, CUDA_DOUBLE_WEDGED=str(tmp_path / "wedged"))
    assert [call.state for call in calls(tmp_path)] == ["completed"] * 3


CAPTURED_MEANWHILE = """
w, busy, s = n.Communicator(), n.Stream(), n.Stream()
driver, graph, asked = n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1")), n.ctypes.c_void_p(), n.ctypes.c_void_p()
n.cuda.cudaEventCreate(n.ctypes.byref(asked))
driver.double_compute(busy.handle, 1000, b"long")
w.all_reduce(n.buffer(4), 4, "float32", "sum", busy)  # the agent's thread asks for its end from now on
n.cuda.cudaStreamBeginCapture(s.handle, 0)
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.time.sleep(0.3)
if %s:
    driver.cuEventQuery(asked)
print(n.cuda.cudaStreamEndCapture(s.handle, n.ctypes.byref(graph)))
"""


def test_does_not_spoil_a_capture_of_another_thread(tmp_path):
    assert run(tmp_path, CAPTURED_MEANWHILE % False) == ["0\n"]
    assert run(tmp_path, CAPTURED_MEANWHILE % True) == ["901\n"]  # what a query would do: the double notices it


BODY_WEDGED = """        if step == 1:
            stream.synchronize()
            time.sleep(0.2)
            open(os.environ["CUDA_DOUBLE_WEDGED"], "w").close()
        if step == 3:
            for _ in range(12):
                world.all_reduce(data, 64, 'float32', 'sum', stream)
                time.sleep(0.5)
        if step == 3 and rank == 2:
            time.sleep(600)  # CULPRIT
        world.all_reduce(data, 65536, 'float32', 'sum', stream)
"""


def test_says_that_the_driver_does_not_answer_and_names_the_rank_all_the_same(tmp_path):
    finding, line, done = jobs.diagnose(tmp_path, BODY_WEDGED, CUDA_DOUBLE_WEDGED=str(tmp_path / "wedged"))
    assert finding and finding["culprits"] == [2] and line in jobs.lines_of(finding), done.stdout
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert any("ranks 0-3: the GPU's driver does not answer any more" in text for text in report["coverage"]["warnings"])


def test_names_a_rank_that_is_killed_inside_a_call(tmp_path):
    finding, _, done = jobs.diagnose(tmp_path, jobs.USUAL, NCCL_DOUBLE_DIE_RANK="1", NCCL_DOUBLE_DIE_AT="3")
    assert finding and (finding["kind"], finding["culprits"]) == ("dead-rank", [1]), done.stdout
    usual = next(number for number, text in enumerate((tmp_path / "train.py").read_text().splitlines(), 1) if "all_reduce" in text)
    assert usual in jobs.lines_of(finding), finding


def test_says_that_an_init_failed_later(tmp_path):
    script = """
n.cuda.cudaSetDevice(0)
handle, config, state = n.ctypes.c_void_p(), (n.ctypes.c_int * 40)(), n.ctypes.c_int(7)
config[4] = 0
assert n.nccl.ncclCommInitRankConfig(n.ctypes.byref(handle), 2, n.shared_id("world", 0), 0, config) == 7
n.nccl.ncclCommGetAsyncError(handle, n.ctypes.byref(state))
print(state.value)
n.os._exit(0)
"""
    assert run(tmp_path, script, NCCL_DOUBLE_ASYNC_ERROR="6") == ["6\n"]
    assert [call.state for call in calls(tmp_path)] == ["failed"]


def test_an_error_of_a_running_communicator_reaches_the_job_unchanged(tmp_path):
    script = """
w, s, state = n.Communicator(), n.Stream(), n.ctypes.c_int(0)
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
code = n.nccl.ncclCommGetAsyncError(w.handle, n.ctypes.byref(state))
print(code, state.value, n.nccl.ncclCommAbort(w.handle))
"""
    assert run(tmp_path, script, NCCL_DOUBLE_ASYNC_ERROR="6") == run(tmp_path, script, agent=False, NCCL_DOUBLE_ASYNC_ERROR="6") == ["0 6 0\n"]
