# SPDX-License-Identifier: Apache-2.0
"""Options and tensors of calls in the layouts of different torch releases, in a double of c10d without a usable version text: what matches
a known release is read, the rest is omitted and the ring says so."""
import shutil
import subprocess

import pytest

from guest import behaviour, needs_agent
from rings import rings

pytestmark = needs_agent

TYPES = r'''
#include <cstdint>
#include <vector>
namespace c10 {
struct TensorImpl {
  TensorImpl(std::vector<int64_t> shape, uint16_t type);
  virtual ~TensorImpl();
  char before[SIZES - 8] = {};
  uint64_t dimensions;
  union { int64_t inside[10]; int64_t* outside; };
  int64_t offset = 0, count = 1;
  uint16_t type;
};
namespace detail { template <class T> struct intrusive_target_default_null_type {}; }
template <class T, class N = detail::intrusive_target_default_null_type<T>> struct intrusive_ptr { T* p = nullptr; ~intrusive_ptr() {} };
}
namespace at { struct Tensor { c10::TensorImpl* p; ~Tensor() {} }; }
namespace c10d {
struct Work;
using Result = c10::intrusive_ptr<Work>;
using Tensors = std::vector<at::Tensor>;
#ifdef NO_TYPE
struct Op { uint64_t words[2] = {WORD, 0}; uint8_t kind; void* supplement = nullptr; };
#else
struct NAME { virtual ~NAME(); char counts[COUNTS] = {}; uint8_t kind = 0; void* supplement = nullptr; };
using Op = NAME;
#endif
struct AllreduceOptions { Op op; int64_t timeout = 1800000, more[4] = {}; };
struct ReduceOptions { Op op; int64_t root, tensor = 0, timeout = -1, more[4] = {}; };
struct BroadcastOptions { int64_t root, tensor = 0, timeout = -1; };
struct GatherOptions { int64_t root, timeout = -1; };
struct ProcessGroupGloo {
  virtual ~ProcessGroupGloo();
  virtual Result allreduce(Tensors&, const AllreduceOptions&);
  virtual Result reduce(Tensors&, const ReduceOptions&);
  virtual Result broadcast(Tensors&, const BroadcastOptions&);
  virtual Result gather(std::vector<Tensors>&, Tensors&, const GatherOptions&);
};
}
'''
LIBRARY = TYPES + r'''
c10::TensorImpl::TensorImpl(std::vector<int64_t> shape, uint16_t type) : dimensions(shape.size()), inside{}, type(type) {
  for (auto size : shape) count *= size;
  if (dimensions > 5) { outside = new int64_t[2 * dimensions]; for (uint64_t i = 0; i < dimensions; ++i) outside[i] = shape[i]; }
  else for (uint64_t i = 0; i < dimensions; ++i) inside[i] = shape[i], inside[5 + i] = 1;
}
c10::TensorImpl::~TensorImpl() {}
namespace c10d {
#ifndef NO_TYPE
NAME::~NAME() {}
#endif
ProcessGroupGloo::~ProcessGroupGloo() {}
Result ProcessGroupGloo::allreduce(Tensors&, const AllreduceOptions&) { return {}; }
Result ProcessGroupGloo::reduce(Tensors&, const ReduceOptions&) { return {}; }
Result ProcessGroupGloo::broadcast(Tensors&, const BroadcastOptions&) { return {}; }
Result ProcessGroupGloo::gather(std::vector<Tensors>&, Tensors&, const GatherOptions&) { return {}; }
}
'''
PROGRAM = TYPES + r'''
using namespace c10d;
int main() {
  ProcessGroupGloo* group = new ProcessGroupGloo;
  Tensors scalar{{new c10::TensorImpl({}, 6)}}, matrix{{new c10::TensorImpl({3, 5}, 7)}}, deep{{new c10::TensorImpl({1, 2, 3, 1, 2, 2}, 4)}};
  std::vector<Tensors> outputs{matrix};
  for (Tensors* tensors : {&scalar, &matrix, &deep}) {
    AllreduceOptions all{};
    all.op.kind = 4;
    group->allreduce(*tensors, all);
    ReduceOptions one{};
    one.op.kind = 0;
    one.root = 1;
    group->reduce(*tensors, one);
    group->broadcast(*tensors, {1});
    group->gather(outputs, *tensors, {2});
    group->broadcast(*tensors, {-5});
  }
}
'''
UNKNOWN = 255
NO_SHAPES, NO_OPERATIONS, NO_ROOTS = 2, 16, 32


def calls_of(folder, **defined):
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    # -fPIC: a program without it gets a copy of the vtable, whose entries no relocation names; torch's own callers have none.
    flags = ["-std=c++17", "-w", *(f"-D{name}={value}" for name, value in {"COUNTS": 8, "SIZES": 56, "NAME": "ReduceOp", **defined}.items())]
    library = folder / "torch" / "lib" / "libtorch_cpu.so"
    library.parent.mkdir(parents=True)
    (folder / "torch" / "version.py").write_text("__version__ = 'unknown'\n")
    for name, text, more in (("library.cc", LIBRARY, ["-shared", "-fPIC", "-o", library]),
                             ("program.cc", PROGRAM, ["-fPIC", "-o", folder / "program", library, f"-Wl,-rpath,{library.parent}"])):
        (folder / name).write_text(text)
        subprocess.run(["g++", *flags, folder / name, *more], check=True)
    spool = folder / "spool"
    spool.mkdir(mode=0o700)
    assert behaviour([folder / "program"], spool=spool) == (0, b"", b"")
    [ring] = rings(spool).values()
    calls = [event for event in ring.of("collective") if event.phase == 0]
    assert len(calls) == 15
    return ring, calls


@pytest.mark.parametrize("counts", [8, 16], ids=["since 2.4", "to 2.3"])
@pytest.mark.parametrize("sizes", [56, 64, 72], ids=["since 2.13", "to 2.12", "old"])
def test_known_layouts_are_found_by_what_lies_there(counts, sizes, tmp_path):
    ring, calls = calls_of(tmp_path, COUNTS=counts, SIZES=sizes)
    assert [(call.reduce_op, call.peer) for call in calls] == [(4, -1), (0, 1), (UNKNOWN, 1), (UNKNOWN, 2), (UNKNOWN, -1)] * 3
    assert {(call.count, call.dtype, call.text) for call in calls[5:]} == {(15, 7, "3x5"), (24, 4, "1x2x3x1x2x2")}
    assert {(call.count, call.dtype) for call in calls[:5]} == {(-1, UNKNOWN)}  # a scalar proves nothing
    assert ring.disabled & (NO_SHAPES | NO_OPERATIONS | NO_ROOTS) == NO_ROOTS  # of the root -5


@pytest.mark.parametrize("defined", [{"COUNTS": 40}, {"NAME": "Operation"}, {"NO_TYPE": 1, "WORD": 4660}, {"NO_TYPE": 1, "WORD": "0x7fffffffffff0000ULL"}],
                         ids=["longer", "another type", "no type", "no memory"])
def test_operations_elsewhere_are_left_out_and_that_is_said(defined, tmp_path):
    ring, calls = calls_of(tmp_path, **defined)
    assert {call.reduce_op for call in calls} == {UNKNOWN}
    assert [call.peer for call in calls] == [-1, -1, 1, 2, -1] * 3
    assert ring.disabled & (NO_OPERATIONS | NO_ROOTS) == NO_OPERATIONS | NO_ROOTS


def test_tensors_elsewhere_are_left_out_and_that_is_said(tmp_path):
    ring, calls = calls_of(tmp_path, SIZES=120)
    assert {(call.count, call.dtype, call.text) for call in calls} == {(-1, UNKNOWN, "")}
    assert ring.disabled & NO_SHAPES
