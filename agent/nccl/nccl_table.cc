// SPDX-License-Identifier: Apache-2.0
// The doors: for every function, one for each library that defines it.
#include "agent/nccl/nccl_probes.h"

namespace ddpdoctor::agent::nccl {
namespace {

template <auto kProbe>
struct Door;

template <typename... A, Result (*kProbe)(L, A...)>
struct Door<kProbe> {
  template <int kLibrary>
  static Result of_library(A... arguments) {
    called_from = __builtin_return_address(0);
    return kProbe(library_at(kLibrary), arguments...);
  }
};

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): a table of functions of many types
#define DOOR(probe, way) reinterpret_cast<void*>(&Door<probe>::way)

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
  return doors_of_libraries[library][function];
}

}  // namespace ddpdoctor::agent::nccl
