# SPDX-License-Identifier: Apache-2.0
"""The NCCL probe with doubles of CUDA and NCCL (tests/doubles/nccl): what a rank records, and that its results are unchanged.

Needs the target nccl_doubles next to $DDPDOCTOR. No GPU: these tests say nothing about hardware."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import ring as rings_of  # noqa: E402

TOOL = Path(os.environ.get("DDPDOCTOR", ""))
BUILD = TOOL if TOOL.is_dir() else TOOL.parent
AGENT = BUILD / "libddpdoctor_agent.so"
DOUBLES = BUILD / "doubles"
VERSIONS = [21003, 21803, 22304, 22605, 22707, 22809, 23007, 23203]
pytestmark = pytest.mark.skipif(not (DOUBLES / "nccl-23203" / "libnccl.so.2").is_file() or not AGENT.is_file(),
                                reason="no doubles of NCCL beside $DDPDOCTOR (target nccl_doubles)")
ALL_REDUCE, BROADCAST, ALL_TO_ALL, SEND, RECV, INIT, SPLIT, END = 1, 2, 8, 11, 12, 32, 33, 34


def environment(tmp_path, version=23203, agent=True, **more):
    (tmp_path / "ids").mkdir(exist_ok=True)
    (tmp_path / "spool").mkdir(exist_ok=True)
    variables = dict(os.environ, NCCL_FOLDER=str(DOUBLES / f"nccl-{version}"), NCCL_IDS=str(tmp_path / "ids"),
                     PYTHONPATH=str(HERE.parent / "doubles" / "nccl"), PYTHONDONTWRITEBYTECODE="1", **more)
    if agent:
        variables.update(LD_PRELOAD=str(AGENT), DDPDOCTOR_SPOOL=str(tmp_path / "spool"))
    return variables


def run(tmp_path, script, ranks=1, **more):
    """Runs `script` on every rank; returns what each printed, in the order of ranks."""
    variables = environment(tmp_path, **more)
    jobs = [subprocess.Popen([sys.executable, "-c", "import thin_nccl as n\n" + script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=dict(variables, RANK=str(rank), WORLD_SIZE=str(ranks))) for rank in range(ranks)]
    try:
        said = [job.communicate(timeout=60)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    assert [job.returncode for job in jobs] == [0] * ranks, said
    return said


def calls(tmp_path, rank=0):
    return rings_of.rings(tmp_path / "spool")[rank].calls()


SUMS = """
world, stream = n.Communicator(), n.Stream()
data = n.buffer(8)
(n.ctypes.c_float * 8).from_address(data.value)[:] = range(world.rank, world.rank + 8)
for _ in range(3):
    world.all_reduce(data, 8, "float32", "max", stream)
stream.synchronize()
print(n.values(data, 8))
world.destroy()
n.time.sleep(0.2)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_records_each_call_and_changes_nothing(tmp_path, version):
    said = run(tmp_path, SUMS, 2, version=version)
    assert said == ["[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]\n"] * 2
    for rank in range(2):
        found = calls(tmp_path, rank)
        assert [call.operation for call in found] == [INIT, ALL_REDUCE, ALL_REDUCE, ALL_REDUCE, END]
        assert [call.number for call in found] == [1, 2, 3, 4, 5]
        assert {call.state for call in found} == {"completed"}
        assert {(call.count, call.dtype, call.reduce_op) for call in found[1:4]} == {(8, 6, 4)}  # float32, max
        assert all(call.site > 0 for call in found)


def test_names_a_communicator_alike_on_all_ranks(tmp_path):
    run(tmp_path, SUMS, 3)
    groups = [ring.groups()[0] for ring in rings_of.rings(tmp_path / "spool").values()]
    assert len({group.name for group in groups}) == 1 and groups[0].name.startswith("nccl:")
    assert sorted(group.rank for group in groups) == [0, 1, 2] and {group.size for group in groups} == {3}


def nccl_hash(*parts):
    """NCCL's hash (since 2.26), to compare names with those in its logs."""
    mask, a, b = 2**64 - 1, 1, 1
    for part in parts:
        a ^= len(part)
        for at in range(0, len(part), 8):
            a = (a + b) & mask
            b ^= a
            a = ((a ^ (a >> 31)) * 0x9DE62BBC8CEF3CE3) & mask
            b = ((b ^ (b >> 32)) * 0x485CD6311B599E79) & mask
            a = (a + int.from_bytes(part[at:at + 8], "little")) & mask
    h = (((a ^ (a >> 31)) * 0xBAC3BD562846DE6B) + b) & mask
    return ((h ^ (h >> 32)) * 0x995A187A14E7B445) & mask


def test_names_it_as_nccl_does(tmp_path):
    run(tmp_path, "world = n.Communicator()\nhalf = world.split(world.rank % 2, 0)\nhalf2 = world.split(0, 0)", 2)
    whole = nccl_hash((tmp_path / "ids" / "world").read_bytes())
    number = lambda value: value.to_bytes(4, "little")  # noqa: E731
    for rank, ring in rings_of.rings(tmp_path / "spool").items():
        split = nccl_hash(whole.to_bytes(8, "little"), number(1), number(rank))
        again = nccl_hash(whole.to_bytes(8, "little"), number(2), number(0))
        assert [group.name for group in ring.groups()] == [f"nccl:{name:016x}" for name in (whole, split, again)]
        assert [(group.rank, group.size) for group in ring.groups()] == [(rank, 2), (0, 1), (rank, 2)]


GROWN = """
import os
rank, byref = int(os.environ["RANK"]), n.ctypes.byref
n.cuda.cudaSetDevice(0)
world, grown, id = n.ctypes.c_void_p(), n.ctypes.c_void_p(), n.Id()
path = n.pathlib.Path(os.environ["NCCL_IDS"]) / "joining"
if rank < 2:
    n.check(n.nccl.ncclCommInitRank(byref(world), 2, n.shared_id("world", rank), rank))
    n.check(n.nccl.ncclCommSplit(world, 0, 0, byref(n.ctypes.c_void_p()), None))
if rank == 0:
    n.check(n.nccl.ncclCommGetUniqueId(world, byref(id)))
    path.with_suffix(".part").write_bytes(bytes(id))
    path.with_suffix(".part").rename(path)
while rank == 2 and not path.exists():
    n.time.sleep(0.01)
if rank == 2:
    id = n.Id.from_buffer_copy(path.read_bytes())
n.check(n.nccl.ncclCommGrow(world if rank < 2 else None, 3, byref(id) if rank in (0, 2) else None, rank if rank == 2 else -1, byref(grown), None))
"""


def test_names_a_grown_communicator_alike_on_old_and_new_ranks(tmp_path):
    run(tmp_path, GROWN, 3)
    number = lambda value: value.to_bytes(8, "little")  # noqa: E731
    magic = nccl_hash((tmp_path / "ids" / "world").read_bytes()[:8], number(2))  # the second child: a split came before
    name = f"nccl:{nccl_hash(number(magic), number(3)):016x}"
    found = rings_of.rings(tmp_path / "spool")
    assert [(found[rank].groups()[-1].name, found[rank].groups()[-1].rank) for rank in range(3)] == [(name, 0), (name, 1), (name, 2)]


SEVERAL_DEVICES = """
made = (n.ctypes.c_void_p * 3)()
n.cuda.cudaSetDevice(0)
n.check(n.nccl.ncclCommInitAll(made, 3, None))
"""


def test_names_the_communicators_of_a_process_with_several_devices(tmp_path):
    run(tmp_path, 2 * SEVERAL_DEVICES)
    ring = rings_of.rings(tmp_path / "spool")[0]
    groups = ring.groups()
    assert [(group.rank, group.size) for group in groups] == 2 * [(0, 3), (1, 3), (2, 3)]
    names = [group.name for group in groups]
    assert len(set(names[:3])) == len(set(names[3:])) == 1 and names[0] != names[3] and names[0].startswith("nccl:")


def test_counts_a_function_that_nccl_calls_inside_once(tmp_path):
    run(tmp_path, "w, s = n.Communicator(), n.Stream()\nn.nccl.ncclBcast(n.buffer(4), n.SIZE(4), 7, 0, w.handle, s.handle)\ns.synchronize()")
    assert [call.operation for call in calls(tmp_path)] == [INIT, BROADCAST]


def test_holds_a_group_until_its_end(tmp_path):
    run(tmp_path, """
w, s, a, b = n.Communicator(), n.Stream(), n.buffer(4), n.buffer(4)
n.group_start()
w.send(a, 4, "float32", 1 - w.rank, s)
w.recv(b, 4, "float32", 1 - w.rank, s)
n.group_end()
s.synchronize()
n.time.sleep(0.2)
""", 2)
    for rank in range(2):
        sent, received = calls(tmp_path, rank)[1:]
        assert (sent.operation, received.operation) == (SEND, RECV)
        assert (sent.number, received.number) == (1, 2) and sent.peer == received.peer == 1 - rank
        assert all(call.detail & rings_of.GROUPED and call.state == "completed" for call in (sent, received))


def test_follows_an_init_that_goes_on_in_the_background(tmp_path):
    run(tmp_path, """
import os
n.cuda.cudaSetDevice(0)
handle, config, state = n.ctypes.c_void_p(), (n.ctypes.c_int * 40)(), n.ctypes.c_int(7)
config[4] = 0
rank = int(os.environ["RANK"])
code = n.nccl.ncclCommInitRankConfig(n.ctypes.byref(handle), 2, n.shared_id("world", rank), rank, config)
assert code == 7, code
while state.value == 7:
    n.nccl.ncclCommGetAsyncError(handle, n.ctypes.byref(state))
""", 2)
    assert [(call.operation, call.state) for call in calls(tmp_path)] == [(INIT, "completed")]


def test_marks_calls_that_are_captured_into_a_graph(tmp_path):
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
n.cuda.cudaStreamBeginCapture(s.handle, 0)
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.cuda.cudaStreamEndCapture(s.handle, n.ctypes.byref(n.ctypes.c_void_p()))
""")
    assert calls(tmp_path)[1].detail & rings_of.CAPTURED


@pytest.mark.parametrize("calls_in_it", [2, 0])
def test_counts_how_often_a_graph_with_calls_was_launched(tmp_path, calls_in_it):
    subprocess.run([str(DOUBLES / "nccl_program_shared"), "graph", str(calls_in_it)], env=environment(tmp_path, RANK="0", WORLD_SIZE="1"),
                   check=True, timeout=60)
    ring = rings_of.rings(tmp_path / "spool")[0]
    launches = [(slot.count, slot.peer) for slot in ring.slots() if slot.kind == 27]
    assert launches == ([(5, 2)] if calls_in_it else [])
    assert [call.detail & rings_of.CAPTURED > 0 for call in ring.calls()] == [False] + [True] * calls_in_it


def test_a_failed_call_is_said_to_have_failed(tmp_path):
    run(tmp_path, "w = n.Communicator()\nassert n.nccl.ncclCommInitRank(n.ctypes.byref(n.ctypes.c_void_p()), 2, n.Id(), 7) == 4")
    assert [call.state for call in calls(tmp_path)] == ["completed", "failed"]


def test_tells_started_from_waiting_in_the_stream(tmp_path):
    script = """
w, s = n.Communicator(), n.Stream()
if w.rank == 0:
    w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
    w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.time.sleep(0.5)
n.os._exit(0)
"""
    run(tmp_path, script, 2)
    assert [call.state for call in calls(tmp_path)] == ["completed", "started", "enqueued"] or \
        [call.state for call in calls(tmp_path)] == ["completed", "completed", "completed"]


def test_notes_what_the_gpu_finished_right_before_the_end(tmp_path):
    run(tmp_path, """
w, s = n.Communicator(), n.Stream()
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
n.time.sleep(0.1)
for _ in range(40):
    w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
""")
    assert {call.state for call in calls(tmp_path)} == {"completed"}


def test_makes_no_context_and_no_thread_where_events_are_off(tmp_path):
    script = "n.Communicator().all_reduce(n.buffer(4), 4, 'float32', 'sum', n.Stream())\nprint(len(n.os.listdir('/proc/self/task')))"
    threads = int(run(tmp_path, script, agent=False)[0])
    assert int(run(tmp_path, script, DDPDOCTOR_NCCL_EVENTS="0")[0]) == threads
    assert not calls(tmp_path)[1].detail & rings_of.TRACKED
    driver = "print(n.ctypes.CDLL(str(n.FOLDER / 'libcuda.so.1')).double_contexts_made())"
    assert run(tmp_path, script.replace("print(", "n.time.sleep(0.1) or print(") + "\n" + driver)[0].split() == [str(threads + 1), "1"]


def test_answers_who_asks_for_functions_as_the_library_does(tmp_path):
    script = "print([hasattr(n.nccl, 'nccl' + f) for f in ('AllReduce', 'AlltoAll', 'AllReduceConfig', 'AllToAllv', 'NoSuch')])"
    for version in VERSIONS:
        assert run(tmp_path, script, version=version) == run(tmp_path, script, version=version, agent=False)
    script = "print([hasattr(n.ctypes.CDLL(None), 'nccl' + f) for f in ('AllReduce', 'AllToAllv')])"
    assert run(tmp_path, script) == run(tmp_path, script, agent=False) == ["[False, False]\n"]


def test_keeps_two_libraries_apart(tmp_path):
    run(tmp_path, f"""
old, new = n.nccl, n.ctypes.CDLL("{DOUBLES / 'nccl-22707' / 'libnccl.so.2'}")
version = n.ctypes.c_int()
for library, wanted in ((old, 23203), (new, 22707)):
    n.nccl = library
    world, stream = n.Communicator(str(wanted)), n.Stream()
    world.all_reduce(n.buffer(4), 4, "float32", "sum", stream)
    stream.synchronize()
    library.ncclGetVersion(n.ctypes.byref(version))
    assert version.value == wanted
assert hasattr(old, "ncclAlltoAll") and not hasattr(new, "ncclAlltoAll")
""")
    assert [call.operation for call in calls(tmp_path)] == [INIT, ALL_REDUCE, INIT, ALL_REDUCE]


def test_a_forked_child_writes_a_ring_of_its_own(tmp_path):
    run(tmp_path, """
import os
w, s = n.Communicator(), n.Stream()
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
s.synchronize()
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
w.all_reduce(n.buffer(4), 4, "float32", "sum", s)
""")
    assert [call.operation for call in calls(tmp_path)] == [INIT, ALL_REDUCE, ALL_REDUCE]


@pytest.mark.parametrize("kind", ["shared", "static-23203"])
def test_a_linked_program_computes_as_before(tmp_path, kind):
    def say(agent):
        return subprocess.run([str(DOUBLES / f"nccl_program_{kind}")], env=environment(tmp_path, agent=agent, RANK="0", WORLD_SIZE="1"),
                              capture_output=True, timeout=60)
    alone, watched = say(False), say(True)
    assert (watched.returncode, watched.stdout, watched.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert alone.stdout == b"sum 3, code of a null communicator 4\n"
    found = rings_of.rings(tmp_path / "spool")
    if kind == "shared":
        assert [call.operation for call in found[0].calls()] == [INIT, ALL_REDUCE, BROADCAST, END]
    else:
        assert not any(ring.calls() for ring in found.values())  # NCCL inside the program calls itself: these calls are not recorded, and must not be disturbed


def test_sees_nccl_inside_another_library(tmp_path):
    """Exported there and loaded RTLD_LOCAL: the real functions are those of the calling library."""
    script = f"import ctypes, sys\nsys.exit(ctypes.CDLL('{DOUBLES}/inside/libtrainer.so')._Z7programiPPc(0, None))"  # program(int, char**)

    def say(agent):
        return subprocess.run([sys.executable, "-c", script], env=environment(tmp_path, agent=agent, RANK="0", WORLD_SIZE="1"), capture_output=True, timeout=60)
    alone, watched = say(False), say(True)
    assert (watched.returncode, watched.stdout) == (alone.returncode, alone.stdout) == (0, b"sum 3, code of a null communicator 4\n"), watched.stderr
    assert [call.operation for call in rings_of.rings(tmp_path / "spool")[0].calls()] == [INIT, ALL_REDUCE, BROADCAST, END]


def test_can_be_switched_off(tmp_path):
    assert run(tmp_path, SUMS, 2, DDPDOCTOR_NCCL="0")[0].startswith("[1.0, 2.0")
    assert not any(ring.groups() for ring in rings_of.rings(tmp_path / "spool").values())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_profiler_plugin_is_declined_where_calls_are_seen(tmp_path, version):
    run(tmp_path, SUMS, 2, version=version, NCCL_PROFILER_PLUGIN=str(AGENT))
    assert [call.operation for call in calls(tmp_path)] == [INIT, ALL_REDUCE, ALL_REDUCE, ALL_REDUCE, END]


@pytest.mark.parametrize("version", [22605, 22707, 22809, 23007, 23203])
def test_sees_nccl_inside_a_program_as_its_profiler_plugin(tmp_path, version):
    variables = environment(tmp_path, RANK="0", WORLD_SIZE="1", NCCL_PROFILER_PLUGIN=str(AGENT))
    done = subprocess.run([str(DOUBLES / f"nccl_program_static-{version}")], env=variables, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"sum 3, code of a null communicator 4\n")
    found = calls(tmp_path)
    assert [(call.operation, call.count, call.dtype) for call in found] == [(ALL_REDUCE, 1, 6), (BROADCAST, 1, 6)]
    assert all(call.detail & rings_of.ON_STREAM and not call.detail & rings_of.TRACKED for call in found)
    assert rings_of.rings(tmp_path / "spool")[0].groups()[0].name.startswith("nccl:")


REAL = """
import ctypes, os
l = ctypes.CDLL(os.environ["REAL_NCCL"])
l.ncclGetErrorString.restype = l.ncclGetLastError.restype = ctypes.c_char_p
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
v, i, c, s = ctypes.c_int(), Id(), ctypes.c_void_p(), ctypes.c_int()
n, made, size, four = ctypes.byref(v), ctypes.byref(c), ctypes.byref(s), ctypes.c_size_t(4)
def say(name, *arguments):  # what this version lacks stays absent
    print(name, getattr(l, name)(*arguments) if hasattr(l, name) else "absent", l.ncclGetLastError(None))
print(l.ncclGetVersion(n), v.value, [l.ncclGetErrorString(k) for k in range(9)])
say("ncclGetUniqueId", ctypes.byref(i))
say("ncclCommInitRank", made, 1, i, 0)
say("ncclCommInitRank", made, 2, i, 5)
say("ncclCommInitRank", None, 2, i, 0)
say("ncclCommInitRankConfig", made, 1, i, 0, None)
say("ncclCommInitRankScalable", made, 1, 0, 1, ctypes.byref(i), None)
say("ncclCommInitAll", made, 1, None)
for name in ("GroupStart", "GroupEnd", "GroupEnd"):
    say("nccl" + name)
for name in ("Destroy", "Abort", "Finalize", "Revoke", "Suspend", "Resume"):
    say("ncclComm" + name, None, 0)
say("ncclCommGetAsyncError", None, size)
say("ncclCommSplit", None, 0, 0, made, None)
say("ncclCommGrow", None, 2, None, 0, made, None)
for kind in (7, 99):
    say("ncclAllReduce", None, None, four, kind, 0, None, None)
    say("ncclAllReduceConfig", None, None, four, kind, 0, None, None, None)
for name in ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"):
    say("nccl" + name, None, None, four, 7, 0, None, None, None)
say("ncclBcast", None, four, 7, 0, None, None)
say("ncclSend", None, four, 7, 0, None, None)
say("ncclRecv", None, four, 7, 0, None, None)
print([hasattr(l, "nccl" + f) for f in ("AlltoAll", "AllReduceConfig", "AllToAllv")])
"""


@pytest.mark.skipif(not os.environ.get("REAL_NCCL"), reason="no $REAL_NCCL: path of libnccl.so.2 from a wheel")
def test_the_real_library_answers_as_before(tmp_path):
    variables = dict(NCCL_SOCKET_IFNAME="lo", NCCL_DEBUG="WARN")

    def say(agent):
        done = subprocess.run([sys.executable, "-c", REAL], env=environment(tmp_path, agent=agent, **variables), capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout
    def answers(said):  # NCCL's own lines carry pids
        return [line for line in said[1].splitlines() if "NCCL WARN" not in line and " NCCL INFO " not in line]
    alone, watched = say(False), say(True)
    assert watched[0] == alone[0] == 0 and len(answers(alone)) > 30
    assert answers(watched) == answers(alone)
