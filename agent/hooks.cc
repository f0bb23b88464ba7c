// SPDX-License-Identifier: Apache-2.0
// Called by the trampolines only. Each thread keeps a shadow stack of the calls it is in, because
// returns and exceptions come back without their arguments; both are last-in first-out.
#include "agent/hooks.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "agent/inside.h"

namespace ddpdoctor::agent {
namespace {

constinit std::atomic<void*> real[kHooks]{};
TorchFunctions functions;

struct Call {
  int id;
  bool counted;
  Arguments arguments;
};
constexpr int kDeepest = 48;
struct ShadowStack {
  int depth = 0;
  Call call[kDeepest];
};
constinit thread_local ShadowStack shadow{};

bool is_torch_library(const char* path) {
  const char* const slash = strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  return strncmp(name, "libtorch", 8) == 0 || strncmp(name, "libc10d", 7) == 0;
}

/// Reads __version__ = '2.13.0+cpu' from version.py beside torch's lib folder.
void read_version(const char* library) {
  char path[512];
  const char* const slash = strrchr(library, '/');
  const std::size_t folder = slash == nullptr ? 0 : static_cast<std::size_t>(slash - library);
  constexpr char kRest[] = "/../version.py";
  if (folder == 0 || folder + sizeof kRest > sizeof path || functions.version[0] != 0) {
    return;
  }
  memcpy(path, library, folder);
  memcpy(path + folder, kRest, sizeof kRest);
  char text[1024];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) {
    close(fd);
  }
  text[length > 0 ? length : 0] = 0;
  const char* at = strstr(text, "__version__ = '");
  if (at == nullptr) {
    return;
  }
  at += strlen("__version__ = '");
  for (std::size_t i = 0; i + 1 < sizeof functions.version && at[i] != 0 && at[i] != '\''; ++i) {
    functions.version[i] = at[i];
  }
  functions.known_layout = strncmp(functions.version, "2.13.", 5) == 0;
}

template <typename F>
void find(void* library, F*& function, const char* name) {
  if (function == nullptr) {
    function = reinterpret_cast<F*>(dlsym(library, name));
  }
}

struct Search {
  bool torch_only;
  const void* ourselves;
};

int search_object(dl_phdr_info* info, std::size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] != '/' ||
      (search.torch_only && !is_torch_library(info->dlpi_name))) {
    return 0;
  }
  void* const library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) {
    return 0;
  }
  for (int id = 0; id < kHooks; ++id) {
    if (real[id].load(std::memory_order_relaxed) == nullptr) {
      void* const found = dlsym(library, hooks[id].symbol);
      Dl_info where{};
      // never our own definition: that would call itself for ever
      if (found != nullptr && dladdr(found, &where) != 0 && where.dli_fbase != search.ourselves) {
        real[id].store(found, std::memory_order_release);
      }
    }
  }
  find(library, functions.count, "aoti_torch_get_numel");
  find(library, functions.dtype, "aoti_torch_get_dtype");
  find(library, functions.dimensions, "aoti_torch_get_dim");
  find(library, functions.sizes, "aoti_torch_get_sizes");
  find(library, functions.sequence, "_ZN4c10d16ProcessGroupGloo25getSequenceNumberForGroupEv");
  find(library, functions.group_name, "_ZNK4c10d12ProcessGroup12getGroupNameB5cxx11Ev");
  if (is_torch_library(info->dlpi_name)) {
    read_version(info->dlpi_name);
  }
  dlclose(library);
  return 0;
}

/// First call of a hook: torch's libraries are loaded with RTLD_LOCAL, where RTLD_NEXT finds
/// nothing.
__attribute__((noinline, cold)) void* resolve(int id) {
  const Inside inside;
  Dl_info where{};
  dladdr(reinterpret_cast<const void*>(&hooks), &where);
  Search search{true, where.dli_fbase};
  dl_iterate_phdr(search_object, &search);
  if (real[id].load(std::memory_order_acquire) == nullptr) {
    search.torch_only = false;
    dl_iterate_phdr(search_object, &search);
  }
  return real[id].load(std::memory_order_acquire);
}

void* real_function(int id) {
  void* const found = real[id].load(std::memory_order_acquire);
  return found != nullptr ? found : resolve(id);
}

void leave(bool threw, std::uint64_t result) {
  if (--shadow.depth >= kDeepest) {
    return;
  }
  const Call& call = shadow.call[shadow.depth];
  const Inside inside;
  const Hook& hook = hooks[call.id];
  switch (hook.meaning) {
    case Meaning::kCall:
      call_left(hook, call.arguments, call.counted, threw, result);
      break;
    case Meaning::kGetBackend:
      if (!threw) {
        backend_found(call.arguments, result);
      }
      break;
    default:
      store_left(hook, call.arguments, threw);
  }
}

}  // namespace

const TorchFunctions& torch_functions() {
  return functions;
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;  // the trampolines call C names

extern "C" {

__attribute__((visibility("hidden"))) void* agent_hook_enter(int id, std::uint64_t* saved) {
  void* const function = real_function(id);
  const auto* const stack = reinterpret_cast<const std::uint64_t*>(saved[24]);
  if (shadow.depth < kDeepest) {
    Call& call = shadow.call[shadow.depth];
    call.id = id;
    call.counted = false;
    memcpy(call.arguments.value, saved, 6 * sizeof(std::uint64_t));
    call.arguments.value[6] = stack[1];
    call.arguments.stack = stack;
    const Inside inside;
    const Hook& hook = hooks[id];
    if (hook.meaning == Meaning::kCall) {
      call.counted = call_entered(hook, call.arguments);
    } else if (hook.meaning != Meaning::kGetBackend) {
      store_entered(hook, call.arguments);
    }
  }
  ++shadow.depth;
  return function;
}

__attribute__((visibility("hidden"))) void agent_hook_leave(int, std::uint64_t result) {
  leave(false, result);
}

__attribute__((visibility("hidden"))) void* agent_hook_entry(int id, std::uint64_t* saved) {
  void* const function = real_function(id);
  Arguments arguments{};
  memcpy(arguments.value, saved, 6 * sizeof(std::uint64_t));
  arguments.stack = reinterpret_cast<const std::uint64_t*>(saved[24]);
  const Inside inside;
  const Meaning meaning = hooks[id].meaning;
  if (meaning == Meaning::kGlooConstructor) {
    group_constructed(arguments);
  } else if (meaning == Meaning::kEnqueue || meaning == Meaning::kFinish ||
             meaning == Meaning::kFinishError) {
    work_event(meaning, arguments);
  } else {
    reducer_event(meaning, arguments);
  }
  return function;
}

/// The trampoline's personality: no landing pad; an exception that passes in phase 2 is recorded as
/// the call's end.
__attribute__((visibility("hidden"))) int agent_personality(int, int actions, std::uint64_t, void*,
                                                            void*) {
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0) {
    leave(true, 0);
  }
  return kContinueUnwind;
}
}
