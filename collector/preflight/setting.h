// SPDX-License-Identifier: Apache-2.0
// What every check may ask: the plan, the environment, this machine. Files are read below `root`,
// so that a test can tell of another machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/preflight/plan.h"

namespace ddpdoctor::preflight {

/// Bytes of a file system.
struct Space {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

/// A soft and a hard limit; absent = unlimited.
struct Limit {
  std::optional<std::uint64_t> soft;
  std::optional<std::uint64_t> hard;
};

struct Setting {
  Plan plan{};
  Environment environment{};
  std::string root{};                         // "" = this machine
  std::map<std::string, Space> told_space{};  // path → size that is believed instead of asked

  /// A variable; nothing when it is not set or empty.
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
  /// The start of a file (256 KiB); nothing when it cannot be read.
  [[nodiscard]] std::optional<std::string> file(const std::string& path) const;
  /// Names in a folder, sorted, at most 4096; empty when it cannot be read.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const;
  [[nodiscard]] std::optional<Space> space(const std::string& path) const;
  /// A line of /proc/self/limits ("Max open files"); nothing when there is none.
  [[nodiscard]] std::optional<Limit> limit(std::string_view name) const;
  /// CPUs this process may run on; 0 = unknown.
  [[nodiscard]] int cpus() const;
  /// NVIDIA devices in /dev.
  [[nodiscard]] int gpus() const;
  /// Ranks that will start here: the plan's, or one for each GPU, or 1.
  [[nodiscard]] int ranks() const;
  /// The smallest of a cgroup's limit `name` ("memory.max", "pids.max") on the way up from ours,
  /// with the usage at that place.
  struct Group {
    std::uint64_t limit = 0;
    std::optional<std::uint64_t> used;
    std::string path;
  };
  [[nodiscard]] std::optional<Group> cgroup(const std::string& limit,
                                            const std::string& usage) const;
};

}  // namespace ddpdoctor::preflight
