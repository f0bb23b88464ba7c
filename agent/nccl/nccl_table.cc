// SPDX-License-Identifier: Apache-2.0
// Doors: for every function one that finds its library by who called, and one for each library that
// somebody asked dlsym about.
#include "agent/nccl/nccl_probes.h"

namespace ddpdoctor::agent::nccl {
namespace {

template <auto kProbe>
struct Door;

template <typename... A, Result (*kProbe)(L, A...)>
struct Door<kProbe> {
  /// Reached by a jump: the return address is the caller's.
  static Result by_caller(A... arguments) {
    const void* const caller = __builtin_return_address(0);
    called_from = caller;
    return kProbe(library_of(caller), arguments...);
  }
  template <int kLibrary>
  static Result of_library(A... arguments) {
    called_from = __builtin_return_address(0);
    return kProbe(library_at(kLibrary), arguments...);
  }
};

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): a table of functions of many types
#define DOOR(probe, way) reinterpret_cast<void*>(&Door<probe>::way)

extern "C" {
__attribute__((visibility("hidden"))) extern void* const agent_nccl_doors[kFunctions];
void* const agent_nccl_doors[kFunctions] = {
#define NCCL(id, symbol, probe) DOOR(probe, by_caller),
#include "agent/nccl/nccl_functions.inc"
#undef NCCL
};
}

namespace {

void* const doors_of_libraries[kLibraries][kFunctions] = {
#define NCCL(id, symbol, probe) DOOR(probe, of_library<0>),
    {
#include "agent/nccl/nccl_functions.inc"
    },
#undef NCCL
#define NCCL(id, symbol, probe) DOOR(probe, of_library<1>),
    {
#include "agent/nccl/nccl_functions.inc"
    },
#undef NCCL
#define NCCL(id, symbol, probe) DOOR(probe, of_library<2>),
    {
#include "agent/nccl/nccl_functions.inc"
    },
#undef NCCL
#define NCCL(id, symbol, probe) DOOR(probe, of_library<3>),
    {
#include "agent/nccl/nccl_functions.inc"
    },
#undef NCCL
};
// NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)

}  // namespace

void* door(int library, int function) {
  return library == 0 ? agent_nccl_doors[function] : doors_of_libraries[library - 1][function];
}

}  // namespace ddpdoctor::agent::nccl
