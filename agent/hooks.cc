// SPDX-License-Identifier: Apache-2.0
// Called only by the trampolines. Each thread has a shadow stack of its current calls, because
// returns and exceptions arrive without their arguments; both are last-in first-out.
#include "agent/hooks.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/slots/definitions.h"
#include "agent/slots/slots.h"

extern "C" __attribute__((visibility(
    "hidden"))) void* const agent_c10d_doors[ddpdoctor::agent::kHooks];  // trampoline_*.S

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

/// Reads __version__ = '2.13.0+cpu' from version.py next to torch's lib folder.
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
}

/// Names in the order of TorchFunctions.
constexpr const char* kFunctions[] = {
    "aoti_torch_get_numel",
    "aoti_torch_get_dtype",
    "aoti_torch_get_dim",
    "aoti_torch_get_sizes",
    "_ZN4c10d16ProcessGroupGloo25getSequenceNumberForGroupEv",
    "_ZNK4c10d12ProcessGroup12getGroupNameB5cxx11Ev",
    "_ZNK4c10d12ProcessGroup12getGroupNameEv",
};

template <typename F>
void keep(F*& function, void* found) {
  function = function != nullptr ? function : reinterpret_cast<F*>(found);
}

void search_library(const void* inside) {
  void* found[std::size(kFunctions)];
  look_up(inside, Reach::kItself, kFunctions, found, std::size(kFunctions));
  keep(functions.count, found[0]);
  keep(functions.dtype, found[1]);
  keep(functions.dimensions, found[2]);
  keep(functions.sizes, found[3]);
  keep(functions.sequence, found[4]);
  keep(functions.group_name, found[5]);
  keep(functions.group_name_old, found[6]);
  Dl_info where{};
  if (dladdr(inside, &where) != 0 && where.dli_fname != nullptr) {
    read_version(where.dli_fname);
  }
}

/// Finds torch's functions that we call. A copy of c10d in a library with another name is found
/// through the address of its function.
void find_torch_functions(const void* function) {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  constexpr int kMostLibraries = 12;
  const void* library[kMostLibraries];
  const int count = loaded_objects(is_torch_library, library, kMostLibraries);
  for (int i = 0; i < count; ++i) {
    search_library(library[i]);
  }
  if (count == 0) {
    search_library(function);
  }
}

/// Functions that return an object by value (a Work, a backend, bytes) get its address.
bool returns_object(const Hook& hook) {
  return (hook.meaning == Meaning::kCall && hook.operation != wire::Operation::kMonitoredBarrier) ||
         hook.meaning == Meaning::kGetBackend || hook.meaning == Meaning::kStoreGet ||
         hook.meaning == Meaning::kStoreGetOldString;
}

/// What the trampolines save.
#if defined(__aarch64__)
struct Saved {
  std::uint64_t general[8];    // x0 to x7
  std::uint64_t result;        // x8: address for a returned object
  const std::uint64_t* stack;  // arguments beyond the registers
};

void read_arguments(const Hook& hook, const Saved& saved, Arguments& arguments) {
  int count = 0;
  if (returns_object(hook)) {
    arguments.value[count++] = saved.result;
  }
  for (const std::uint64_t value : saved.general) {
    arguments.value[count++] = value;
  }
  for (int i = 0; count < static_cast<int>(std::size(arguments.value)); ++i) {
    arguments.value[count++] = saved.stack[i];
  }
}
#else
struct Saved {
  // Rdi, rsi, rdx, rcx, r8, r9; rdi is also the address for a returned object.
  std::uint64_t general[6];
  std::uint64_t others[18];    // rax, r10, xmm0 to xmm7
  const std::uint64_t* frame;  // the return address, followed by the arguments beyond the registers
};

void read_arguments(const Hook&, const Saved& saved, Arguments& arguments) {
  constexpr std::size_t kInRegisters = 6;
  memcpy(arguments.value, saved.general, sizeof saved.general);
  memcpy(arguments.value + kInRegisters, saved.frame + 1,
         sizeof arguments.value - sizeof saved.general);
}
#endif

bool is_store_call(Meaning meaning) {
  return meaning == Meaning::kStoreGet || meaning == Meaning::kStoreWait ||
         meaning == Meaning::kStoreGetOldString || meaning == Meaning::kStoreWaitOldString;
}

void leave(bool threw, std::uint64_t result) {
  if (--shadow.depth >= kDeepest) {
    return;
  }
  const Call& call = shadow.call[shadow.depth];
  const Inside inside;
  const Hook& hook = hooks[call.id];
  result = returns_object(hook) ? call.arguments.value[0] : result;
  switch (hook.meaning) {
    case Meaning::kCall:
      call_left(hook, call.arguments, call.counted, threw, result);
      break;
    case Meaning::kGetBackend:
      if (!threw) {
        backend_found(call.arguments, result);
      }
      break;
    case Meaning::kMessageWait:
      message_waited(call.arguments, threw, (result & 0xFFU) != 0);
      break;
    default:
      store_left(hook, call.arguments, threw);
  }
}

}  // namespace

const TorchFunctions& torch_functions() {
  return functions;
}

/// If a process contains two copies of c10d, the second is not recorded.
void* c10d_door_to(int id, void* function) {
  find_torch_functions(function);
  void* known = nullptr;
  const bool kept = real[id].compare_exchange_strong(known, function, std::memory_order_acq_rel) ||
                    known == function;
  return kept ? agent_c10d_doors[id] : nullptr;
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;  // the trampolines call these by their C names

extern "C" {

__attribute__((visibility("hidden"))) void* agent_hook_enter(int id, const Saved* saved) {
  void* const function = real[id].load(std::memory_order_acquire);
  if (shadow.depth < kDeepest) {
    Call& call = shadow.call[shadow.depth];
    call.id = id;
    call.counted = false;
    const Hook& hook = hooks[id];
    read_arguments(hook, *saved, call.arguments);
    const Inside inside;
    if (hook.meaning == Meaning::kCall) {
      call.counted = call_entered(hook, call.arguments);
    } else if (is_store_call(hook.meaning)) {
      store_entered(hook, call.arguments);
    }
  }
  ++shadow.depth;
  return function;
}

__attribute__((visibility("hidden"))) void agent_hook_leave(std::uint64_t result) {
  leave(false, result);
}

__attribute__((visibility("hidden"))) void* agent_hook_entry(int id, const Saved* saved) {
  Arguments arguments{};
  read_arguments(hooks[id], *saved, arguments);
  void* const function = real[id].load(std::memory_order_acquire);
  const Inside inside;
  const Meaning meaning = hooks[id].meaning;
  if (meaning == Meaning::kGlooConstructor) {
    group_constructed(arguments);
  } else if (meaning == Meaning::kWrapperConstructor) {
    wrapper_constructed(arguments);
  } else if (meaning == Meaning::kEnqueue || meaning == Meaning::kFinish ||
             meaning == Meaning::kFinishError) {
    work_event(meaning, arguments);
  } else {
    reducer_event(meaning, arguments);
  }
  return function;
}

/// The personality function of the trampolines: no landing pad; an exception that passes in phase 2
/// is recorded as the end of the call.
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
