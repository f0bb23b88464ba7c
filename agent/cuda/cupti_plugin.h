// SPDX-License-Identifier: Apache-2.0
// What the agent and libddpdoctor_cupti.so say to each other. The library is built where CUPTI's
// headers are, opened for a diagnosis window, and told nothing of rings: it only answers what it
// saw.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent::cupti {

/// Bump when anything below changes: both sides come from one build, but may be installed apart.
inline constexpr std::uint32_t kInterface = 2;
inline constexpr const char* kLibraryName = "libddpdoctor_cupti.so";
inline constexpr const char* kSymbol = "ddpdoctor_cupti";

enum class What : std::uint32_t {
  kKernel,      // one of the newest kernels of a stream
  kStreamWait,  // the next kernel of a stream waits for an event behind `text` in stream `other`
  kHostWait     // a thread waits in the CUDA function `text` for `object`
};

struct Fact {
  What what = What::kKernel;
  std::uint64_t object = 0;  // a stream; of kHostWait the stream or event, 0 = the whole device
  std::uint64_t other = 0;
  const char* text = "";  // a kernel's name as the driver has it (mangled), or a function
  std::uint32_t place =
      0;  // kKernel, kStreamWait: 0 = the stream's newest kernel, 1 = the one before
  std::uint32_t thread = 0;
  bool finished = false;
  bool ends_are_told = false;  // else `finished` says nothing
};

using Tell = void (*)(void* context, const Fact& fact);

/// Whether kernels' ends are wanted. CUPTI writes into the code of all loaded kernels for it:
/// seconds, and perhaps for ever while the GPU does not move.
enum class Ends : std::uint32_t { kUnknown, kTold };

/// The one symbol of the library.
struct Plugin {
  std::uint32_t interface;
  /// Null when the window is open, else the reason why not, one clause without a full stop.
  const char* (*open)(Ends ends);
  /// Everything that is known now. Never waits for the GPU.
  void (*look)(Tell tell, void* context);
  void (*close)();
};

}  // namespace ddpdoctor::agent::cupti
