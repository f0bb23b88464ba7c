// SPDX-License-Identifier: Apache-2.0
// Functions that a program looks up by name. A program usually looks up functions right after it
// opened a library, so this is also a good time to find new slots. For NCCL's functions the program
// gets our door instead, if and only if the library has the function; all other results are the
// dynamic linker's own.
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

#include "agent/inside.h"
#include "agent/nccl/nccl_library.h"
#include "agent/slots/names.h"
#include "agent/slots/slots.h"

namespace ddpdoctor::agent {
namespace {

using LookUp = void*(void*, const char*);
constinit LookUp* real_dlsym = nullptr;

LookUp* find_real_dlsym() {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (real_dlsym == nullptr) {
      real_dlsym = reinterpret_cast<LookUp*>(dlvsym(RTLD_NEXT, "dlsym", version));
    }
  }
  return real_dlsym;
}

/// True if the handle is that of our own file: NCCL opens us as a plugin, and we export none of the
/// names that it looks up.
bool is_ours(void* handle) {
  const link_map* map = nullptr;
  Dl_info where{};
  return handle != RTLD_DEFAULT && handle != RTLD_NEXT &&
         dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 &&
         dladdr(reinterpret_cast<const void*>(&find_real_dlsym), &where) != 0 &&
         map->l_addr == reinterpret_cast<ElfW(Addr)>(where.dli_fbase);
}

/// Null = the dynamic linker shall answer.
void* answer(void* handle, const char* name) {
  if (const void* const plugin = nccl::profiler_plugin(name);
      plugin != nullptr && is_ours(handle)) {
    return const_cast<void*>(plugin);
  }
  const int place = nccl::switched_off ? -1 : place_of(name);
  if (place < 0 || name_at(place).family != Family::kNccl || handle == RTLD_NEXT) {
    return nullptr;
  }
  // called from here, RTLD_DEFAULT searches the global scope, which comes first for every caller
  void* const found = real_dlsym(handle, name);
  return found == nullptr ? nullptr : nccl::door_to(name_at(place).id, found);
}

}  // namespace
}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

/// What dlsym shall do: return `address`, or continue with the real dlsym, which repeats the lookup
/// so that dlerror is correct.
struct Answer {
  void* address;
  std::uint64_t is_answer;
};

__attribute__((visibility("hidden"))) Answer agent_dlsym(void* handle, const char* name) {
  LookUp* const real = find_real_dlsym();
  if (inside_depth > 0) {
    return {reinterpret_cast<void*>(real), 0};
  }
  look_for_slots();
  if (strncmp(name, "nccl", 4) == 0) {
    const Inside inside;
    if (void* const found = answer(handle, name); found != nullptr) {
      return {found, 1};
    }
  }
  return {reinterpret_cast<void*>(real), 0};
}
}
