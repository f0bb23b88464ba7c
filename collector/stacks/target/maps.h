// SPDX-License-Identifier: Apache-2.0
// The target's address space from /proc/PID/maps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// One line of /proc/PID/maps.
struct Mapping {
  RemoteAddress start = 0;
  RemoteAddress end = 0;
  std::uint64_t offset = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  std::uint64_t device = 0;  // major << 32 | minor
  std::uint64_t inode = 0;
  std::string_view path;  // without " (deleted)"; valid as long as a copy of the Maps
  bool deleted = false;
};

/// Sorted, non-overlapping mappings.
class Maps {
 public:
  static base::Result<Maps> of(pid_t pid);
  static base::Result<Maps> parse(std::string content);

  [[nodiscard]] const Mapping* find(RemoteAddress address) const;
  [[nodiscard]] const std::vector<Mapping>& all() const {
    return mappings_;
  }

 private:
  std::shared_ptr<const std::string> text_;  // the paths are parts of it; copies share it
  std::vector<Mapping> mappings_;
};

}  // namespace ddpdoctor::stacks
