// SPDX-License-Identifier: Apache-2.0
// Follows the ring of a running process: reads only what was added since the last read, so watching
// costs almost nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::sources {

/// The values of a call that must agree between ranks; enough to prove a mismatch while the job
/// runs.
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

/// The progress of this process in one group.
struct GroupProgress {
  std::string group;
  int group_size = -1;  // -1 = unknown
  std::uint32_t completed = 0;
};

/// New events of one process.
struct RingNews {
  std::uint64_t collectives = 0;  // begun since the start
  std::vector<CallSignature> calls;
  int children_killed = 0;  // children of this process that ended by a signal
  bool ended = false;       // the process announced its exit
  int rank = -1;            // -1 = none or unknown
  int world_size = -1;
  std::uint64_t start_ticks = 0;
  std::uint64_t lost = 0;  // events dropped because the buffer was full
  std::vector<GroupProgress> completed;
};

class RingTail {
 public:
  static base::Result<RingTail> open(const std::string& path);

  /// Reads what is new; an incomplete ring gives nothing.
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
