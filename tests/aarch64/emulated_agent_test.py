# SPDX-License-Identifier: Apache-2.0
"""The agent and the program of the AArch64 build under qemu-user: programs behave as without the agent, calls go through its doors and are
recorded, and the program reads what was written. $DDPDOCTOR_AARCH64 is the build, $DDPDOCTOR_AARCH64_ROOT the unpacked packages (`./dev
aarch64`)."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
BUILD, ROOT = (Path(os.environ.get(name, "/nowhere")) for name in ("DDPDOCTOR_AARCH64", "DDPDOCTOR_AARCH64_ROOT"))
AGENT, PROGRAM = BUILD / "libddpdoctor_agent.so", BUILD / "ddpdoctor"
PYTHON = ROOT / "usr/bin/python3.11"
sys.path.insert(0, str(SOURCE / "tests/agent"))
from rings import rings  # noqa: E402

pytestmark = pytest.mark.skipif(not AGENT.is_file() or shutil.which("qemu-aarch64") is None, reason="no build for AArch64, or no qemu-user")


def emulated(*words, spool=None, variables=(), limit=300):
    told = [*variables, *([f"LD_PRELOAD={AGENT}", f"DDPDOCTOR_SPOOL={spool}"] if spool else [])]
    return subprocess.run(["qemu-aarch64", "-L", str(ROOT), *[word for one in told for word in ("-E", one)], *map(str, words)], capture_output=True, text=True,
                          timeout=limit)


def spool_in(folder):
    spool = folder / "spool"
    spool.mkdir(mode=0o700)
    return spool


DOUBLE = r"""
// Functions of c10d by their own names and calling conventions, which answer from their arguments.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>
namespace at { struct Tensor { void* impl; }; }
namespace c10 { namespace detail { template <typename T> struct intrusive_target_default_null_type {}; }
template <typename T, typename N = detail::intrusive_target_default_null_type<T>> struct intrusive_ptr {
  T* target; explicit intrusive_ptr(T* one) : target(one) {} intrusive_ptr(const intrusive_ptr& o) : target(o.target) {} ~intrusive_ptr() { target = nullptr; } }; }
namespace c10d {
struct Work { long value; };
struct AllreduceOptions { std::uint64_t words[8] = {}; };
struct BarrierOptions { std::uint64_t words[8] = {}; };
using WorkPtr = c10::intrusive_ptr<Work>;
struct ProcessGroupGloo {
  std::uint64_t words[64] = {};
  WorkPtr allreduce(std::vector<at::Tensor>&, const AllreduceOptions&);
  void monitoredBarrier(const BarrierOptions&, bool);
  WorkPtr send(std::vector<at::Tensor>&, int, int);
};
}
"""
LIBRARY = DOUBLE + r"""
namespace c10d {
WorkPtr ProcessGroupGloo::allreduce(std::vector<at::Tensor>& tensors, const AllreduceOptions& options) {
  if (options.words[7] == 1) throw std::runtime_error("no such tensor");
  return WorkPtr(new Work{static_cast<long>(words[0] * 100 + tensors.size())});
}
void ProcessGroupGloo::monitoredBarrier(const BarrierOptions& options, bool all) { words[1] = options.words[0] * 10 + all; }
WorkPtr ProcessGroupGloo::send(std::vector<at::Tensor>&, int peer, int tag) { return WorkPtr(new Work{peer * 1000L + tag}); }
}
"""
CALLER = DOUBLE + r"""
#include <cstdio>
int main() {
  c10d::ProcessGroupGloo group;
  group.words[0] = 7;
  std::vector<at::Tensor> none;
  c10d::AllreduceOptions options;
  std::printf("%ld\n", group.allreduce(none, options).target->value);
  options.words[7] = 1;
  try { group.allreduce(none, options); } catch (const std::exception& thrown) { std::printf("threw %s\n", thrown.what()); }
  c10d::BarrierOptions barrier;
  barrier.words[0] = 3;
  group.monitoredBarrier(barrier, true);
  std::printf("%lu\n", static_cast<unsigned long>(group.words[1]));
  std::printf("%ld\n", group.send(none, 5, 9).target->value);
}
"""


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_calls_of_c10d_go_through_the_doors(tmp_path, binding):
    (tmp_path / "library.cc").write_text(LIBRARY)
    (tmp_path / "caller.cc").write_text(CALLER)
    compiler = ["aarch64-linux-gnu-g++", "-std=c++20", "-O1", f"-Wl,-z,{binding}"]
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", tmp_path / "libtorch_cpu.so", tmp_path / "library.cc"], check=True)
    subprocess.run([*compiler, "-o", tmp_path / "caller", tmp_path / "caller.cc", tmp_path / "libtorch_cpu.so", f"-Wl,-rpath,{tmp_path}"], check=True)
    bare = emulated(tmp_path / "caller")
    assert bare.stdout.splitlines() == ["700", "threw no such tensor", "31", "5009"], bare
    spool = spool_in(tmp_path)
    watched = emulated(tmp_path / "caller", spool=spool)
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, bare.stdout, "")
    [ring] = rings(spool).values()
    kinds = [event.kind for event in ring.events if event.kind in ("collective", "point-to-point")]
    assert kinds.count("collective") >= 5 and "point-to-point" in kinds, ring.events  # begun; failed; the barrier's end
    assert [event.peer for event in ring.events if event.kind == "point-to-point"][0] == 5


SCRIPT = """
import os, subprocess, sys, threading
from multiprocessing.shared_memory import SharedMemory
shared = SharedMemory(create=True, size=8192)
pid = os.fork()
if pid == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
got = []
threads = [threading.Thread(target=got.append, args=(i,)) for i in range(20)]
[one.start() for one in threads]; [one.join() for one in threads]
print(sorted(got) == list(range(20)))
try:
    os.execv('/no/such', ['x'])
except OSError as error:
    print(error.errno)
shared.close(); shared.unlink()
"""


def test_an_interpreter_behaves_as_without_it(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    bare = emulated(PYTHON, tmp_path / "script.py")
    assert bare.returncode == 0, bare.stderr
    spool = spool_in(tmp_path)
    watched = emulated(PYTHON, tmp_path / "script.py", spool=spool)
    assert (watched.returncode, watched.stdout, watched.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    ring = next(ring for ring in rings(spool).values() if ring.of("shm-size"))
    [size] = ring.of("shm-size")
    assert size.count == 8192 and ("script.py", 4) in [(Path(file).name, line) for file, _, line in ring.stack(size)]
    assert ring.python_version.startswith("3.11.")
    assert ring.of("fork")


def test_the_program_starts_and_reads_a_recording(tmp_path):
    assert re.fullmatch(r"ddpdoctor [0-9.]+\n", emulated(PROGRAM, "--version").stdout)
    recording = next(file for file in sorted((SOURCE / "tests/golden/recordings").glob("*/*.ddpd")))
    report = tmp_path / "report.json"
    emulated(PROGRAM, "report", recording, "-o", report)
    assert json.loads(report.read_text())["verdict"]


def test_the_files_are_for_this_machine_and_old_images():
    def readelf(*words):
        return subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True, check=True).stdout

    for file in (AGENT, PROGRAM):
        assert "AArch64" in readelf("-h", file)
    versions = [tuple(map(int, pair)) for pair in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", AGENT))]
    assert versions and max(versions) <= (2, 17)
    assert sorted(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", AGENT))) == ["libc.so.6", "libdl.so.2"]
    assert "NEEDED" not in readelf("-d", PROGRAM)
