// SPDX-License-Identifier: Apache-2.0
// The start of CUDA in this process, and its use in a child forked afterwards. CUDA is not needed
// to build or run this.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "agent/cuda/cuda_function.h"
#include "agent/inside.h"
#include "agent/process_state.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"
#include "agent/slots/slots.h"

namespace ddpdoctor::agent {
namespace {

constexpr int kMostDevices = 32;
constexpr const char* kNames[kCudaFunctions] = {
#define CUDA(id, symbol) #symbol,
#include "agent/cuda/cuda_functions.inc"
#undef CUDA
};
constinit thread_local int chosen_device = 0;

constinit std::atomic<void*> real[kCudaFunctions][kCudaVersions]{};

/// Call before CUDA is used: after a fork of a process that used it, this use fails or hangs.
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

/// Calls the real function; success means that CUDA is initialized in this process, on `device`
/// (-1: on none yet).
template <typename... Parameters>
int pass(CudaFunction function, int version, int device, Parameters... arguments) {
  about_to_use(kNames[function], device);
  const int result = call_cuda(function, version, arguments...);
  if (result == 0) {
    started(kNames[function], device);
  }
  return result;
}

/// The doors to one version of each function, under the functions' own names.
template <int kVersion>
struct Cuda {
  static int cuInit(unsigned flags) {
    return pass(kcuInit, kVersion, -1, flags);
  }
  static int cuDevicePrimaryCtxRetain(void** context, int device) {
    return pass(kcuDevicePrimaryCtxRetain, kVersion, device, context, device);
  }
  static int cuCtxCreate_v2(void** context, unsigned flags, int device) {
    return pass(kcuCtxCreate_v2, kVersion, device, context, flags, device);
  }
  static int cuCtxCreate_v3(void** context, void* affinity, int count, unsigned flags, int device) {
    return pass(kcuCtxCreate_v3, kVersion, device, context, affinity, count, flags, device);
  }
  static int cuCtxCreate_v4(void** context, void* parameters, unsigned flags, int device) {
    return pass(kcuCtxCreate_v4, kVersion, device, context, parameters, flags, device);
  }
  // PyTorch reaches the driver through the runtime, which finds cuInit by dlsym and bypasses us.
  static int cudaSetDevice(int device) {
    const int result = pass(kcudaSetDevice, kVersion, device, device);
    chosen_device = result == 0 ? device : chosen_device;
    return result;
  }
  static int cudaMalloc(void** memory, std::size_t bytes) {
    return pass(kcudaMalloc, kVersion, chosen_device, memory, bytes);
  }
  static int cudaGraphInstantiate(void** executable, void* graph, std::uint64_t a, std::uint64_t b,
                                  std::uint64_t c) {
    return instantiate_graph(kcudaGraphInstantiate, kVersion, executable, graph, a, b, c);
  }
  static int cudaGraphInstantiateWithFlags(void** executable, void* graph, std::uint64_t a,
                                           std::uint64_t b, std::uint64_t c) {
    return instantiate_graph(kcudaGraphInstantiateWithFlags, kVersion, executable, graph, a, b, c);
  }
  static int cudaGraphLaunch(void* executable, void* stream) {
    return launch_graph(kVersion, executable, stream);
  }
};

#define CUDA(id, symbol)                                                                 \
  {reinterpret_cast<void*>(&Cuda<0>::symbol), reinterpret_cast<void*>(&Cuda<1>::symbol), \
   reinterpret_cast<void*>(&Cuda<2>::symbol), reinterpret_cast<void*>(&Cuda<3>::symbol)},
void* const doors[kCudaFunctions][kCudaVersions] = {
#include "agent/cuda/cuda_functions.inc"
};
#undef CUDA

}  // namespace

void* real_cuda(CudaFunction function, int version) {
  return real[function][version].load(std::memory_order_acquire);
}

void* cuda_door_to(int function, void* address) {
  for (int version = 0; version < kCudaVersions; ++version) {
    void* known = nullptr;
    if (real[function][version].compare_exchange_strong(known, address,
                                                        std::memory_order_acq_rel) ||
        known == address) {
      return doors[function][version];
    }
  }
  return nullptr;
}

}  // namespace ddpdoctor::agent
