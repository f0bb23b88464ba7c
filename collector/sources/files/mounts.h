// SPDX-License-Identifier: Apache-2.0
// Which file system a file lies on. A file system that asks a server may not answer: looking at
// such a file could hang us too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::sources {

/// One line of /proc/PID/mountinfo.
struct Mount {
  int id = 0;
  std::string path;  // where it is mounted, as the process sees it
  std::string type;  // "nfs4", "ext4"

  /// Its files live on a server or in another process (FUSE).
  [[nodiscard]] bool remote() const;
};

std::vector<Mount> parse_mounts(std::string_view text);
std::vector<Mount> mounts_of(pid_t pid);

/// The mount a descriptor's file lies on.
std::optional<Mount> mount_of_descriptor(pid_t pid, int fd);
/// The mount a path lies on: the longest that is its prefix.
std::optional<Mount> mount_of_path(const std::vector<Mount>& mounts, std::string_view path);

}  // namespace ddpdoctor::sources
