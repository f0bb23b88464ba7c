# SPDX-License-Identifier: Apache-2.0
"""Communicators that do not block: NCCL returns ncclInProgress (7) and continues on a thread of its own. Their calls are in progress in the
ring until ncclCommGetAsyncError returns the result; nothing else is recorded about them. With the double (tests/doubles/nccl).

Needs the target nccl_doubles next to $DDPDOCTOR."""
from pathlib import Path

import pytest

import nccl_probe_test as nccl
from nccl_probe_test import ALL_REDUCE, END, INIT, RECV, SEND, SPLIT, calls, rings_of, run

pytestmark = nccl.pytestmark
WINDOW = 35

NONBLOCKING = """
import os
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
folder = n.pathlib.Path(os.environ["NCCL_IDS"])
hold = folder / f"hold{rank}"
os.environ["NCCL_DOUBLE_HOLD"] = str(hold)
n.cuda.cudaSetDevice(0)
config, stream, byref = (n.ctypes.c_int * 40)(), n.Stream(), n.ctypes.byref
config[4] = 0  # blocking
def state(comm):
    value = n.ctypes.c_int(-1)
    assert n.nccl.ncclCommGetAsyncError(comm, byref(value)) == 0
    return value.value
def ready(comm):
    while state(comm) == 7:
        n.time.sleep(0.001)
    return state(comm)
def keep(name):  # the ring as it is now
    [ring] = n.pathlib.Path(os.environ["DDPDOCTOR_SPOOL"]).glob(f"{os.getpid()}-*.ring")
    (folder / f"{name}{rank}.ring").write_bytes(ring.read_bytes())
def sums(comm, count=4):
    data = n.buffer(count)
    return n.nccl.ncclAllReduce(data, data, n.SIZE(count), 7, 0, comm, stream.handle)
world = n.ctypes.c_void_p()
assert n.nccl.ncclCommInitRankConfig(byref(world), size, n.shared_id("world", rank), rank, config) == 7
"""
READY = NONBLOCKING + "assert ready(world) == 0\n"
# The agent's own thread queries the GPU for the end of a launch; the ring shows when it has done so.
LAST = f"""
import sys
sys.path.insert(0, {str(Path(rings_of.__file__).parent)!r})
import ring as rings
def unended():
    [ring] = n.pathlib.Path(os.environ["DDPDOCTOR_SPOOL"]).glob(f"{{os.getpid()}}-*.ring")
    return [call for call in rings.Ring(ring).calls() if call.state == "enqueued" and call.detail & rings.TRACKED]
until = n.time.monotonic() + 20
while unended() and n.time.monotonic() < until:
    n.time.sleep(0.01)
assert n.ctypes.CDLL(str(n.FOLDER / "libnccl.so.2")).double_calls_refused() == 0
"""


def kept(tmp_path, name, rank=0):
    return rings_of.Ring(tmp_path / "ids" / f"{name}{rank}.ring").calls()


def said(call):
    return call.operation, call.state, bool(call.detail & rings_of.IN_PROGRESS), bool(call.detail & rings_of.TRACKED)


CALLS = [  # what is called on `world`, and what is recorded about it
    ("sums(world)", [ALL_REDUCE], True),
    ("n.nccl.ncclAllReduceConfig(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle, None)", [ALL_REDUCE], True),
    ("n.nccl.ncclBroadcast(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle)", [2], True),
    ("n.nccl.ncclBcast(n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle)", [2], True),
    ("n.nccl.ncclReduce(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, 0, world, stream.handle)", [3], True),
    ("n.nccl.ncclAllGather(n.buffer(4), n.buffer(4), n.SIZE(4), 7, world, stream.handle)", [4], True),
    ("n.nccl.ncclReduceScatter(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle)", [7], True),
    ("n.nccl.ncclAlltoAll(n.buffer(4), n.buffer(4), n.SIZE(4), 7, world, stream.handle)", [8], True),
    ("n.nccl.ncclGather(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle)", [5], True),
    ("n.nccl.ncclScatter(n.buffer(4), n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle)", [6], True),
    ("n.nccl.ncclSignal(0, 0, 0, 0, world, stream.handle)", [38], True),
    ("n.group_start() or n.nccl.ncclSend(n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle) or "
     "n.nccl.ncclRecv(n.buffer(4), n.SIZE(4), 7, 0, world, stream.handle) or n.nccl.ncclGroupEnd()", [SEND, RECV], True),
    ("n.group_start() or sums(world) or sums(world) or n.nccl.ncclGroupEnd()", [ALL_REDUCE, ALL_REDUCE], True),
    ("n.nccl.ncclCommSplit(world, 0, 0, byref(made), None)", [SPLIT], False),
    ("n.nccl.ncclCommShrink(world, None, 0, byref(made), None, 0)", [INIT], False),
    ("n.nccl.ncclCommGrow(world, 1, None, -1, byref(made), None)", [INIT], False),
    ("n.nccl.ncclCommInitRankConfig(byref(made), 1, n.shared_id('other', 0), 0, config)", [INIT], False),
    ("n.nccl.ncclCommInitRankScalable(byref(made), 1, 0, 1, byref(n.shared_id('other', 0)), config)", [INIT], False),
    ("n.group_start() or n.nccl.ncclCommInitRankConfig(byref(made), 1, n.shared_id('other', 0), 0, config) or n.nccl.ncclGroupEnd()", [INIT], False),
    ("n.group_start() or n.nccl.ncclCommSplit(world, 0, 0, byref(made), None) or n.nccl.ncclGroupEnd()", [SPLIT], False),
    ("n.nccl.ncclCommWindowRegister(world, n.buffer(4), n.SIZE(16), byref(n.ctypes.c_void_p()), 0)", [WINDOW], False),
    ("n.nccl.ncclCommFinalize(world)", [END], False),
]


@pytest.mark.parametrize(("call", "operations", "on_stream"), CALLS, ids=[call.split("(")[0] + str(i) for i, (call, *_) in enumerate(CALLS)])
def test_a_call_is_in_progress_until_nccl_says_how_it_went(tmp_path, call, operations, on_stream):
    run(tmp_path, READY + f"""
made = n.ctypes.c_void_p()
hold.touch()
assert ({call}) == 7
asked = made if made else world
assert state(asked) == 7
n.time.sleep(0.1)
keep("meanwhile")
hold.unlink()
assert ready(world) == 0 and ready(asked) == 0
stream.synchronize()
""" + LAST)
    assert [said(one) for one in kept(tmp_path, "meanwhile")[1:]] == [(operation, "enqueued", True, False) for operation in operations]
    assert [said(one) for one in calls(tmp_path)[1:]] == [(operation, "completed", False, on_stream) for operation in operations]


@pytest.mark.parametrize(("call", "operations", "on_stream"), CALLS, ids=[call.split("(")[0] + str(i) for i, (call, *_) in enumerate(CALLS)])
def test_a_call_that_fails_in_the_background_is_said_to_have_failed(tmp_path, call, operations, on_stream):
    run(tmp_path, READY + f"""
os.environ["NCCL_DOUBLE_FAILS"] = "3"
made = n.ctypes.c_void_p()
assert ({call}) == 7
assert ready(made if made else world) == 3
""" + LAST)
    assert [said(one) for one in calls(tmp_path)[1:]] == [(operation, "failed", False, on_stream) for operation in operations]


def test_nothing_is_said_of_a_call_whose_end_nobody_asked_for(tmp_path):
    """The double has launched it and it ran; NCCL was not queried, so the agent cannot know."""
    run(tmp_path, READY + "assert sums(world) == 7\nn.time.sleep(0.2)\nstream.synchronize()\n" + LAST)
    assert said(calls(tmp_path)[-1]) == (ALL_REDUCE, "enqueued", True, False)


def test_a_call_that_nccl_accepts_proves_that_the_one_before_it_was_launched(tmp_path):
    """A communicator in progress accepts no call."""
    run(tmp_path, READY + "assert sums(world) == 7\nn.time.sleep(0.2)\nassert sums(world) == 7\nassert ready(world) == 0\nstream.synchronize()\n" + LAST)
    assert [said(call) for call in calls(tmp_path)[1:]] == 2 * [(ALL_REDUCE, "completed", False, True)]


def test_a_refused_call_proves_nothing(tmp_path):
    run(tmp_path, READY + """
hold.touch()
assert sums(world) == 7
assert sums(world) == 4
n.time.sleep(0.1)
""")
    assert [said(call) for call in calls(tmp_path)[1:]] == [(ALL_REDUCE, "enqueued", True, False), (ALL_REDUCE, "failed", False, True)]


def test_an_answer_of_another_thread_counts_and_an_older_one_does_not(tmp_path):
    run(tmp_path, READY + """
import threading
assert state(world) == 0  # older than the call
hold.touch()
assert sums(world) == 7
keep("meanwhile")
hold.unlink()
thread = threading.Thread(target=ready, args=(world,))
thread.start()
thread.join()
n.cuda.cudaStreamSynchronize(stream.handle)
""" + LAST)
    assert said(kept(tmp_path, "meanwhile")[-1]) == (ALL_REDUCE, "enqueued", True, False)
    assert said(calls(tmp_path)[-1])[:3] in [(ALL_REDUCE, "completed", False), (ALL_REDUCE, "enqueued", False)]


def test_an_answer_puts_no_event_into_a_stream_that_is_being_captured(tmp_path):
    run(tmp_path, READY + """
hold.touch()
assert sums(world) == 7
n.cuda.cudaStreamBeginCapture(stream.handle, 0)
hold.unlink()
driver = n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1"))
before = driver.double_events_recorded()
assert ready(world) == 0
assert driver.double_events_recorded() == before
assert n.cuda.cudaStreamEndCapture(stream.handle, byref(n.ctypes.c_void_p())) == 0
""" + LAST)
    assert said(calls(tmp_path)[-1]) == (ALL_REDUCE, "enqueued", False, False)  # launched; when it ended is unknown


@pytest.mark.parametrize("way", ["Split", "Shrink"])
def test_a_child_that_is_made_in_the_background_has_its_name(tmp_path, way):
    """Its handle exists only when the parent is ready; nothing is called on it before."""
    made = {"Split": "n.nccl.ncclCommSplit(world, 0, 0, byref(made), None)", "Shrink": "n.nccl.ncclCommShrink(world, None, 0, byref(made), None, 0)"}[way]
    run(tmp_path, READY + f"""
made = n.ctypes.c_void_p()
assert {made} == 7 and not made
assert ready(world) == 0 and made
assert sums(made) == 7
assert ready(made) == 0
stream.synchronize()
""" + LAST, 2)
    for rank in range(2):
        ring = rings_of.rings(tmp_path / "spool")[rank]
        groups = ring.groups()
        assert [(group.rank, group.size) for group in groups] == [(rank, 2), (rank, 2)]
        assert groups[1].name.startswith("nccl:") and groups[1].name == rings_of.rings(tmp_path / "spool")[0].groups()[1].name
        assert [(call.operation, call.group, call.state) for call in ring.calls()][-1] == (ALL_REDUCE, 2, "completed")


@pytest.mark.parametrize("way", ["Abort", "Destroy"])
def test_what_is_in_progress_ends_with_its_communicator(tmp_path, way):
    run(tmp_path, READY + f"""
hold.touch()
assert sums(world) == 7
assert n.nccl.ncclComm{way}(world) == 0
n.time.sleep(0.1)
""")
    call = calls(tmp_path)[1]
    assert not call.detail & rings_of.IN_PROGRESS and (way == "Destroy" or call.state == "failed")


def test_computes_as_without_the_agent(tmp_path):
    script = READY + """
data = n.buffer(4)
(n.ctypes.c_float * 4).from_address(data.value)[:] = [rank, 1, 2, 3]
answers = []
for _ in range(50):
    answers.append(n.nccl.ncclAllReduce(data, data, n.SIZE(4), 7, 2, world, stream.handle))
    answers.append(ready(world))
stream.synchronize()
print(answers, n.values(data, 4))
"""
    assert run(tmp_path, script, 2) == run(tmp_path, script.replace("world\"", "again\""), 2, agent=False)
    assert {call.state for call in calls(tmp_path)} == {"completed"} and len(calls(tmp_path)) == 51


def test_calls_in_progress_beyond_those_that_are_remembered_are_counted(tmp_path):
    """There are 128 entries, and each change of the stream uses one: 96 for the first communicator, 32 for one stream of the second; none
    is left for the second's other stream and for the third communicator."""
    run(tmp_path, READY + """
comms, streams = [world], [stream, n.Stream()]
for name in "bc":
    comms.append(n.ctypes.c_void_p())
    assert n.nccl.ncclCommInitRankConfig(byref(comms[-1]), 1, n.shared_id(name, 0), 0, config) == 7
    assert ready(comms[-1]) == 0
hold.touch()
data = n.buffer(4)
for comm in comms:
    n.group_start()
    for i in range(96):
        n.check(n.nccl.ncclAllReduce(data, data, n.SIZE(4), 7, 0, comm, streams[i % 2].handle))
    assert n.nccl.ncclGroupEnd() == 7
hold.unlink()
for comm in comms:
    assert ready(comm) == 0
for one in streams:
    one.synchronize()
""" + LAST)
    ring = rings_of.rings(tmp_path / "spool")[0]
    of = {group: [call for call in ring.calls() if call.group == group and call.operation == ALL_REDUCE] for group in (1, 2, 3)}
    followed, lost = ("completed", True), ("enqueued", False)
    assert [[(call.state, bool(call.detail & rings_of.TRACKED)) for call in of[group]] for group in (1, 2, 3)] == [96 * [followed], 48 * [followed, lost], 96 * [lost]]
    assert ring.untracked == 48 + 96 and not any(call.detail & rings_of.IN_PROGRESS for call in ring.calls())
