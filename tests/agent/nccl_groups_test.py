# SPDX-License-Identifier: Apache-2.0
"""The cost of a large ncclGroup, and what is recorded: one pair of events per stream, however many calls, and still every call's end; what
does not fit into the agent's tables is counted. Events are counted by the double of the driver (tests/doubles/nccl).

Needs the target nccl_doubles next to $DDPDOCTOR."""

import nccl_probe_test as nccl
from nccl_probe_test import ALL_REDUCE, RECV, SEND, calls, rings_of, run

pytestmark = nccl.pytestmark

EVENTS = """
driver = n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1"))
def events(since=[0]):
    before, since[0] = since[0], driver.double_events_recorded()
    return since[0] - before
"""
ALL_TO_ALL = EVENTS + """
w, s = n.Communicator(), n.Stream()
a, b = n.buffer(4), n.buffer(4)
events()
n.group_start()
for _ in range(64):
    w.send(a, 4, "float32", w.rank, s)
    w.recv(b, 4, "float32", w.rank, s)
n.group_end()
print(events())
s.synchronize()
n.time.sleep(0.2)
"""


def test_an_all_to_all_of_64_ranks_costs_two_events(tmp_path):
    assert run(tmp_path, ALL_TO_ALL) == ["2\n"]
    found = calls(tmp_path)[1:]
    assert [call.operation for call in found] == 64 * [SEND, RECV] and [call.number for call in found] == list(range(1, 129))
    assert all(call.state == "completed" and call.detail & rings_of.TRACKED for call in found)
    assert rings_of.rings(tmp_path / "spool")[0].untracked == 0


def test_a_group_that_does_not_begin_leaves_every_call_open(tmp_path):
    run(tmp_path, ALL_TO_ALL.replace("a, b =", "driver.double_compute(s.handle, 60000, b'gemm')\na, b =").replace("s.synchronize()", "")
        + "n.os._exit(0)")
    assert [(call.state, bool(call.detail & rings_of.TRACKED)) for call in calls(tmp_path)[1:]] == 128 * [("enqueued", True)]


def test_each_stream_and_communicator_of_a_group_keeps_its_own(tmp_path):
    """Two communicators on one stream share a pair; a second stream has another one."""
    assert run(tmp_path, EVENTS + """
w, s, t = n.Communicator(), n.Stream(), n.Stream()
other = w.split(0, 0)
data = n.buffer(4)
events()
n.group_start()
for _ in range(10):
    w.all_reduce(data, 4, "float32", "sum", s)
    other.all_reduce(data, 4, "float32", "sum", s)
    w.send(data, 4, "float32", 0, t)
    w.recv(data, 4, "float32", 0, t)
n.group_end()
print(events())
driver.double_compute(t.handle, 60000, b"gemm")
n.group_start()
w.all_reduce(data, 4, "float32", "sum", s)
w.send(data, 4, "float32", 0, t)
w.recv(data, 4, "float32", 0, t)
n.group_end()
print(events())
s.synchronize()
n.time.sleep(0.2)
n.os._exit(0)
""") == ["4\n4\n"]
    found = calls(tmp_path)[2:]
    assert {call.state for call in found[:40]} == {"completed"} and len({(call.kind, call.group, call.number) for call in found}) == 43
    assert [(call.operation, call.state) for call in found[40:]] == [(ALL_REDUCE, "completed"), (SEND, "enqueued"), (RECV, "enqueued")]


def test_a_group_that_fails_says_so_of_every_call(tmp_path):
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
n.group_start()
for _ in range(64):
    w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.check(n.nccl.ncclGroupSimulateEnd(None))
""")
    assert [call.state for call in calls(tmp_path)[1:]] == 64 * ["failed"]
    assert rings_of.rings(tmp_path / "spool")[0].groups()[0].failed == 64


def test_calls_that_the_table_of_a_group_has_no_room_for_are_counted(tmp_path):
    """Each change of the stream is an entry, and there are 96."""
    run(tmp_path, """
w, s, t = n.Communicator(), n.Stream(), n.Stream()
data = n.buffer(4)
n.group_start()
for i in range(100):
    w.all_reduce(data, 4, "float32", "sum", (s, t)[i % 2])
n.group_end()
s.synchronize()
t.synchronize()
n.time.sleep(0.2)
""")
    ring = rings_of.rings(tmp_path / "spool")[0]
    assert ring.untracked == 4
    assert [bool(call.detail & rings_of.TRACKED) for call in ring.calls()[1:]] == 96 * [True] + 4 * [False]
    assert [call.state for call in ring.calls()[1:]] == 96 * ["completed"] + 4 * ["enqueued"]


def test_streams_beyond_the_eighth_of_a_group_are_counted(tmp_path):
    run(tmp_path, """
w, streams = n.Communicator(), [n.Stream() for _ in range(10)]
n.group_start()
for stream in streams:
    w.all_reduce(n.buffer(4), 4, "float32", "sum", stream)
n.group_end()
n.time.sleep(0.2)
""")
    assert rings_of.rings(tmp_path / "spool")[0].untracked == 2


def test_launches_beyond_those_that_are_followed_are_counted(tmp_path):
    """Nothing runs: 512 launches remain open, the others cannot be followed."""
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1")).double_compute(s.handle, 60000, b"gemm")
for _ in range(600):
    w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.os._exit(0)
""")
    ring = rings_of.rings(tmp_path / "spool")[0]
    assert ring.untracked == 88
    assert [bool(call.detail & rings_of.TRACKED) for call in ring.calls()[1:]] == 512 * [True] + 88 * [False]


def test_one_launch_that_hangs_costs_no_other_its_end(tmp_path):
    """Its entry in the table stays used while thousands of others are reused."""
    run(tmp_path, """
w, s, t = n.Communicator(), n.Stream(), n.Stream()
n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1")).double_compute(t.handle, 60000, b"gemm")
data = n.buffer(4)
w.all_reduce(data, 4, "float32", "sum", t)
for i in range(30):
    for _ in range(50):
        w.all_reduce(data, 4, "float32", "sum", s)
    s.synchronize()
    n.time.sleep(0.06)
n.time.sleep(0.2)
n.os._exit(0)
""")
    ring = rings_of.rings(tmp_path / "spool")[0]
    assert ring.untracked == 0 and [call.state for call in ring.calls()] == ["completed", "enqueued"] + 1500 * ["completed"]
