// SPDX-License-Identifier: Apache-2.0
// The file system that a file is on. A file system on a server may not answer: accessing its files
// could block us, too.
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

  /// Its files are on a server or provided by another process (FUSE).
  [[nodiscard]] bool remote() const;
};

std::vector<Mount> parse_mounts(std::string_view text);
std::vector<Mount> mounts_of(pid_t pid);

/// The mount of a descriptor's file.
std::optional<Mount> mount_of_descriptor(pid_t pid, int fd);
/// The mount of a path: the longest one that is its prefix.
std::optional<Mount> mount_of_path(const std::vector<Mount>& mounts, std::string_view path);

}  // namespace ddpdoctor::sources
