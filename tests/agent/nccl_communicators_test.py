# SPDX-License-Identifier: Apache-2.0
"""How communicators of NCCL begin and end in the ring: made by shrinking, by several ids, inside a group; ended by two calls; handles that
are reused. With the double (tests/doubles/nccl); the names of the others are tested in nccl_probe_test.py.

Needs the target nccl_doubles next to $DDPDOCTOR."""
import nccl_probe_test as nccl
from nccl_probe_test import ALL_REDUCE, END, INIT, calls, nccl_hash, rings_of, run

pytestmark = nccl.pytestmark

SHRUNK = """
w, made, again = n.Communicator(), n.ctypes.c_void_p(), n.ctypes.c_void_p()
excluded = (n.ctypes.c_int * 1)(1)
if w.rank != 1:
    n.check(n.nccl.ncclCommShrink(w.handle, excluded, 1, n.ctypes.byref(made), None, 0))
    n.check(n.nccl.ncclCommShrink(w.handle, excluded, 1, n.ctypes.byref(again), None, 0))
    s = n.Stream()
    n.Communicator(handle=made).all_reduce(n.buffer(4), 4, "float32", "sum", s)
    s.synchronize()
    n.time.sleep(0.2)
"""


def test_names_a_shrunk_communicator_alike_on_those_who_stay(tmp_path):
    run(tmp_path, SHRUNK, 3)
    found = rings_of.rings(tmp_path / "spool")
    assert len(found[1].groups()) == 1
    for rank, own in ((0, 0), (2, 1)):
        groups = found[rank].groups()
        assert [(group.rank, group.size) for group in groups] == [(rank, 3), (own, 2), (own, 2)]
        assert [group.name for group in groups] == [group.name for group in found[0].groups()]
        assert len({group.name for group in groups}) == 3  # NCCL itself gives both shrinks one name
        assert [(call.operation, call.group, call.state) for call in found[rank].calls()][-1] == (ALL_REDUCE, 2, "completed")


def test_names_one_of_several_ids_by_the_first(tmp_path):
    run(tmp_path, """
ids, handle = (n.Id * 2)(), n.ctypes.c_void_p()
for one in ids:
    n.check(n.nccl.ncclGetUniqueId(n.ctypes.byref(one)))
n.pathlib.Path(n.os.environ["NCCL_IDS"], "first").write_bytes(bytes(ids[0]))
n.check(n.nccl.ncclCommInitRankScalable(n.ctypes.byref(handle), 1, 0, 2, ids, None))
""")
    name = nccl_hash((tmp_path / "ids" / "first").read_bytes())
    assert [group.name for group in rings_of.rings(tmp_path / "spool")[0].groups()] == [f"nccl:{name:016x}"]


def test_an_end_in_two_calls_is_one_end(tmp_path):
    run(tmp_path, "w = n.Communicator()\nn.check(n.nccl.ncclCommFinalize(w.handle))\nw.destroy()")
    assert [(call.operation, call.state) for call in calls(tmp_path)] == [(INIT, "completed"), (END, "completed")]


def test_inits_of_a_group_come_at_its_end(tmp_path):
    """One process, two devices: without a group the first init would wait for the second."""
    run(tmp_path, """
n.cuda.cudaSetDevice(0)
id, made = n.shared_id("world", 0), (n.ctypes.c_void_p * 2)()
n.group_start()
for rank in range(2):
    n.check(n.nccl.ncclCommInitRank(n.ctypes.byref(made, 8 * rank), 2, id, rank))
n.group_end()
streams = [n.Stream() for _ in made]
n.group_start()
for handle, stream in zip(made, streams):
    n.Communicator(handle=n.ctypes.c_void_p(handle)).all_reduce(n.buffer(4), 4, "float32", "sum", stream)
n.group_end()
for stream in streams:
    stream.synchronize()
n.time.sleep(0.2)
""")
    ring = rings_of.rings(tmp_path / "spool")[0]
    assert [(group.rank, group.size) for group in ring.groups()] == [(0, 2), (1, 2)]
    assert [(call.operation, call.group, call.state) for call in ring.calls()] == \
        [(operation, group, "completed") for operation in (INIT, ALL_REDUCE) for group in (1, 2)]


NESTED = """
w, s = n.Communicator(), n.Stream()
n.group_start()
n.group_start()
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.group_end()
n.time.sleep(0.2)
ring = next(n.pathlib.Path(n.os.environ["DDPDOCTOR_SPOOL"]).glob("*.ring"))
n.pathlib.Path(n.os.environ["NCCL_IDS"], "inner").write_bytes(ring.read_bytes())
n.group_end()
s.synchronize()
n.time.sleep(0.2)
"""


def test_only_the_outermost_end_of_nested_groups_launches(tmp_path):
    run(tmp_path, NESTED)
    inner, outer = rings_of.Ring(tmp_path / "ids" / "inner").calls()[-1], calls(tmp_path)[-1]
    assert inner.state == "enqueued" and not inner.detail & rings_of.TRACKED  # nothing is on the GPU yet
    assert outer.state == "completed" and outer.detail & rings_of.TRACKED and outer.detail & rings_of.GROUPED


def test_a_group_that_was_only_simulated_launched_nothing(tmp_path):
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
n.group_start()
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.check(n.nccl.ncclGroupSimulateEnd(None))
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
n.time.sleep(0.2)
""")
    assert [(call.state, bool(call.detail & rings_of.GROUPED)) for call in calls(tmp_path)[1:]] == [("failed", True), ("completed", False)]


def test_a_handle_that_is_used_again_is_another_communicator(tmp_path):
    """An aborted communicator is forgotten: the same address may be reused with other members."""
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
first = w.handle.value
n.check(n.nccl.ncclCommAbort(w.handle))
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
""")
    groups = rings_of.rings(tmp_path / "spool")[0].groups()
    assert [group.name.startswith("nccl:") for group in groups] == [True, False] and calls(tmp_path)[-1].group == 2
