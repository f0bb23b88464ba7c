// SPDX-License-Identifier: Apache-2.0
// CUDA's start in this process, and its use in a child that was forked after it. No CUDA is needed
// to build or to run: the real function is the caller's own (the runtime comes in several versions,
// and two may live in one process), found once per place that calls.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>

#include "agent/cuda/cuda_function.h"
#include "agent/inside.h"
#include "agent/process_state.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constexpr int kMostDevices = 32;
constinit thread_local int chosen_device = 0;

/// A place that calls one of the functions, and what it would have reached without us.
struct Place {
  std::atomic<const void*> caller;
  void* function;
};
constexpr std::uint32_t kPlaces = 64;
constinit Place places[kPlaces]{};
constinit std::atomic<std::uint32_t> places_used{0};

void* other_than_ours(void* found, const void* ours) {
  return found == ours ? nullptr : found;
}

__attribute__((cold, noinline)) void* find(const char* name, const void* caller, const void* ours) {
  Dl_info where{};
  void* found = nullptr;
  if (dladdr(caller, &where) != 0 && where.dli_fname != nullptr) {
    if (void* const library = dlopen(where.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
        library != nullptr) {
      found = other_than_ours(dlsym(library, name), ours);
      dlclose(library);
    }
  }
  return found != nullptr ? found : other_than_ours(dlsym(RTLD_NEXT, name), ours);
}

}  // namespace

void* cuda_function(const char* name, const void* caller, const void* ours) {
  const std::uint32_t used = places_used.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < used && i < kPlaces; ++i) {
    if (places[i].caller.load(std::memory_order_acquire) == caller) {
      return places[i].function;
    }
  }
  const Inside inside;
  void* const function = find(name, caller, ours);
  if (function == nullptr) {
    return nullptr;
  }
  const std::uint32_t index = places_used.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kPlaces) {
    places_used.store(kPlaces, std::memory_order_relaxed);
    return function;  // sought again each time
  }
  places[index].function = function;
  places[index].caller.store(caller, std::memory_order_release);
  return function;
}

namespace {

/// Before CUDA is used: after a fork of a process that used it, this fails or hangs.
void about_to_use(const char* function, int device) {
  ProcessState& state = process_state();
  if (state.cuda_before_fork == 0 || state.cuda_fork_told) [[likely]] {
    return;
  }
  const Inside inside;
  wire::Ring* const ring_now = ring_or_make();
  if (!inside || ring_now == nullptr) {
    return;
  }
  state.cuda_fork_told = true;
  ring_now->header.cuda_before_fork = state.cuda_before_fork;
  record(*ring_now, {.kind = wire::EventKind::kCudaAfterFork,
                     .site = call_site(*ring_now),
                     .count = device,
                     .peer = static_cast<std::int32_t>(state.cuda_before_fork),
                     .text = intern(*ring_now, function, strlen(function))});
}

void started(const char* function, int device) {
  const std::uint32_t bit =
      device >= 0 && device < kMostDevices ? std::uint32_t{1} << static_cast<unsigned>(device) : 0;
  ProcessState& state = process_state();
  if (state.cuda_started && (state.cuda_contexts & bit) == bit) [[likely]] {
    return;
  }
  state.cuda_started = true;
  __atomic_fetch_or(&state.cuda_contexts, bit, __ATOMIC_RELAXED);
  const Inside inside;
  wire::Ring* const ring_now = ring_or_make();
  if (inside && ring_now != nullptr) {
    ring_now->header.cuda_contexts = state.cuda_contexts;
    record(*ring_now, {.kind = wire::EventKind::kCudaContext,
                       .site = call_site(*ring_now),
                       .count = device,
                       .text = intern(*ring_now, function, strlen(function))});
  }
}

/// Calls the real function; a success means that CUDA lives in this process, on `device` (-1: on
/// none yet).
template <typename... Parameters>
int pass(const char* name, int (*ours)(Parameters...), const void* caller, int device,
         Parameters... arguments) {
  about_to_use(name, device);
  const auto real = reinterpret_cast<int (*)(Parameters...)>(
      cuda_function(name, caller, reinterpret_cast<const void*>(ours)));
  const int result = real != nullptr ? real(arguments...) : kNoCudaDevice;
  if (result == 0) {
    started(name, device);
  }
  return result;
}

}  // namespace
}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

#define CALLER __builtin_return_address(0)

extern "C" {

EXPORT int cuInit(unsigned flags) {
  return pass("cuInit", cuInit, CALLER, -1, flags);
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  return pass("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, CALLER, device, context,
              device);
}

EXPORT int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  return pass("cuCtxCreate_v2", cuCtxCreate_v2, CALLER, device, context, flags, device);
}

EXPORT int cuCtxCreate_v3(void** context, void* affinity, int count, unsigned flags, int device) {
  return pass("cuCtxCreate_v3", cuCtxCreate_v3, CALLER, device, context, affinity, count, flags,
              device);
}

EXPORT int cuCtxCreate_v4(void** context, void* parameters, unsigned flags, int device) {
  return pass("cuCtxCreate_v4", cuCtxCreate_v4, CALLER, device, context, parameters, flags, device);
}

// PyTorch reaches the driver through the runtime, which finds cuInit by dlsym, past us.
EXPORT int cudaSetDevice(int device) {
  const int result = pass("cudaSetDevice", cudaSetDevice, CALLER, device, device);
  chosen_device = result == 0 ? device : chosen_device;
  return result;
}

EXPORT int cudaMalloc(void** memory, std::size_t bytes) {
  return pass("cudaMalloc", cudaMalloc, CALLER, chosen_device, memory, bytes);
}
}
