# SPDX-License-Identifier: Apache-2.0
"""Calls every function that the agent replaces from one return address (a jump behind a switch; libffi) in random order: with the agent,
the function that is called must be the intended one of the intended library. The names come from the agent's own tables."""
import json
import random
import shutil
import subprocess
import sys

import pytest

from guest import AGENT, SOURCE, needs_agent, under

sys.path.insert(0, str(SOURCE / "tests" / "support"))
import interposed  # noqa: E402
from nccl_functions_test import HEADER  # noqa: E402

pytestmark = [needs_agent, pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")]


def arguments(name):
    """The kind of each word of a call: p an address of zeros (an empty vector or string), l an address of addresses (an empty string of the
    old kind), 1 a number. The probes read what callers of these functions pass."""
    if name.startswith("_ZN4c10d"):
        return ("l" if "TCPStore" in name and "Ss" in name else "p") * interposed.WORDS
    registers, stack = "", ""
    for kind in HEADER.get(name, ""):
        if kind == "I":
            stack += "1" * 16
        elif len(registers) < 6:
            registers += "p" if kind in "pMCS" else "1"
        else:
            stack += "p" if kind in "pMCS" else "1"
    return (registers.ljust(6, "p") + stack).ljust(interposed.WORDS, "p")


CALL_ALL = f"""
import ctypes, json, random, sys
folder, seed, agent, names = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
arguments = json.loads(sys.argv[5])
zeros = (ctypes.c_uint64 * 8192)()
strings = (ctypes.c_uint64 * 512)(*[ctypes.addressof(zeros) + 4096] * 512)
WORD = dict(p=ctypes.addressof(zeros), l=ctypes.addressof(strings))
TYPE = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * {interposed.WORDS})
libraries = []
for one in "ab":
    caller, double = (ctypes.CDLL(f"{{folder}}/{{one}}/lib{{part}}_{{one}}.so", ctypes.RTLD_LOCAL) for part in ("callers", "doubles"))
    caller.address_of.restype, double.answer_of.restype = ctypes.c_void_p, ctypes.c_long
    pick = TYPE(ctypes.cast(caller.pick, ctypes.c_void_p).value)
    libraries.append((one, double, ctypes.c_int.in_dll(caller, "which"), pick, caller.address_of))
calls = [(library, i, way) for library in libraries for i in range(len(names)) for way in ("jump", "libffi") for _ in range(2)]
random.Random(seed).shuffle(calls)
wrong = []
for (one, double, which, pick, address_of), i, way in calls:
    who = ctypes.c_int.in_dll(double, "who")
    who.value, which.value, words = -1, i, [WORD.get(kind, 1) for kind in arguments[i]]
    answer = pick(*words) if way == "jump" else TYPE(address_of(i))(*words)
    if who.value != i or (answer ^ double.answer_of(i)) & 0xFFFFFFFF:
        wrong.append((one, names[i], way, names[who.value] if who.value >= 0 else None))
spans = [[int(at, 16) for at in line.split()[0].split("-")] for line in open("/proc/self/maps") if line.rstrip().endswith(agent)]
doors = [sum(any(low <= address_of(i) < high for low, high in spans) for i in range(len(names))) for *_, address_of in libraries]
print(json.dumps([len(calls), wrong, doors]))
"""


def call_all(folder, seed, names, agent):
    spool = folder / "spool"
    spool.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run([sys.executable, "-c", CALL_ALL, str(folder), str(seed), str(AGENT.resolve()), json.dumps(names),
                           json.dumps([arguments(name) for name in names])], capture_output=True, text=True, timeout=120, env=under(spool) if agent else None)
    assert done.returncode == 0, (seed, done.stderr[-2000:])
    return json.loads(done.stdout)


def test_no_function_of_a_library_is_taken_for_another(tmp_path):
    names, seed = interposed.of_libraries(), random.randrange(2**32)
    for one in "ab":
        (tmp_path / one).mkdir()
        interposed.doubles(tmp_path / one, f"libdoubles_{one}.so", names)
        interposed.caller(tmp_path / one, f"libcallers_{one}.so", names, f"-L{tmp_path / one}", f"-l:libdoubles_{one}.so", f"-Wl,-rpath,{tmp_path / one}")
    print("seed", seed)
    calls = 2 * 2 * 2 * len(names)
    assert call_all(tmp_path, seed, names, agent=False) == [calls, [], [0, 0]]
    count, wrong, doors = call_all(tmp_path, seed, names, agent=True)
    assert (count, wrong) == (calls, []), seed
    assert doors[0] == len(names)  # every one was replaced
    assert doors[1] == len([n for n in names if n.startswith(("nccl", "cu"))])  # of a second MPI or c10d in the process none


CALL_LIBC = """
import ctypes, json, os, random, sys
folder, seed, names, never_return = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
double, caller = ctypes.CDLL(folder + "/libc_doubles.so"), ctypes.CDLL(folder + "/libc_callers.so")
armed, who, which = ctypes.c_int.in_dll(double, "armed"), ctypes.c_int.in_dll(double, "who"), ctypes.c_int.in_dll(caller, "which")
magic = ctypes.addressof(ctypes.c_char.in_dll(double, "magic"))
caller.address_of.restype = ctypes.c_void_p
TYPE = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * %d)
pick = TYPE(ctypes.cast(caller.pick, ctypes.c_void_p).value)
words = [magic] * %d

def call(i, way):
    function = pick if way == "jump" else TYPE(caller.address_of(i))
    who.value, which.value, armed.value = -1, i, i
    return function(*words)

calls = [(i, way) for i in range(len(names)) for way in ("jump", "libffi") for _ in range(3)]
random.Random(seed).shuffle(calls)
wrong = []
for i, way in calls:
    if names[i] in never_return:
        child = os.fork()
        if child == 0:
            call(i, way)
        answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        right = answer == 100 + i
    else:
        answer = call(i, way) & 0xFFFFFFFF
        right = answer == 1000 + i and who.value == i
    if not right:
        wrong.append((names[i], way, answer, who.value))
print(json.dumps([len(calls), wrong]))
""" % (interposed.WORDS, interposed.WORDS)


@pytest.mark.parametrize("agent", [False, True])
def test_no_function_of_libc_is_taken_for_another(tmp_path, agent):
    names, seed = [name for name in interposed.exported() if name != "dlsym"], random.randrange(2**32)
    double = interposed.libc_doubles(tmp_path, "libc_doubles.so", names)
    interposed.caller(tmp_path, "libc_callers.so", names)
    print("seed", seed)
    environment = under("", preload=()) if agent else {**under("")}
    environment.update(LD_PRELOAD=f"{AGENT}:{double}" if agent else str(double))
    del environment["DDPDOCTOR_SPOOL"]  # no ring: making it would call the doubles, too
    done = subprocess.run([sys.executable, "-c", CALL_LIBC, str(tmp_path), str(seed), json.dumps(names), json.dumps(sorted(interposed.NEVER_RETURN))],
                          capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, (seed, done.stderr[-2000:])
    assert json.loads(done.stdout) == [6 * len(names), []], seed
