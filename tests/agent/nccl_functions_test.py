# SPDX-License-Identifier: Apache-2.0
"""Every function of NCCL and RCCL that the agent replaces: its arguments arrive unchanged, its result is returned, and the ring shows which
operation it was and its arguments. The library behind the agent (tests/doubles/nccl/nccl_echo.cc) only stores its arguments.

Needs the target nccl_doubles next to $DDPDOCTOR."""
import json
import subprocess
import sys

import pytest

import nccl_probe_test as nccl
from nccl_probe_test import DOUBLES, rings_of
from nccl_table_test import table

ECHO = DOUBLES / "echo"
pytestmark = [nccl.pytestmark, pytest.mark.skipif(not (ECHO / "librccl.so.1").is_file(), reason="no echo of NCCL beside $DDPDOCTOR (target nccl_doubles)")]

# As nccl.h of 2.10 to 2.32 and rccl.h declare them. What is recorded: N count, K count that is an int, T type, O reduce op, R root or other
# side, C communicator, S stream. What is not: p pointer, M communicators to be filled in, n size, i int, u unsigned, I an id by value.
COLLECTIVES = {
    "ncclAllReduce": "ppNTOCS", "ncclBroadcast": "ppNTRCS", "ncclReduce": "ppNTORCS", "ncclAllGather": "ppNTCS", "ncclReduceScatter": "ppNTOCS",
    "ncclAlltoAll": "ppNTCS", "ncclGather": "ppNTRCS", "ncclScatter": "ppNTRCS"}
HEADER = {
    **COLLECTIVES, **{name + "Config": shape + "p" for name, shape in COLLECTIVES.items()},
    "ncclBcast": "pNTRCS", "ncclAllToAll": "ppNTCS", "ncclAllToAllv": "ppppppTCS", "ncclAlltoAllv": "ppppppTCS", "ncclAllReduceWithBias": "ppNTOCSp",
    "ncclSend": "pNTRCS", "ncclRecv": "pNTRCS", "ncclPutSignal": "pNTRpniiuCS", "ncclSignal": "RiiuCS", "ncclWaitSignal": "KpCS",
    "ncclGroupStart": "", "ncclGroupEnd": "", "ncclGroupSimulateEnd": "p", "ncclGetUniqueId": "p", "ncclCommGetUniqueId": "Cp",
    "ncclCommInitRank": "MiIi", "ncclCommInitRankConfig": "MiIip", "ncclCommInitRankScalable": "Miiipp", "ncclCommInitAll": "Mip",
    "ncclCommSplit": "CiiMp", "ncclCommShrink": "CpiMpi", "ncclCommGrow": "CipiMp", "ncclCommSuspend": "Ci", "ncclCommResume": "C",
    "ncclCommRevoke": "Ci", "ncclCommFinalize": "C", "ncclCommDestroy": "C", "ncclCommAbort": "C", "ncclCommGetAsyncError": "Cp",
    "ncclRedOpCreatePreMulSum": "ppiiC", "ncclRedOpDestroy": "iC", "ncclCommWindowRegister": "CpnMi", "ncclCommWindowDeregister": "Cp",
    "ncclDevCommCreate": "Cpp", "ncclDevCommDestroy": "Cp"}

# The number of the operation (wire/events.h) if a call is recorded; the end of a communicator that was never used is not.
OPERATIONS = {
    **{name + more: number for name, number in zip(COLLECTIVES, (1, 2, 3, 4, 7, 8, 5, 6)) for more in ("", "Config")},
    "ncclBcast": 2, "ncclAllToAll": 8, "ncclAllToAllv": 8, "ncclAlltoAllv": 8, "ncclAllReduceWithBias": 1, "ncclSend": 11, "ncclRecv": 12,
    "ncclPutSignal": 37, "ncclSignal": 38, "ncclWaitSignal": 39, "ncclCommInitRank": 32, "ncclCommInitRankConfig": 32, "ncclCommInitRankScalable": 32,
    "ncclCommShrink": 32, "ncclCommGrow": 32, "ncclCommSplit": 33, "ncclCommFinalize": 34, "ncclCommWindowRegister": 35, "ncclDevCommCreate": 36}
MESSAGES = {"ncclSend", "ncclRecv", "ncclPutSignal", "ncclSignal", "ncclWaitSignal"}
COUNT, INT_COUNT, FLOAT32, MAX, OTHER = 0x123456789AB, 5, 7, 2, 3
C10_FLOAT32, C10_MAX = 6, 4

CALL_EACH = """
import ctypes, json, sys
path, linked, functions = sys.argv[1], sys.argv[2] == "linked", json.loads(sys.argv[3])
KEPT = dict(N=%d, K=%d, T=%d, O=%d, R=%d)
TYPES = dict(p=ctypes.c_void_p, M=ctypes.c_void_p, C=ctypes.c_void_p, S=ctypes.c_void_p, N=ctypes.c_size_t, n=ctypes.c_size_t, u=ctypes.c_uint)
BITS = dict(p=64, M=64, C=64, S=64, N=64, n=64)

class Id(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 16)]

echo = ctypes.CDLL(path, ctypes.RTLD_GLOBAL if linked else ctypes.RTLD_LOCAL)
asked = ctypes.CDLL(None) if linked else echo  # as a program does that is linked to it, or one that opens it
word = lambda name, kind=ctypes.c_int: kind.in_dll(echo, "nccl_echo_" + name)
memory = [(ctypes.c_uint64 * 64)() for _ in range(16)]

def values(shape, own):
    # where the library writes communicators to, stand handles
    for at, kind in enumerate(shape):
        block = memory[at]
        for i in range(64):
            block[i] = own + 64 * (at + 1) + i if kind == "M" else 0
        if kind in "pMCS":
            yield own if kind == "C" else ctypes.addressof(block)
        elif kind == "I":
            yield Id((ctypes.c_uint64 * 16)(*range(own, own + 16)))
        else:
            yield KEPT.get(kind) or {"n": 0xFEDCBA98765, "u": 0xFFFFFFF1}.get(kind, at + 2)

def arrived(shape, given):
    words, registers, stack, wrong = word("words", ctypes.c_uint64 * 24), 0, 6, []
    for kind, value in zip(shape, given):
        if kind == "I":  # by value: on the stack
            same = list(words[stack:stack + 16]) == list(value.words)
            stack += 16
        else:
            at, registers, stack = (registers, registers + 1, stack) if registers < 6 else (stack, registers, stack + 1)
            same = (words[at] ^ value) %% (1 << BITS.get(kind, 32)) == 0
        wrong += [] if same else [kind]
    return wrong

for number, (name, shape) in enumerate(functions):
    function = getattr(asked, name)
    function.argtypes = [Id if kind == "I" else TYPES.get(kind, ctypes.c_int) for kind in shape]
    for answer in (3, 0):
        word("answer").value, before = answer, word("calls").value
        given = list(values(shape, 0x100000 * (number + 1)))
        said = function(*given)
        assert said == answer, (name, said, answer)
        assert word("calls").value == before + 1 and word("name", ctypes.c_char * 64).value.decode() == name, name
        assert arrived(shape, given) == [], (name, shape, arrived(shape, given))
print("all", len(functions))
""" % (COUNT, INT_COUNT, FLOAT32, MAX, OTHER)


def call_each(tmp_path, names, library, way, **more):
    functions = json.dumps([(name, HEADER[name]) for name in names])
    done = subprocess.run([sys.executable, "-c", CALL_EACH, str(ECHO / library), way, functions], capture_output=True, text=True, timeout=60,
                          env=nccl.environment(tmp_path, RANK="0", WORLD_SIZE="2", **more))
    assert (done.returncode, done.stdout) == (0, f"all {len(names)}\n"), done.stderr


def test_knows_the_arguments_of_every_function():
    assert set(HEADER) == {name for _, name in table()}
    assert set(OPERATIONS) <= set(HEADER)


@pytest.mark.parametrize("way", ["linked", "opened"])
def test_without_us_all_arguments_arrive(tmp_path, way):
    call_each(tmp_path, list(HEADER), "libnccl.so.2", way, agent=False)


@pytest.mark.parametrize("library", ["libnccl.so.2", "librccl.so.1"])
@pytest.mark.parametrize("way", ["linked", "opened"])
def test_passes_every_function_on_and_records_it(tmp_path, way, library):
    names = list(HEADER)
    call_each(tmp_path, names, library, way)
    ring = rings_of.rings(tmp_path / "spool")[0]
    found = ring.calls()
    wanted = [name for name in names if name in OPERATIONS for _ in range(2)]
    assert [call.operation for call in found] == [OPERATIONS[name] for name in wanted]
    for at, (name, call) in enumerate(zip(wanted, found)):
        shape, on_stream = HEADER[name], "S" in HEADER[name]
        assert rings_of.KINDS[call.kind] == ("message" if name in MESSAGES else "collective"), name
        assert call.state == ("failed" if at % 2 == 0 else "enqueued" if on_stream else "completed"), name
        assert bool(call.detail & rings_of.ON_STREAM) == on_stream, name
        if on_stream:
            assert call.count == (COUNT if "N" in shape else INT_COUNT if "K" in shape else -1), name
            assert call.dtype == (C10_FLOAT32 if "T" in shape else 255), name
            assert call.reduce_op == (C10_MAX if "O" in shape else 255), name
            assert call.peer == (OTHER if "R" in shape else -1), name
    assert {group.backend_name for group in ring.groups()} == {library[3:7]}


def test_records_nothing_when_switched_off(tmp_path):
    call_each(tmp_path, list(HEADER), "libnccl.so.2", "linked", DDPDOCTOR_NCCL="0")
    assert not any(ring.calls() for ring in rings_of.rings(tmp_path / "spool").values())
