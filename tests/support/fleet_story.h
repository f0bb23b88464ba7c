// SPDX-License-Identifier: Apache-2.0
// Marks of a node from a few numbers, for tests and benchmarks.
#pragma once

#include <string>

#include "collector/fleet/marks.h"
#include "wire/events.h"

namespace ddpdoctor::fleet {

/// A node with `ranks` ranks from `first`, each of which has made `calls` all_reduce calls on group
/// "0"; the call `odd` of its last rank was a broadcast (0 = none).
inline NodeMarks told(const std::string& node, int first, int ranks, std::uint32_t calls,
                      std::uint64_t counter, std::uint32_t odd = 0) {
  NodeMarks out;
  out.node = node;
  out.host = node;
  out.place = "head:29500";
  out.counter = counter;
  out.time = 1e9;
  for (int i = 0; i < ranks; ++i) {
    Fingerprint fingerprint;
    for (std::uint32_t n = 1; n <= calls; ++n) {
      const bool other = n == odd && i == ranks - 1;
      sources::CallSignature call;
      call.sequence = n;
      call.operation = static_cast<std::uint8_t>(other ? wire::Operation::kBroadcast
                                                       : wire::Operation::kAllReduce);
      call.count = 8;
      fingerprint.add(call);
    }
    RankMark rank{.rank = first + i,
                  .pid = 100U + static_cast<std::uint32_t>(i),
                  .start_ticks = 5,
                  .collectives = calls,
                  .lost = 0,
                  .ended = false,
                  .groups = {}};
    rank.groups.push_back({.group = "0",
                           .size = -1,
                           .completed = calls == 0 ? 0 : calls - 1,
                           .operation = static_cast<std::uint8_t>(wire::Operation::kAllReduce),
                           .hashes = fingerprint.hashes()});
    out.ranks.push_back(std::move(rank));
  }
  return out;
}

}  // namespace ddpdoctor::fleet
