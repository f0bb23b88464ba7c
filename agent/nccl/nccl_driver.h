// SPDX-License-Identifier: Apache-2.0
// The driver functions of CUDA that show the progress of a stream. Those of the runtime are not
// used, because an error of ours must not become the job's cudaGetLastError.
#pragma once

#include <atomic>

#include "agent/nccl/nccl_library.h"

namespace ddpdoctor::agent::nccl {

struct Driver {
  using Context = void*;
  using Event = void*;
  int (*current)(Context*) = nullptr;
  int (*make_current)(Context) = nullptr;
  int (*create)(Event*, unsigned) = nullptr;
  int (*record)(Event, Stream) = nullptr;
  int (*query)(Event) = nullptr;
  int (*destroy)(Event) = nullptr;
  int (*is_capturing)(Stream, int*) = nullptr;
  int (*exchange_mode)(int*) = nullptr;
};

inline constexpr int kDone = 0;
inline constexpr int kGone = 4;  // the driver is shutting down
inline constexpr int kNotReady = 600;
inline constexpr unsigned kNoTiming = 2;

/// Complete after driver_is_usable() has returned true.
extern constinit Driver driver;

enum Readiness : int { kUnasked, kAsking, kOn, kOff };
extern constinit std::atomic<int> readiness;

/// True if the driver is loaded and has all these functions; searched once.
bool driver_is_usable();

}  // namespace ddpdoctor::agent::nccl
