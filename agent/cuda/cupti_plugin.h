// SPDX-License-Identifier: Apache-2.0
// The interface between the agent and libddpdoctor_cupti.so. The library is built if CUPTI's
// headers are available, is loaded if profiling windows are requested, and knows nothing about
// rings: it only reports what it saw.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent::cupti {

/// Increment when anything below changes: both sides come from one build but may be installed
/// separately.
inline constexpr std::uint32_t kInterface = 3;
inline constexpr const char* kLibraryName = "libddpdoctor_cupti.so";
inline constexpr const char* kSymbol = "ddpdoctor_cupti";

enum class What : std::uint32_t {
  kKernel,      // one of the newest kernels of a stream
  kStreamWait,  // the next kernel of a stream waits for an event after `text` in stream `other`
  kHostWait     // a thread waits in the CUDA function `text` for `object`
};

struct Fact {
  What what = What::kKernel;
  std::uint64_t object = 0;  // a stream; for kHostWait the stream or event, 0 = the whole device
  std::uint64_t other = 0;
  const char* text = "";  // a kernel's name from the driver (mangled), or a function name
  std::uint32_t place =
      0;  // kKernel, kStreamWait: 0 = the stream's newest kernel, 1 = the one before
  std::uint32_t thread = 0;
  bool finished = false;
  bool ends_are_told = false;  // false: `finished` is meaningless
};

using Tell = void (*)(void* context, const Fact& fact);

/// Whether the ends of kernels are wanted. CUPTI modifies the code of all loaded kernels for this:
/// it takes seconds, or perhaps forever while the GPU makes no progress.
enum class Ends : std::uint32_t { kUnknown, kTold };

/// The one symbol of the library.
struct Plugin {
  std::uint32_t interface;
  /// Becomes CUPTI's user, with nothing enabled. Returns null, or the reason against it as one
  /// clause without a full stop. Call it while the GPU makes progress: CUPTI waits for it (seen
  /// with CUDA 13.0).
  const char* (*subscribe)();
  void (*open)(Ends ends);
  /// Reports everything known now. Never waits for the GPU.
  void (*look)(Tell tell, void* context);
  /// Stays CUPTI's user.
  void (*close)();
};

}  // namespace ddpdoctor::agent::cupti
