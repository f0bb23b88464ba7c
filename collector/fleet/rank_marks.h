// SPDX-License-Identifier: Apache-2.0
// Follows the rings of a node's ranks and makes marks of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collector/fleet/marks.h"
#include "collector/sources/rings/tail.h"

namespace ddpdoctor::fleet {

class RankMarks {
 public:
  explicit RankMarks(std::string spool) : spool_(std::move(spool)) {}

  /// Reads new events; true when something has changed.
  bool read();
  /// One entry per rank; for a restarted rank, its newest process.
  [[nodiscard]] std::vector<RankMark> ranks() const;
  [[nodiscard]] int world_size() const {
    return world_size_;
  }
  /// Number of children of ranks that a signal killed.
  [[nodiscard]] int children_killed() const {
    return killed_;
  }

 private:
  struct Group {
    int size = -1;
    std::uint32_t completed = 0;
    std::uint8_t operation = 0;
    Fingerprint fingerprint;
  };
  struct Ring {
    sources::RingTail tail;
    RankMark mark;  // its groups are kept separately
    std::map<std::string, Group> groups;
  };

  void find_rings();
  bool read(Ring& ring);

  std::string spool_;
  std::map<std::string, Ring> rings_;
  int world_size_ = -1;
  int killed_ = 0;
};

}  // namespace ddpdoctor::fleet
