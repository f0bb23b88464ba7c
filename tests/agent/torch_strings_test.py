# SPDX-License-Identifier: Apache-2.0
"""Names that torch passes in C++ strings, in both ABIs of libstdc++: a double of c10d with torch's own mangled names, compiled twice."""
import shutil
import struct
import subprocess

import pytest

from guest import SOURCE, behaviour, needs_agent
from rings import rings

pytestmark = needs_agent

TYPES = r'''
#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>
namespace at { struct Tensor { void* p = nullptr; ~Tensor(); }; }
namespace c10 {
namespace detail { template <class T> struct intrusive_target_default_null_type {}; }
template <class T, class N = detail::intrusive_target_default_null_type<T>> struct intrusive_ptr { T* p = nullptr; ~intrusive_ptr(); };
}
namespace c10d {
struct ProcessGroup;
using Names = std::unordered_map<size_t, std::string>;
using Buckets = std::vector<std::vector<size_t>>;
struct Reducer {
  Reducer(std::vector<at::Tensor>, Buckets, LIMITS c10::intrusive_ptr<ProcessGroup>, std::vector<bool>, int64_t, bool, bool, Names, int64_t LAST);
  void prepare_for_backward(const std::vector<at::Tensor>&);
  void mark_variable_ready(size_t);
};
struct TCPStore {
  std::vector<uint8_t> get(const std::string&);
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&);
};
}
'''
LIBRARY = TYPES + r'''
at::Tensor::~Tensor() {}
template <class T, class N> c10::intrusive_ptr<T, N>::~intrusive_ptr() {}
template struct c10::intrusive_ptr<c10d::ProcessGroup>;
namespace c10d {
Reducer::Reducer(std::vector<at::Tensor>, Buckets, LIMITS c10::intrusive_ptr<ProcessGroup>, std::vector<bool>, int64_t cap, bool unused, bool view, Names names, int64_t first LAST) {
  if (names.size() != 3 || cap != 25 || !unused || view || first != 1) __builtin_trap();
}
void Reducer::prepare_for_backward(const std::vector<at::Tensor>&) {}
void Reducer::mark_variable_ready(size_t) {}
std::vector<uint8_t> TCPStore::get(const std::string& key) { return {key.begin(), key.end()}; }
void TCPStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) { if (keys.empty()) throw 1; }
}
'''
PROGRAM = TYPES + r'''
#include <cstdio>
int main() {
  using namespace c10d;
  Reducer reducer(std::vector<at::Tensor>(3), Buckets{{0, 1, 2}}, LIMITS_GIVEN {}, {}, 25, true, false, {{0, "a"}, {1, "layers.0.attention.weight"}, {2, "head.bias"}}, 1 LAST_GIVEN);
  reducer.prepare_for_backward({});
  reducer.mark_variable_ready(1);
  TCPStore store;
  std::printf("%zu\n", store.get("default_pg/0//key_of_get").size());
  store.wait({"key_of_wait", "other"}, std::chrono::milliseconds(9));
  try { store.wait({}, std::chrono::milliseconds(9)); } catch (int) { std::puts("thrown"); }
}
'''
KINDS = {  # the constructor as declared in torch 1.13 and 2.1, 2.4 and 2.6, 2.7, 2.8
    "limits by value": ("-DLIMITS=std::vector<size_t>,", "-DLAST="),
    "limits by reference": ("-DLIMITS=const std::vector<size_t>&,", "-DLAST="),
    "no limits": ("-DLIMITS=", "-DLAST="),
    "two more": ("-DLIMITS=", "-DLAST=,bool,bool"),
}
REDUCER_AT = 4096 + 16384 * 64 + 8192 * 16 + 64 * 256


# wheels with old strings ended before the third kind began
@pytest.mark.parametrize("kind,abi", [(kind, abi) for kind in KINDS for abi in ([0, 1] if kind.startswith("limits") else [1])])
def test_names_of_parameters_and_keys_are_read(kind, abi, tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    flags = ["-std=c++17", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *KINDS[kind], "-DLIMITS_GIVEN=" + ("{}," if "limits b" in kind else ""),
             "-DLAST_GIVEN=" + (",true,false" if kind == "two more" else "")]
    folder = tmp_path / "torch" / "lib"
    folder.mkdir(parents=True)
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.4.1+cu124'\n")
    for name, text, more in (("library.cc", LIBRARY, ["-shared", "-fPIC", "-o", folder / "libtorch_cpu.so"]),
                             ("program.cc", PROGRAM, ["-o", tmp_path / "program", folder / "libtorch_cpu.so", f"-Wl,-rpath,{folder}"])):
        (tmp_path / name).write_text(text)
        subprocess.run(["g++", *flags, tmp_path / name, *more], check=True)
    exported = subprocess.run(["nm", "-D", "--defined-only", folder / "libtorch_cpu.so"], capture_output=True, text=True, check=True).stdout
    hooked = (SOURCE / "agent" / "c10d" / "c10d_hooks.inc").read_text()
    assert all(line.split()[-1] + "," in hooked for line in exported.splitlines() if "ReducerC" in line or "8TCPStore" in line)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    assert behaviour([tmp_path / "program"], spool=spool) == (0, b"24\nthrown\n", b"")
    [ring] = rings(spool).values()
    assert [event.text for event in ring.of("store")][::2] == ["default_pg/0//key_of_get", "key_of_wait", ""]
    parameters, generation, _, find_unused = struct.unpack_from("<IIII", ring.data, REDUCER_AT + 8)
    assert (parameters, generation, find_unused) == (3, 1, 1)
    named = [struct.unpack_from("<IIII", ring.data, REDUCER_AT + 64 + 16 * i) for i in range(3)]
    assert [ring._text(name) for _, _, name, _ in named] == ["a", "layers.0.attention.weight", "head.bias"]
    assert [ready for ready, _, _, _ in named] == [0, 1, 0]
