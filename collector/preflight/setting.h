// SPDX-License-Identifier: Apache-2.0
// What every check may read: the plan, the environment, this machine. Files are read below `root`,
// so that a test can simulate another machine.
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
  std::map<std::string, Space> told_space{};  // path → size that is used instead of the real one

  /// A variable; nothing if it is unset or empty.
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const;
  /// The start of a file (256 KiB); nothing if it cannot be read.
  [[nodiscard]] std::optional<std::string> file(const std::string& path) const;
  /// Names in a folder, sorted, at most 4096; empty if it cannot be read.
  [[nodiscard]] std::vector<std::string> names(const std::string& path) const;
  [[nodiscard]] std::optional<Space> space(const std::string& path) const;
  /// A line of /proc/self/limits ("Max open files"); nothing if it is missing.
  [[nodiscard]] std::optional<Limit> limit(std::string_view name) const;
  /// CPUs this process may run on; 0 = unknown.
  [[nodiscard]] int cpus() const;
  /// Number of NVIDIA devices in /dev.
  [[nodiscard]] int gpus() const;
  /// Number of ranks that will start here: the plan's, else one per GPU, else 1.
  [[nodiscard]] int ranks() const;
  /// The smallest limit `name` ("memory.max", "pids.max") of our cgroup and its ancestors, with the
  /// usage of the same group.
  struct Group {
    std::uint64_t limit = 0;
    std::optional<std::uint64_t> used;
    std::string path;
  };
  [[nodiscard]] std::optional<Group> cgroup(const std::string& limit,
                                            const std::string& usage) const;
};

}  // namespace ddpdoctor::preflight
