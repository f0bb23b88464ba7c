// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_library.h"

#include <cstring>
#include <dlfcn.h>

#include "agent/slots/definitions.h"
#include "agent/slots/slots.h"

namespace ddpdoctor::agent::nccl {

constinit bool switched_off = false;
constinit thread_local const void* called_from = nullptr;

namespace {

constexpr const char* kNames[kFunctions] = {
#define NCCL(id, symbol, probe) #symbol,
#include "agent/nccl/nccl_functions.inc"
#undef NCCL
};

constinit Library libraries[kLibraries]{};

const void* base_of(const void* address) {
  Dl_info where{};
  return dladdr(address, &where) != 0 ? where.dli_fbase : nullptr;
}

const void* ourselves() {
  return base_of(reinterpret_cast<const void*>(&library_at));
}

/// The library that contains `function`; added if it is new. Null while another thread adds it:
/// waiting for that thread, which needs the loader's lock, could deadlock.
const Library* add(const void* function) {
  const void* const base = base_of(function);
  if (base == nullptr || base == ourselves()) {
    return nullptr;
  }
  for (Library& library : libraries) {
    const void* expected = nullptr;
    if (library.base.compare_exchange_strong(expected, base, std::memory_order_acq_rel)) {
      look_up(function, Reach::kItself, kNames, library.function, kFunctions);
      using Ask = Result (*)(Communicator, int*);
      library.count = reinterpret_cast<Ask>(look_up(function, Reach::kItself, "ncclCommCount"));
      library.rank = reinterpret_cast<Ask>(look_up(function, Reach::kItself, "ncclCommUserRank"));
      Dl_info where{};
      library.rccl = dladdr(function, &where) != 0 && where.dli_fname != nullptr &&
                     strstr(where.dli_fname, "librccl") != nullptr;
      library.ready.store(true, std::memory_order_release);
      return &library;
    }
    if (expected == base) {
      return library.ready.load(std::memory_order_acquire) ? &library : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

const Library& library_at(int number) {
  return libraries[number];
}

/// A function that its own library does not define under this name (another tool's function, or a
/// stub in the program) gets no door and is called directly.
void* door_to(int function, void* real) {
  const Library* const library = switched_off ? nullptr : add(real);
  return library == nullptr || library->function[function] != real
             ? nullptr
             : door(static_cast<int>(library - &libraries[0]), function);
}

}  // namespace ddpdoctor::agent::nccl
