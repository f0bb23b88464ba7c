// SPDX-License-Identifier: Apache-2.0
// The copies of NCCL in this process. Several may be loaded (torch's, CuPy's, one inside a static
// library): each call must reach the copy to which its caller is bound.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddpdoctor::agent::nccl {

// The part of NCCL's ABI that we need, without its headers; enums are ints, handles are pointers.
using Result = int;
using Communicator = struct NcclCommunicator*;
using Stream = struct GpuStream*;
struct UniqueId {
  char bytes[128];
};
inline constexpr Result kSuccess = 0;
inline constexpr Result kInternalError = 3;
inline constexpr Result kInProgress = 7;

/// Numbers of nccl_functions.inc.
enum Function : int {
#define NCCL(id, symbol, probe) k##symbol = id,
#include "agent/nccl/nccl_functions.inc"
#undef NCCL
  kFunctions
};

/// A loaded NCCL: its functions by number, null if this version lacks one.
struct Library {
  std::atomic<const void*> base;  // base address of its file in memory; null = free
  std::atomic<bool> ready;
  bool rccl;
  void* function[kFunctions];
  Result (*count)(Communicator, int*);
  Result (*rank)(Communicator, int*);
};
inline constexpr int kLibraries = 4;

const Library& library_at(int number);

/// The door for a function of a library.
void* door(int library, int function);

/// The profiler interface of NCCL that has this name, null if there is none.
const void* profiler_plugin(const char* name);

/// DDPDOCTOR_NCCL=0: calls are passed on, nothing is recorded, slots and dlsym are unchanged.
extern constinit bool switched_off;

/// The address from which this thread called its current NCCL function.
extern constinit thread_local const void* called_from;

/// Calls the real function with exactly the types that are passed.
template <int kFunction, typename... A>
Result real(const Library& library, A... arguments) {
  auto* const function = reinterpret_cast<Result (*)(A...)>(library.function[kFunction]);
  return function == nullptr ? kInternalError : function(arguments...);
}

}  // namespace ddpdoctor::agent::nccl
