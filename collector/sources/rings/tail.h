// SPDX-License-Identifier: Apache-2.0
// Follows the ring of a living process: only what was added since the last look is read, so that
// watching costs next to nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::sources {

/// What must agree between ranks of a call; enough to prove a mismatch while the job runs.
struct CallSignature {
  std::string group;    // torch's name of the group
  int group_size = -1;  // -1 = unknown
  std::uint32_t sequence = 0;
  std::uint8_t operation = 0;  // wire::Operation
  std::uint8_t dtype = 255;
  std::uint8_t reduce_op = 255;
  std::int64_t count = -1;
  std::int32_t root = -1;
};

/// How far a group of this process has come.
struct GroupProgress {
  std::string group;
  int group_size = -1;  // -1 = unknown
  std::uint32_t completed = 0;
};

/// News of one process.
struct RingNews {
  std::uint64_t collectives = 0;  // begun since the start
  std::vector<CallSignature> calls;
  int children_killed = 0;  // children of this process whose end by a signal it saw
  bool ended = false;       // it said that it ends
  int rank = -1;            // -1 = none or unknown
  int world_size = -1;
  std::uint64_t start_ticks = 0;
  std::uint64_t lost = 0;  // events that had no room
  std::vector<GroupProgress> completed;
};

class RingTail {
 public:
  static base::Result<RingTail> open(const std::string& path);

  /// Reads what is new; a ring that is not complete yet gives no news.
  RingNews read();
  [[nodiscard]] pid_t pid() const {
    return pid_;
  }

 private:
  explicit RingTail(base::UniqueFd fd) : fd_(std::move(fd)) {}
  void read_groups(std::uint32_t count);

  struct GroupName {
    std::string name;
    int size = -1;
  };
  base::UniqueFd fd_;
  pid_t pid_ = 0;
  std::uint64_t next_ = 0;
  std::vector<GroupName> groups_;
};

}  // namespace ddpdoctor::sources
