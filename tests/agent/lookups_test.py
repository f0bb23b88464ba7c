# SPDX-License-Identifier: Apache-2.0
"""Programs check in many ways whether a function exists. With the agent every way must answer as without it, for every function that the
agent replaces: absent if the process has none, present if it has one. The names come from the agent's own tables."""
import json
import shutil
import subprocess
import sys

import pytest

from guest import SOURCE, behaviour, needs_agent

sys.path.insert(0, str(SOURCE / "tests" / "support"))
import interposed  # noqa: E402

pytestmark = [needs_agent, pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")]
EXTRA = ["ncclGetVersion", "hipMalloc", *[f"ncclProfiler_v{number}" for number in range(1, 9)]]

ASK = r"""
import ctypes, ctypes.util, json, os, sys
names, load = json.loads(sys.argv[1]), sys.argv[2:]
kept = [ctypes.CDLL(path, ctypes.RTLD_GLOBAL) for path in load]
program = ctypes.CDLL(None)
dl = ctypes.CDLL(None)
dl.dlsym.restype = dl.dlvsym.restype = ctypes.c_void_p
handle = ctypes.c_void_p
ask = lambda where, name: bool(dl.dlsym(handle(where), name.encode()))
askv = lambda where, name, version: bool(dl.dlvsym(handle(where), name.encode(), version))
DEFAULT, NEXT = 0, -1
ways = {
    "CDLL(None)": lambda n: hasattr(program, n),
    "RTLD_DEFAULT": lambda n: ask(DEFAULT, n),
    "handle": lambda n: ask(program._handle, n),
    "libc": lambda n: hasattr(kept_libc, n),
    "dlvsym": lambda n: askv(DEFAULT, n, b"GLIBC_2.2.5"),
    "dlvsym of no version": lambda n: askv(DEFAULT, n, b"GLIBC_9.9"),
    "dlvsym handle": lambda n: askv(program._handle, n, b"GLIBC_9.9"),
}
kept_libc = ctypes.CDLL("libc.so.6")
found = {way: [n for n in names if asked(n)] for way, asked in ways.items()}
found["find_library"] = [ctypes.util.find_library(n) for n in ("nccl", "cuda", "cudart", "mpi", "torch_cpu", "ddpdoctor_agent")]
print(json.dumps(found))
"""
NEXT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static const char* const name[] = {%s};
int main(int count, char** words) {
  for (int i = 1; i < count; ++i) if (!dlopen(words[i], RTLD_NOW | RTLD_GLOBAL)) return 2;
  for (unsigned i = 0; i < sizeof name / sizeof *name; ++i) {
    if (dlsym(RTLD_NEXT, name[i])) printf("next %%s\n", name[i]);
    if (dlsym(RTLD_DEFAULT, name[i])) printf("default %%s\n", name[i]);
  }
}
"""


def alike(command, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700, exist_ok=True)
    bare = behaviour(command)
    assert behaviour(command, spool=spool) == bare
    assert bare[0] == 0, bare
    return bare[1].decode()


@pytest.fixture
def library(tmp_path):
    """Has every function of NCCL, MPI, CUDA and c10d."""
    return interposed.doubles(tmp_path, "libeverything.so", interposed.of_libraries())


def test_exports_nothing_that_libc_has_not():
    libc = subprocess.run([sys.executable, "-c", "import ctypes, sys; c = ctypes.CDLL('libc.so.6'); print([n for n in sys.argv[1:] if not hasattr(c, n)])",
                           *interposed.exported()], capture_output=True, text=True, check=True).stdout
    assert libc == "[]\n"


@pytest.mark.parametrize("there", [False, True])
def test_lookups_by_name(there, tmp_path, library):
    names = [*interposed.of_libraries(), *interposed.exported(), *EXTRA]
    found = json.loads(alike([sys.executable, "-c", ASK, json.dumps(names), *([library] if there else [])], tmp_path))
    assert set(found["RTLD_DEFAULT"]) == set(interposed.exported()) | set(interposed.of_libraries() if there else ())


@pytest.mark.parametrize("there", [False, True])
def test_next_and_default_of_a_program(there, tmp_path, library):
    names = [*interposed.of_libraries(), *interposed.exported(), *EXTRA]
    (tmp_path / "next.c").write_text(NEXT % ", ".join(f'"{n}"' for n in names))
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "next", tmp_path / "next.c"], check=True)
    said = alike([tmp_path / "next", *([library] if there else [])], tmp_path)
    assert said.count("default ") == len(interposed.exported()) + (len(interposed.of_libraries()) if there else 0)


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("there", [False, True])
def test_weak_references_of_a_program(there, binding, tmp_path, library):
    names = [*interposed.of_libraries(), *EXTRA]
    needs = ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}"] if there else []
    program = interposed.asker(tmp_path, "asks", names, f"-Wl,-z,{binding}", *needs)
    assert alike([program], tmp_path).split() == (interposed.of_libraries() if there else [])


OPEN = "import ctypes, sys\nkept = [ctypes.CDLL(p, ctypes.RTLD_GLOBAL) for p in sys.argv[2:]]\nctypes.CDLL(sys.argv[1]).print_present()"


@pytest.mark.parametrize("there", [False, True])
def test_weak_references_of_a_library_that_is_opened(there, tmp_path, library):
    asks = interposed.asker(tmp_path, "libasks.so", [*interposed.of_libraries(), *EXTRA], "-shared")
    said = alike([sys.executable, "-c", OPEN, asks, *([library] if there else [])], tmp_path)
    assert said.split() == (interposed.of_libraries() if there else [])


def test_a_library_that_needs_a_function_which_is_not_there_cannot_be_opened(tmp_path):
    """As in an extension built for CUDA, where `except ImportError` is how its user detects that there is none."""
    names = interposed.of_libraries()
    for name in (names[0], names[100], names[-1], "cudaMalloc"):
        needs = interposed.caller(tmp_path, "libneeds.so", [name])
        said = alike([sys.executable, "-c", "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError as e: print(e)", needs], tmp_path)
        assert f"undefined symbol: {name}" in said


@pytest.mark.parametrize("binding", ["lazy", "now"])
@pytest.mark.parametrize("library_name, name", [("libnccl.so.2", "ncclAllReduce"), ("libmpi.so.40", "PMPI_Init"), ("libcudart.so.12", "cudaMalloc"),
                                                ("libtorch_cpu.so", next(n for n in interposed.of_libraries() if "c10d" in n))])
def test_a_lookup_in_a_constructor_runs_no_other_constructor(library_name, name, binding, tmp_path):
    """libGLdispatch looks up functions while it is initialised, before libGLX, which needs it: as in torch 1.13 of Debian."""
    interposed.build(tmp_path, "libfirst.so", "extern void* dlsym(void*, const char*);\nint ready;\n"
                     "__attribute__((constructor)) static void start(void) { dlsym(0, \"cuInit\"); ready = 1; }\n", "-shared")
    here = [f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}", "-Wl,--no-as-needed", f"-Wl,-z,{binding}", f"-Wl,-soname,{library_name}"]
    interposed.build(tmp_path, library_name, f'extern int ready, puts(const char*);\nlong f(void) __asm__("{name}");\nlong f(void) {{ return 5; }}\n'
                     '__attribute__((constructor)) static void start(void) { puts(ready ? "in order" : "too early"); }\n', "-shared", *here, "-lfirst")
    user = interposed.build(tmp_path, "libuser.so", f'extern long f(void) __asm__("{name}");\nlong use(void) {{ return f(); }}\n', "-shared",
                            *here[:-1], tmp_path / library_name)
    assert alike([sys.executable, "-c", "import ctypes, sys\nctypes.CDLL(sys.argv[1])", user], tmp_path) == "in order\n"
