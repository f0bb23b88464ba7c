# SPDX-License-Identifier: Apache-2.0
"""The Python line of an event, read from the interpreter's own frames: correct in every CPython since 3.8 that is installed here, absent
and harmless if frames are not where the version says.

$DDPDOCTOR_PYTHONS names further interpreters (paths separated by colons): a debug build, an alpha, --with-trace-refs."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from guest import behaviour, behaves_alike, compiled, needs_agent
from rings import rings

pytestmark = needs_agent

VERSIONS = [f"3.{minor}" for minor in range(8, 16)]
FURTHER = [path for path in os.environ.get("DDPDOCTOR_PYTHONS", "").split(":") if path]

SCRIPT = '''
import sys, threading, traceback
from multiprocessing.shared_memory import SharedMemory

said = []
def make(name):
    said.append((name, list(stack()))); kept = SharedMemory(name, create=True, size=64)
    kept.close(); kept.unlink()

def stack():
    frame = sys._getframe(1)
    while frame:
        yield frame.f_code.co_name, frame.f_lineno
        frame = frame.f_back

class Model:
    def forward(self, depth):
        if depth:
            return self.forward(depth - 1)
        make("deep")

def steps():
    yield 1
    make("generated")
    yield 2

make("plain")
Model().forward(
    9,
)
for step in steps(): pass
[make(name) for name in ["in a list"]]
(lambda: make("by a lambda"))()
sorted([2, 1], key=lambda number: make(f"called back {number}") or number)
thread = threading.Thread(target=make, args=("in a thread",)); thread.start(); thread.join()
eval(compile("make('of a strange file')", "gel\\u00f6scht.py", "eval"))
for name, lines in said: print(repr((name, lines)))
'''


def pyenv(version):
    found = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    return str(found[-1]) if found else None


def runs(python, version):
    """True if `python` is CPython of this version: a name on the PATH may be a shim that only prints an error."""
    ask = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return False
    return done.stdout.split() == ["CPython", version]


def interpreter(version):
    for python in (pyenv(version), shutil.which(f"python{version}"), shutil.which("python3"), *FURTHER):
        if python is not None and runs(python, version):
            return python
    pytest.skip(f"no CPython {version} here: neither in pyenv, on the PATH nor in $DDPDOCTOR_PYTHONS")


def seen(ring, event):
    """(function, line) of the frames in the script, innermost first."""
    return [(function.split(".")[-1], line) for file, function, line in ring.stack(event) if not file.startswith("/") or file.endswith("/script.py")]


def run_script(python, folder):
    script = folder / "script.py"
    script.write_text(SCRIPT)
    spool = folder / "spool"
    spool.mkdir(mode=0o700)
    code, out, err = behaviour([python, script], spool=spool)
    assert code == 0, err.decode()
    ring = next(ring for ring in rings(spool).values() if ring.of("shm-open"))
    return [eval(line) for line in out.decode().splitlines()], ring, {event.text.lstrip("/"): event for event in ring.of("shm-open")}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_release_has_its_lines(version, tmp_path):
    said, ring, events = run_script(interpreter(version), tmp_path)
    assert not ring.disabled & 9 and ring.python_version.startswith(version + ".")
    assert len(said) == 9
    for name, lines in said:
        shown = [(function, line) for function, line in lines if function not in ("run", "_bootstrap", "_bootstrap_inner")]
        assert seen(ring, events[name]) == shown[:len(seen(ring, events[name]))], name
        assert len(seen(ring, events[name])) >= min(len(shown), 20) - (name == "in a thread"), name


@pytest.mark.parametrize("python", FURTHER)
def test_further_builds_have_right_lines_or_none(python, tmp_path):
    said, ring, events = run_script(python, tmp_path)
    if ring.disabled & 9:
        assert all(ring.stack(event) == [] for event in events.values())
        return
    for name, lines in said:
        assert set(seen(ring, events[name])) <= set(lines) and ("make", dict(lines)["make"]) in seen(ring, events[name])


def test_one_frame_is_enough_for_a_line(tmp_path):
    """A module that calls a C function itself: how its frames are linked cannot be read, and nothing is followed."""
    script = tmp_path / "script.py"
    script.write_text("import _posixshmem, os\nfor i in range(80):\n    os.close(_posixshmem.shm_open('/one', os.O_CREAT | os.O_RDWR, mode=0o600))\n"
                      "_posixshmem.shm_unlink('/one')\n")
    code, _, err = behaviour(["/usr/bin/env", "python3", "-S", script], spool=tmp_path)
    assert code == 0, err
    [ring] = rings(tmp_path).values()
    assert {tuple(ring.stack(event)) for event in ring.of("shm-open")} == {((str(script), "<module>", 3),)}


# An interpreter of a known version whose structures are anywhere: pointers to nothing, to itself, to the types, to endless frames. Its
# functions end the process if they are called with something that is not a code object.
LIAR = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
char PyCode_Type[400], PyUnicode_Type[400], PyBytes_Type[400], PyFrame_Type[400];
static uint64_t* arena;
static char version[64];
enum { WORDS = 4096 };
const char* Py_GetVersion(void) { return version; }
int Py_IsInitialized(void) { return 1; }
void* PyGILState_GetThisThreadState(void) { return arena; }
int PyCode_Addr2Line(char* code, int at) {
  if (*(void**)(code + 8) != PyCode_Type) abort();
  return at < 0 ? 7 : 8;
}
static uint64_t word(uint64_t kind, char* gone) {
  uint64_t inside = (uint64_t)(arena + rand() % WORDS);
  switch (kind) {
    case 0: return 0;
    case 1: return inside & ~7ULL;
    case 2: return (uint64_t)gone + rand() % 4096;
    case 3: return rand();
    case 4: return (uint64_t)PyCode_Type;
    case 5: return (uint64_t)PyUnicode_Type;
    case 6: return (uint64_t)PyBytes_Type;
    case 7: return (uint64_t)PyFrame_Type;
    case 8: return 0x800000000000ULL + (uint64_t)rand();
    case 9: return (uint64_t)pthread_self();
    default: return (uint64_t)arena;
  }
}
int main(int count, char** words) {
  for (int seed = 0; seed < 60; ++seed) {
    for (int minor = 8; minor <= 15; ++minor) {
      if (fork() == 0) {
        srand(seed * 100 + minor);
        snprintf(version, sizeof version, "3.%d.1 (a liar)", minor);
        arena = mmap(0, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char* gone = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (seed == 0) { for (int i = 0; i < WORDS; ++i) arena[i] = (uint64_t)arena; }  /* a frame that is its own caller */
        else if (seed == 1) munmap(arena, WORDS * 8);
        else for (int i = 0; i < WORDS; ++i) arena[i] = word(rand() % 11, gone);
        int ident[] = {176, 176, 176, 152, 136, 152, 152, 176};
        if (seed > 2) arena[ident[minor - 8] / 8] = (uint64_t)pthread_self();
        for (int i = 0; i < 20; ++i) close(shm_open("/ddpdoctor_liar", O_CREAT | O_RDWR, 0600));
        shm_unlink("/ddpdoctor_liar");
        _exit(0);
      }
      int status = 0;
      wait(&status);
      if (status != 0) { printf("3.%d, seed %d: status %x\n", minor, seed, status); return 1; }
      if (seed < 56) { char name[300]; snprintf(name, sizeof name, "rm -f %s/*.ring", words[1]); if (system(name)) return 2; }
    }
  }
  return 0;
}
'''


def test_an_interpreter_that_lies_elsewhere_is_left_alone(tmp_path):
    program = compiled(tmp_path, "liar", LIAR, "-rdynamic", "-pthread", "-w")
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    assert behaves_alike([program, spool], spool) == (0, b"", b"")
    left = rings(spool).values()
    assert left and all(ring.stack(event) == [] for ring in left for event in ring.of("shm-open"))
    assert any(ring.disabled & 8 for ring in left)
