// SPDX-License-Identifier: Apache-2.0
// The calls of one rank on one group as a chain of hashes: two ranks that made the same calls have
// the same hash at the same sequence number. A chain restarts every kBlock calls, so that a gap
// (calls overwritten before they were read) affects one block only. A difference is a reason to
// take a snapshot, never a verdict: the ranks' records show what differs.
#pragma once

#include <array>
#include <cstdint>

#include "collector/sources/rings/tail.h"

namespace ddpdoctor::fleet {

inline constexpr std::uint32_t kBlock = 4096;
/// Besides the newest calls, the hash at the last multiple of each step is sent: ranks that are
/// some calls apart still share one.
inline constexpr std::array<std::uint32_t, 3> kSteps{16, 256, kBlock};
inline constexpr std::size_t kNewest = 4;

/// The hashes of a chain that are sent; 0 = unknown.
struct Hashes {
  std::uint32_t sequence = 0;                          // of the newest call
  std::array<std::uint32_t, kNewest> newest{};         // at sequence, sequence - 1, …
  std::array<std::uint32_t, kSteps.size()> at_step{};  // at the last multiple of each step

  friend bool operator==(const Hashes&, const Hashes&) = default;
};

class Fingerprint {
 public:
  void add(const sources::CallSignature& call);
  [[nodiscard]] const Hashes& hashes() const {
    return hashes_;
  }

 private:
  std::uint64_t chain_ = 0;
  bool known_ = true;
  Hashes hashes_;
};

}  // namespace ddpdoctor::fleet
