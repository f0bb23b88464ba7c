// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_library.h"

#include <cstring>
#include <dlfcn.h>
#include <link.h>

#include "agent/inside.h"

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
constinit Library absent{};  // what is called when no NCCL can be found: nothing

struct Caller {
  std::atomic<const void*> address;
  std::atomic<const Library*> library;
};
constexpr int kCallers = 128;
constinit Caller callers[kCallers]{};

const void* base_of(const void* address) {
  Dl_info where{};
  return dladdr(address, &where) != 0 ? where.dli_fbase : nullptr;
}

const void* ourselves() {
  return base_of(reinterpret_cast<const void*>(&library_of));
}

bool is_nccl(const char* path) {
  const char* const slash = strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  return strncmp(name, "libnccl.so", 10) == 0 || strncmp(name, "librccl.so", 10) == 0 ||
         strncmp(name, "libnccl_static", 14) == 0;
}

/// Names only: opening a library inside dl_iterate_phdr takes the loader's locks in the wrong
/// order.
struct Found {
  int count = 0;
  char path[kLibraries][512];
};

int collect(dl_phdr_info* info, std::size_t, void* data) {
  auto& found = *static_cast<Found*>(data);
  if (info->dlpi_name != nullptr && is_nccl(info->dlpi_name) && found.count < kLibraries &&
      strlen(info->dlpi_name) < sizeof found.path[0]) {
    strcpy(found.path[found.count++], info->dlpi_name);
  }
  return 0;
}

/// The library that holds `function`, whose names are looked up through `scope`; added when new.
const Library* add(const void* function, void* scope) {
  const void* const base = base_of(function);
  if (base == nullptr || base == ourselves()) {
    return nullptr;
  }
  for (Library& library : libraries) {
    const void* expected = nullptr;
    if (library.base.compare_exchange_strong(expected, base, std::memory_order_acq_rel)) {
      for (int i = 0; i < kFunctions; ++i) {
        void* const found = dlsym(scope, kNames[i]);
        library.function[i] = base_of(found) == base ? found : nullptr;
      }
      library.count =
          reinterpret_cast<Result (*)(Communicator, int*)>(dlsym(scope, "ncclCommCount"));
      library.rank =
          reinterpret_cast<Result (*)(Communicator, int*)>(dlsym(scope, "ncclCommUserRank"));
      Dl_info where{};
      library.rccl = dladdr(function, &where) != 0 && where.dli_fname != nullptr &&
                     strstr(where.dli_fname, "librccl") != nullptr;
      library.ready.store(true, std::memory_order_release);
      return &library;
    }
    if (expected == base) {
      while (!library.ready.load(std::memory_order_acquire)) {
      }
      return &library;
    }
  }
  return nullptr;
}

constexpr const char* kEveryVersionHas =
    "ncclGetVersion";  // not one of ours: found is the real one

const Library* search(const char* path) {
  void* const scope = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (scope == nullptr) {
    return nullptr;
  }
  const void* const found = dlsym(scope, kEveryVersionHas);
  const Library* const library = found == nullptr ? nullptr : add(found, scope);
  dlclose(scope);
  return library;
}

/// In the order of the dynamic linker: the global scope, then what the caller itself needs.
const Library* bound_to(const void* caller) {
  if (const void* const next = dlsym(RTLD_NEXT, kEveryVersionHas); next != nullptr) {
    if (const Library* const library = add(next, RTLD_NEXT); library != nullptr) {
      return library;
    }
  }
  Dl_info where{};
  if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr) {
    if (const Library* const library = search(where.dli_fname); library != nullptr) {
      return library;
    }
  }
  return nullptr;
}

/// Where neither has one (a call through a pointer), any NCCL that is loaded.
__attribute__((noinline, cold)) const Library* resolve(const void* caller) {
  const Inside inside;
  if (const Library* const library = bound_to(caller); library != nullptr) {
    return library;
  }
  Found found;
  dl_iterate_phdr(collect, &found);
  for (int i = 0; i < found.count; ++i) {
    if (const Library* const library = search(found.path[i]); library != nullptr) {
      return library;
    }
  }
  return nullptr;
}

int number_of(const char* name) {
  for (int i = 0; i < kFunctions; ++i) {
    if (strcmp(kNames[i], name) == 0) {
      return i;
    }
  }
  return -1;
}

}  // namespace

const Library& library_at(int number) {
  return libraries[number];
}

const Library& library_of(const void* caller) {
  Caller& known = callers[(reinterpret_cast<std::uint64_t>(caller) * 0x9E3779B97F4A7C15U) >> 57U];
  if (known.address.load(std::memory_order_acquire) == caller) {
    const Library* const library = known.library.load(std::memory_order_acquire);
    if (library != nullptr && known.address.load(std::memory_order_acquire) == caller) {
      return *library;
    }
  }
  const Library* const library = resolve(caller);
  if (library == nullptr) {
    return absent;
  }
  known.address.store(nullptr, std::memory_order_release);
  known.library.store(library, std::memory_order_release);
  known.address.store(caller, std::memory_order_release);
  return *library;
}

}  // namespace ddpdoctor::agent::nccl

using namespace ddpdoctor::agent;

extern "C" {

__attribute__((visibility("hidden"))) void* (*agent_real_dlsym)(void*, const char*) = nullptr;

/// What dlsym shall do: give `address` as its answer, or go on at the real dlsym.
struct Answer {
  void* address;
  std::uint64_t is_answer;
};

/// Somebody asks for a function by name. What the library lacks stays absent, so that questions
/// like "does this version have it?" are answered as without us.
__attribute__((visibility("hidden"))) Answer agent_dlsym(void* handle, const char* name,
                                                         const void* caller) {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
    if (agent_real_dlsym == nullptr) {
      agent_real_dlsym =
          reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", version));
    }
  }
  const Answer ask_the_real{reinterpret_cast<void*>(agent_real_dlsym), 0};
  if (nccl::switched_off || inside_depth > 0 || handle == RTLD_NEXT ||
      strncmp(name, "nccl", 4) != 0) {
    return ask_the_real;
  }
  const int function = nccl::number_of(name);
  if (function < 0) {
    return ask_the_real;
  }
  const Inside inside;
  if (handle == RTLD_DEFAULT) {
    const nccl::Library* const library = nccl::bound_to(caller);
    return {library == nullptr || library->function[function] == nullptr ? nullptr
                                                                         : nccl::door(0, function),
            1};
  }
  void* const found = agent_real_dlsym(handle, name);
  if (found == nullptr) {
    return ask_the_real;  // again, for dlerror's sake
  }
  if (nccl::base_of(found) == nccl::ourselves()) {  // a scope with us in it: without us, the next
    void* const next = agent_real_dlsym(RTLD_NEXT, name);
    return {next == nullptr ? nullptr : found, 1};
  }
  const nccl::Library* const library = nccl::add(found, handle);
  if (library == nullptr || library->function[function] != found) {
    return {found, 1};
  }
  return {nccl::door(1 + static_cast<int>(library - &nccl::library_at(0)), function), 1};
}
}
