// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/files/mounts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

/// mountinfo writes blanks, tabs, newlines and backslashes as \ooo.
std::string unescaped(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  constexpr int kOctal = 8;
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + kDigits < text.size()
                          ? number<unsigned>(text.substr(i + 1, kDigits), kOctal)
                          : std::nullopt;
    if (code && *code <= 0xFFU) {
      plain += static_cast<char>(*code);
      i += kDigits;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "36 35 98:0 /root /mount rw,noatime master:1 - ext3 /dev/root rw"
std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = words(line);
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  constexpr std::size_t kPath = 4;
  if (fields.size() <= kPath || dash == fields.end() || dash + 1 == fields.end()) {
    return std::nullopt;
  }
  const auto id = number<int>(fields[0]);
  return id ? std::optional(Mount{
                  .id = *id, .path = unescaped(fields[kPath]), .type = std::string(*(dash + 1))})
            : std::nullopt;
}

bool lies_below(std::string_view path, std::string_view folder) {
  return folder == "/" ||
         (path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/'));
}

}  // namespace

bool Mount::remote() const {
  constexpr std::array<std::string_view, 13> kRemote{
      "nfs",    "nfs4", "cifs", "smb3",      "lustre",   "ceph",  "gpfs",
      "beegfs", "9p",   "afs",  "glusterfs", "virtiofs", "wekafs"};
  return type.starts_with("fuse") ||
         std::find(kRemote.begin(), kRemote.end(), type) != kRemote.end();
}

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : base::split(text, '\n')) {
    if (auto mount = parse_mount(line)) {
      mounts.push_back(std::move(*mount));
    }
  }
  return mounts;
}

std::vector<Mount> mounts_of(pid_t pid) {
  return parse_mounts(read_file(proc_path(pid, "mountinfo"), kLargeFile).value_or(""));
}

std::optional<Mount> mount_of_descriptor(pid_t pid, int fd) {
  const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
  const auto id = text ? number<int>(status_field(*text, "mnt_id").value_or("")) : std::nullopt;
  if (!id) {
    return std::nullopt;
  }
  for (Mount& mount : mounts_of(pid)) {
    if (mount.id == *id) {
      return std::move(mount);
    }
  }
  return std::nullopt;
}

std::optional<Mount> mount_of_path(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    if (lies_below(path, mount.path) &&
        (best == nullptr || mount.path.size() >= best->path.size())) {
      best = &mount;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

}  // namespace ddpdoctor::sources
